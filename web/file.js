// Reads a .calyx file in slices, whatever its size, and finds what is damaged,
// and where. The library says what the sections are and checks them; only the
// reading is done here.

import { openRemote } from "calyx/remote";

const SLICE = 8 << 20; // bytes read at a time: a multiple of every `step`
const CELLS = 1024; // of the map of the fill
const MOST_DAMAGE = 20; // entries in the list; then "and more"
const MOST_UNPACKED = 512 << 20; // bytes of a packed file
const MOST_WHOLE = 1 << 30; // bytes of a file that is read whole for lookups

const roundUp = (n, to) => Math.ceil(n / to) * to;

export async function readBytes(file, from, to) {
  return new Uint8Array(await file.slice(from, to).arrayBuffer());
}

// A file by its URL: only the header and the slots are read. What needs all bits
// stays unknown.
export async function openUrl(calyx, { url, signal }) {
  let held;
  try {
    held = await openRemote(calyx, url, signal);
  } catch (error) {
    const { what, values, status, message } = error;
    if (!what && status === undefined) throw error;
    const damage = !what ? { what: "head", values: { x: message } }
      : { what: ["size", "slots", "list"].includes(what) ? what : "remote." + what, values };
    return { result: { damage: [damage] } };
  }
  const { layout } = held, { parts } = layout, sections = layout.sections.slice(0, -1);
  for (const section of sections)
    if (section.name === "header") section.sum = "good";
    else if (!["slot", "allow"].includes(section.name)) section.sum = "unread";
    else if (section.sum === "bad") section.sum = "unused";
  return { ...held, result: { ...layout.describe(), parts, sections, damage: [], remote: traffic(held) } };
}

// What was read of it so far.
export const traffic = ({ remote }) => remote && { requests: remote.file.requests, bytes: remote.file.bytes };

const readSection = (file, { at, bytes }) => readBytes(file, at, at + bytes);

// What the browser can unpack, unpacked; null if it cannot.
async function unpacked(file, format, task) {
  let stream;
  try {
    stream = new DecompressionStream(format);
  } catch {
    return null;
  }
  const parts = [], counted = new TransformStream({ transform(bytes, next) {
    read += bytes.length;
    next.enqueue(bytes);
  } });
  let read = 0, size = 0;
  for (const reader = file.stream().pipeThrough(counted).pipeThrough(stream).getReader();;) {
    const { done, value } = await reader.read();
    if (done) return new Blob(parts);
    parts.push(value);
    size += value.length;
    if (size > MOST_UNPACKED || !task.current()) {
      reader.cancel();
      return size;
    }
    task.news({ share: read / file.size });
  }
}

// `task` takes progress, and says whether the answer is still wanted.
export async function open(calyx, { file: given }, task) {
  const damage = [];
  const blame = (what, values = {}) => {
    if (damage.length < MOST_DAMAGE) damage.push({ what, values });
    else if (damage.length === MOST_DAMAGE) damage.push({ what: "more", values: {} });
  };
  const failed = (what, values) => ({ result: { damage: [{ what, values }] } });
  const known = calyx.recognize(await readBytes(given, 0, 64), given.size);
  let file = given, layout;
  try {
    file = await unpacked(given, known.name, task) ?? given;
  } catch (error) {
    return failed("packed", { x: error.message });
  }
  if (!task.current()) return null;
  if (typeof file === "number") return failed("large", { x: MOST_UNPACKED / 2 ** 20 });
  try {
    layout = calyx.layout(await readBytes(file, 0, calyx.headerMost));
  } catch (error) {
    if (error.status === undefined) throw error;
    return known.name && file === given ? failed("known." + known.name, { m: known.bits ?? "", k: known.probes ?? "", l: known.layout ?? "" })
      : failed("head", { x: error.message });
  }
  const { parts, sections } = layout, end = sections.at(-1).at;
  const named = (name) => sections.filter((section) => section.name === name);
  if (file.size !== end) blame("size", { x: end, y: file.size });
  const complete = file.size >= end;
  named("header")[0].sum = "good";
  if (complete) await checkEnd(file, layout, named, blame);
  else for (const section of sections)
    if (!["header", "body"].includes(section.name)) section.sum = "missing";

  const map = await readBodies(file, calyx, { layout, bodies: named("body"), blame }, task);
  if (!map) {
    layout.free();
    return null; // nobody waits for it any more
  }
  if (complete) await checkGaps(file, sections, blame);
  const result = { ...layout.describe(parts.map((part) => part.set)), parts, damage, map,
    sections: sections.slice(0, -1), sealed: named("tables")[0].sum !== "open" };
  parts.at(-1).items = result.keys - parts.slice(0, -1).reduce((n, p) => n + p.items, 0);
  const whole = !result.asks && !result.secret && end <= MOST_WHOLE; // it is read by whole filters alone
  result.asks ||= whole;
  return { result, file, layout, whole };
}

// The slots say whether the tables count, and the tables whether bodies do.
async function checkEnd(file, layout, named, blame) {
  const slots = named("slot"), [tables] = named("tables");
  for (const slot of slots) slot.sum = layout.check(slot, await readSection(file, slot));
  const counts = slots.findLast((slot) => slot.sum === "good");
  if (counts) for (const slot of slots) if (slot !== counts) slot.sum = "unused";
  if (!counts) blame("slots");
  tables.sum = layout.checkKept(tables, await readSection(file, tables));
  if (tables.sum === "bad") blame("tables");
  for (const list of named("allow")) { // one, or none
    list.sum = layout.checkKept(list, await readSection(file, list));
    if (list.sum !== "good") blame("list");
  }
}

async function checkGaps(file, sections, blame) {
  let end = 0;
  for (const { at, bytes } of sections) {
    if (at > end && (await readBytes(file, end, at)).some((byte) => byte))
      blame("gap", { x: end, y: at });
    end = at + bytes;
  }
}

// Read all bodies: count bits, check ranges. Returns the fill of each cell of
// the map, and whether it is damaged. The bits come first in a body; whole words
// are counted.
async function readBodies(file, calyx, { layout, bodies, blame }, task) {
  const { parts } = layout;
  const bitsBytes = parts.map(({ bits }) => roundUp(bits / 8, 8));
  const total = bodies.reduce((n, body) => n + body.bytes, 0);
  const bits = bitsBytes.reduce((n, bytes) => n + bytes, 0);
  const cell = Math.max(8, roundUp(bits / CELLS, 8)); // bytes
  const set = new Array(Math.ceil(bits / cell)).fill(0), bad = new Set();
  let done = 0, bitsBefore = 0;
  const mark = (number, from, to) => { // cells with bytes from here to there
    const end = Math.min(to, bitsBytes[number]);
    for (let at = from; at < end; at = (Math.floor((bitsBefore + at) / cell) + 1) * cell - bitsBefore)
      bad.add(Math.floor((bitsBefore + at) / cell));
  };
  for (const [number, body] of bodies.entries()) {
    const part = parts[number];
    part.set = 0;
    body.sum = "good";
    for (let from = 0; from < body.bytes; from += SLICE) {
      if (!task.current()) return null;
      const to = Math.min(body.bytes, from + SLICE);
      const bytes = await readBytes(file, body.at + from, body.at + to);
      if (bytes.length < to - from) {
        body.sum = "missing";
        mark(number, from + bytes.length, to);
      }
      const padded = new Uint8Array(roundUp(bytes.length, 8)); // the file may end anywhere
      padded.set(bytes);
      calyx.lend(padded, (at) => {
        for (let i = from; i < to; i += body.step) {
          const size = Math.min(body.step, to - i);
          if (i - from + size > bytes.length) continue;
          const sum = layout.checkAt(body, i, at + i - from, size);
          if (sum === "bad") {
            blame("range", { x: body.at + i, y: body.at + i + size });
            mark(number, i, i + size);
          }
          if (sum === "bad" || body.sum === "good") body.sum = sum;
        }
        const end = Math.min(from + padded.length, bitsBytes[number]);
        for (let i = from; i < end; ) {
          const place = Math.floor((bitsBefore + i) / cell);
          const stop = Math.min(end, (place + 1) * cell - bitsBefore);
          const n = calyx.wasm.count_bits(at + i - from, stop - i);
          set[place] += n;
          part.set += n;
          i = stop;
        }
      });
      task.news({ share: (done + to) / total });
      await task.breathe();
    }
    bitsBefore += bitsBytes[number];
    done += body.bytes;
  }
  return set.map((n, i) => ({ fill: n / (8 * Math.min(cell, bits - i * cell)), bad: bad.has(i) }));
}

// Reads a .calyx file in slices, whatever its size, and finds out what is
// damaged and where. The library judges the head and lends its checksum; the
// rest follows doc/FORMAT.md. A filter that fits into memory is put there slice
// by slice and then asked as anywhere; of a larger one only the blocks of a key
// are read, and the library asks those.

const RANGE = 1 << 16; // bytes under one checksum
const UNSEALED = 0x5EA1ED0FF1B2D4C3n; // in its place: the range is being changed
const SLICE = 8 << 20; // read at a time
const FIXED = 128, RECORD = 64, SLOT = 64;
const CELLS = 1024; // of the map of the fill
const MOST_TOLD = 20; // pieces of damage; more say no more
const SIPHASH = 3; // wants a secret key, which nobody should give to a page
const codes = { 3: "split", 4: "flat", 6: "line", 7: "line2", 8: "counting" };
const blockBits = { line: 512, line2: 512, split: 256, flat: 1, counting: 512 };

const roundUp = (n, to) => Math.ceil(n / to) * to;

async function readBytes(file, from, to) {
  return new Uint8Array(await file.slice(from, to).arrayBuffer());
}

// ---- The head ----

// The fields of a head that the library found sound. Numbers are below 2^53.
function fields(bytes) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  const u32 = (at) => view.getUint32(at, true);
  const u64 = (at) => Number(view.getBigUint64(at, true));
  const f64 = (at) => view.getFloat64(at, true);
  const kind = codes[view.getUint16(40, true)];
  const head = {
    kind, hash: { 1: "xxh3", 2: "xxh64", [SIPHASH]: "siphash" }[view.getUint16(42, true)],
    fileBytes: u64(24), headerBytes: u32(32), alignment: u32(36),
    strict: (u32(44) & 1) === 1, seed: view.getBigUint64(48, true),
    fpr: f64(64), growth: f64(72), parts: [],
    sum: view.getBigUint64(bytes.length - 8, true),
  };
  const parts = u32(80), comment = FIXED + RECORD * parts;
  for (let i = 0; i < parts; i++) {
    const at = FIXED + RECORD * i;
    const blocks = u64(at), bits = blocks * blockBits[kind];
    head.parts.push({ blocks, bits, probes: u32(at + 8), capacity: u64(at + 16),
      items: u64(at + 24), at: u64(at + 40), bytes: u64(at + 48),
      bitsBytes: roundUp(Math.ceil(bits / 8), 64), set: 0 });
  }
  head.comment = new TextDecoder().decode(
    bytes.slice(comment, comment + u32(84)));
  head.slot = head.alignment === 4096 ? 512 : SLOT;
  const last = head.parts.at(-1);
  head.tablesAt = roundUp(last.at + last.bytes, head.alignment);
  head.chunks = head.parts.reduce((n, p) => n + Math.ceil(p.bytes / RANGE), 0);
  head.slotAt = roundUp(head.tablesAt + 8 * head.chunks, head.slot);
  return head;
}

async function readHead(file, calyx, most) {
  let bytes = await readBytes(file, 0, FIXED);
  if (bytes.length === FIXED) {
    const size = new DataView(bytes.buffer).getUint32(32, true);
    // what is no size is left to the library to refuse
    if (size >= FIXED && size <= 12288) bytes = await readBytes(file, 0, size);
  }
  const filter = calyx.openHead(withoutSecret(calyx, bytes), most);
  return { filter, head: fields(bytes) };
}

// A head with a secret key, as if it were one of xxh3: so the library judges
// all but the key, and the filter can be shown, though not asked.
function withoutSecret(calyx, bytes) {
  const copy = bytes.slice(), view = new DataView(copy.buffer), end = copy.length - 8;
  if (end < FIXED || view.getUint16(42, true) !== SIPHASH ||
    view.getBigUint64(end, true) !== calyx.checksum(copy.subarray(0, end))) return bytes;
  const known = new TextEncoder().encode("calyx: is this the same hash?");
  view.setUint16(42, 1, true);
  view.setBigUint64(56, calyx.checksum(known), true); // xxh3, too
  view.setBigUint64(end, calyx.checksum(copy.subarray(0, end)), true);
  return copy;
}

// ---- Slots, tables, gaps ----

async function readSlots(file, calyx, head) {
  let state = null;
  for (let i = 0; i < 2; i++) {
    const from = head.slotAt + i * head.slot;
    const bytes = await readBytes(file, from, from + SLOT);
    if (bytes.length < SLOT) continue;
    const view = new DataView(bytes.buffer);
    const u64 = (at) => view.getBigUint64(at, true);
    const kind = view.getUint32(8, true);
    const valid = u64(0) !== 0n && u64(0) >> 63n === 0n && (kind === 1 || kind === 2) &&
      view.getUint32(12, true) === 0 && u64(32) === head.sum &&
      u64(40) <= (kind === 1 ? 0n : u64(16)) && u64(48) === 0n &&
      u64(56) === calyx.checksum(bytes.slice(0, 56));
    if (valid && (!state || u64(0) > state.generation))
      state = { generation: u64(0), sealed: kind === 1, items: Number(u64(16)),
        tablesSum: u64(24), slot: i };
  }
  return state;
}

function gaps(head) {
  const all = [];
  let end = head.headerBytes;
  const section = (from, size) => {
    if (from > end) all.push([end, from]);
    end = from + size;
  };
  for (const p of head.parts) section(p.at, p.bytes);
  section(head.tablesAt, 8 * head.chunks);
  section(head.slotAt, SLOT);
  section(head.slotAt + head.slot, SLOT);
  section(head.fileBytes, 0);
  return all;
}

// ---- The whole ----

// `task` tells of progress, and whether the answer is still wanted.
export async function open(calyx, { file, most }, task) {
  const damage = [];
  const blame = (what, values = {}) => {
    if (damage.length < MOST_TOLD) damage.push({ what, values });
    else if (damage.length === MOST_TOLD) damage.push({ what: "more", values: {} });
  };
  let filter, head;
  try {
    ({ filter, head } = await readHead(file, calyx, most));
  } catch (error) {
    if (error.status === undefined) throw error;
    return { result: { damage: [{ what: "head", values: { x: error.message } }] } };
  }
  if (file.size !== head.fileBytes)
    blame("size", { x: head.fileBytes, y: file.size });
  const whole = file.size >= head.fileBytes;
  const state = whole ? await readSlots(file, calyx, head) : null;
  if (whole && !state) blame("slots");
  if (state) head.parts.at(-1).items = state.items;

  const sections = [{ name: "header", at: 0, bytes: head.headerBytes, sum: "good" }];
  let tables = null;
  if (state) {
    tables = await readBytes(file, head.tablesAt, head.tablesAt + 8 * head.chunks);
    if (state.sealed && calyx.checksum(tables) !== state.tablesSum) {
      blame("tables");
      tables = null;
    }
  }
  const map = await readBodies(file, calyx, { head, filter, tables, sections, blame, sealed: state?.sealed }, task);
  if (!map) {
    filter?.free();
    return null; // nobody waits for it any more
  }
  const tablesSum = !whole ? "missing" : !state?.sealed ? "open" : tables ? "good" : "bad";
  sections.push({ name: "tables", at: head.tablesAt, bytes: 8 * head.chunks, sum: tablesSum });
  for (let i = 0; i < 2; i++)
    sections.push({ name: "slot", number: i, at: head.slotAt + i * head.slot, bytes: SLOT,
      sum: !whole ? "missing" : state?.slot === i ? "good" : state ? "unused" : "bad" });
  if (whole)
    for (const [from, to] of gaps(head))
      if ((await readBytes(file, from, to)).some((byte) => byte))
        blame("gap", { x: from, y: to });

  const result = { ...summary(calyx, head, filter), sections, damage, map,
    sealed: !!state?.sealed, loaded: !!filter };
  return { result, file, head, filter };
}

// Read all bodies: count bits, check chunks, fill the filter. Gives the fill of
// each cell of the map.
async function readBodies(file, calyx, { head, filter, tables, sections, blame, sealed }, task) {
  const total = head.parts.reduce((n, p) => n + p.bytes, 0);
  const bits = head.parts.reduce((n, p) => n + p.bitsBytes, 0);
  const cell = Math.max(8, roundUp(bits / CELLS, 8)); // bytes
  const set = new Array(Math.ceil(bits / cell)).fill(0);
  const sums = tables && new DataView(tables.buffer);
  let chunk = 0, done = 0, bitsBefore = 0;
  for (const [number, part] of head.parts.entries()) {
    let bad = 0, open = 0, missing = false;
    for (let from = 0; from < part.bytes; from += SLICE) {
      if (!task.current()) return null;
      const to = Math.min(part.bytes, from + SLICE);
      const bytes = await readBytes(file, part.at + from, part.at + to);
      missing ||= bytes.length < to - from;
      let padded = bytes;
      if (bytes.length % 8) { // the file may end anywhere
        padded = new Uint8Array(roundUp(bytes.length, 8));
        padded.set(bytes);
      }
      calyx.lend(padded, (at) => {
        for (let i = from; i < to; i += RANGE, chunk++) {
          const size = Math.min(RANGE, to - i);
          if (!sums || i - from + size > bytes.length) continue;
          const sum = BigInt.asUintN(64, calyx.wasm.checksum(at + i - from, size, BigInt(chunk)));
          const stored = sums.getBigUint64(8 * chunk, true);
          if (stored === sum + (sum === UNSEALED ? 1n : 0n)) continue;
          if (stored === UNSEALED && !sealed) {
            open++;
            continue;
          }
          bad++;
          blame("chunk", { x: chunk, y: part.at + i, z: part.at + i + size });
        }
        const end = Math.min(from + padded.length, part.bitsBytes);
        for (let i = from; i < end; ) {
          const place = Math.floor((bitsBefore + i) / cell);
          const stop = Math.min(end, (place + 1) * cell - bitsBefore);
          const n = calyx.wasm.count_bits(at + i - from, stop - i);
          set[place] += n;
          part.set += n;
          i = stop;
        }
        if (filter) calyx.wasm.put_bits(filter.at, done + from, at, bytes.length);
      });
      task.news({ share: (done + to) / total });
      await task.breathe();
    }
    if (await hasTail(file, part)) blame("tail", { x: number });
    sections.push({ name: "body", number, at: part.at, bytes: part.bytes,
      sum: missing ? "missing" : bad ? "bad" : sums && !open ? "good" : "open" });
    bitsBefore += part.bitsBytes;
    done += part.bytes;
  }
  return set.map((n, i) => n / (8 * Math.min(cell, bits - i * cell)));
}

// Bits behind the last block are no key's.
async function hasTail(file, part) {
  const whole = Math.floor(part.bits / 8), rest = part.bits % 8;
  const bytes = await readBytes(file, part.at + whole, part.at + part.bitsBytes);
  return bytes.some((byte, i) => (i === 0 ? byte >> rest : byte) !== 0);
}

// The rate for a number of keys that is not whole, by a power law between the
// whole ones beside it.
function rateBetween(calyx, kind, part, keys) {
  const below = Math.floor(keys), above = below + 1;
  const rate = (n) => calyx.rateAt(kind, part.bits, part.probes, n);
  const high = rate(above), low = rate(below);
  if (!(low > 0) || keys === below) return keys === below ? low : high * keys ** part.probes;
  return low * (keys / below) ** (Math.log(high / low) / Math.log(above / below));
}

// In the mean: beyond 8 probes in a line, second bits may fall on first ones.
function bitsOfKey(kind, probes) {
  const lines = { line: 1, line2: 2, counting: 1 }[kind] ?? 0;
  return lines ? probes - Math.max(0, probes - 8 * lines) / 64 : probes;
}

// The numbers of `calyx info`. In memory, the library describes the filter;
// otherwise this is how it does it.
function summary(calyx, head, filter) {
  const sum = (of) => head.parts.reduce((n, p) => n + of(p), 0);
  let distinct = 0, certainlyNot = 1;
  for (const p of head.parts) {
    const unset = Math.max(0.5, p.bits - p.set);
    const keys = Math.log(unset / p.bits) /
      Math.log1p(-Math.min(0.5, bitsOfKey(head.kind, p.probes) / p.bits));
    distinct += keys;
    certainlyNot *= 1 - rateBetween(calyx, head.kind, p, keys);
  }
  const own = filter?.describe();
  return {
    kind: head.kind, hash: head.hash, seed: String(head.seed), comment: head.comment,
    growth: head.growth, strict: head.strict, parts: head.parts,
    keys: sum((p) => p.items), capacity: sum((p) => p.capacity),
    bytes: sum((p) => p.bytes), bits: sum((p) => p.bits),
    probes: head.parts.at(-1).probes, ratePromised: head.fpr,
    fill: own?.fill ?? sum((p) => p.set) / sum((p) => p.bits),
    distinct: own?.distinct ?? distinct, rate: own?.rate ?? 1 - certainlyNot,
  };
}

// ---- Asking ----

const low64 = (x) => BigInt.asUintN(64, x);
const scale = (hash, n) => Number((hash * BigInt(n)) >> 64n);

// Does this block, alone in a filter of its own, have the hash?
async function inBlock(calyx, file, part, kind, probes, n, hash) {
  const size = blockBits[kind] / 8, from = part.at + n * size;
  const one = calyx.make({ kind, capacity: 1, bits: blockBits[kind], probes });
  try {
    one.putBits(0, await readBytes(file, from, from + size));
    return one.hasHash(hash);
  } finally {
    one.free();
  }
}

async function inPart(calyx, file, kind, part, hash) {
  const line = (h, probes) =>
    inBlock(calyx, file, part, "line", probes, scale(h, part.blocks), h);
  if (kind === "line" || kind === "counting") return line(hash, part.probes);
  if (kind === "line2") {
    const second = low64((hash ^ (hash >> 32n)) * 0x9E3779B97F4A7C15n);
    return await line(hash, part.probes / 2) && line(second, part.probes / 2);
  }
  if (kind === "split")
    return inBlock(calyx, file, part, "split", 8,
      Number(((hash >> 32n) * BigInt(part.blocks)) >> 32n), hash);
  for (let i = 0, x = hash; i < part.probes; i++) { // flat
    const bit = scale(x, part.blocks), byte = part.at + Math.floor(bit / 8);
    const [found] = await readBytes(file, byte, byte + 1);
    if (!(found >> bit % 8 & 1)) return false;
    x = low64(x * 6364136223846793005n + 1442695040888963407n);
  }
  return true;
}

export async function has(calyx, { file, head, filter }, word) {
  if (filter) return filter.has(word);
  const hasher = calyx.make({ kind: "line", capacity: 1, hash: head.hash, seed: head.seed });
  const hash = hasher.hash(word);
  hasher.free();
  for (const part of head.parts)
    if (await inPart(calyx, file, head.kind, part, hash)) return true;
  return false;
}

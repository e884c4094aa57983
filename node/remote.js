// A filter in a file that is read in pieces: from a web server by HTTP ranges, or
// from a File. The library says which bytes answer a lookup; only the reading is
// done here.
//
// No answer comes from bytes that may be of another version of the file: all
// answers of the server must have the same ETag and Last-Modified, as far as the
// browser shows them, and the slots, which have checksums of all bits, must be the
// same before and after the lookups.

const MOST_AT_ONCE = 128; // requests
const MOST_WORDS = 1000; // looked up at a time
const TRIES = 3;
const SILENCE = 30000; // ms
const MOST_LINES = 1 << 17; // kept
const WHOLE = 1 << 16; // bytes of a file that is read by one request
const SMALL = 1 << 20; // bytes of a File that is read whole for lookups

const reasons = {
  reach: () => "there was no answer: it is out of reach, or its server does not allow other sites " +
    "to read it (CORS), for which it sends Access-Control-Allow-Origin",
  ranges: () => "the server does not send ranges of it (200 instead of 206)",
  status: ({ x }) => `the server answers with status ${x}`,
  range: ({ x, y }) => `the server sent other bytes than ${x} to ${y}, which were requested`,
  version: () => "the server shows neither ETag nor Last-Modified, so that a change of the file could " +
    "not be noticed; to other sites it shows what Access-Control-Expose-Headers names",
  changed: () => "the file has changed on the server",
  size: ({ x, y }) => `damaged: its header says ${x} bytes, and it has ${y}`,
  stopped: () => "it was stopped",
  slots: () => "damaged: neither of its slots is sound",
  list: () => "damaged: the allow list does not match its checksum",
};

// `what` is a key of `reasons`, for those who have words of their own.
export class RemoteError extends Error {
  constructor(url, what, values = {}) {
    super(`${url}: ${reasons[what](values)}`);
    Object.assign(this, { what, values });
  }
}

// As a File, as far as it is needed: slice(from, to).arrayBuffer().
export class RemoteFile {
  #version = null; // ETag and Last-Modified
  #lines = new Map(); // what was read, by its place, as promises
  #running = 0;
  #waiting = [];

  // A signal stops all requests.
  constructor(url, signal) {
    Object.assign(this, { url: String(url), name: String(url), signal, size: null, requests: 0, bytes: 0 });
  }

  fail(what, values) {
    throw new RemoteError(this.url, what, values);
  }

  slice(from, to) {
    return { arrayBuffer: async () => {
      if (!this.#lines.has(from)) {
        if (this.#lines.size >= MOST_LINES) this.#lines.clear();
        const read = this.read(from, to);
        read.catch(() => this.#lines.delete(from)); // it may be read later
        this.#lines.set(from, read);
      }
      return (await this.#lines.get(from)).slice(0, to - from).buffer;
    } };
  }

  // Exactly these bytes; `most`: or as many as the file has.
  async read(from, to, most = false) {
    if (this.#running >= MOST_AT_ONCE) await new Promise((resolve) => this.#waiting.push(resolve));
    this.#running++;
    try {
      return await this.#readAgain(from, to, most);
    } finally {
      this.#running--;
      this.#waiting.shift()?.();
    }
  }

  // A server that answered before may be busy for a moment.
  async #readAgain(from, to, most) {
    for (let tries = 1; ; tries++)
      try {
        return await this.#readOnce(from, to, most);
      } catch (error) {
        const passes = error.what === "reach" ? this.#version !== null && !this.signal?.aborted
          : error.what === "status" && (error.values.x >= 500 || error.values.x === 429);
        if (!passes || tries === TRIES) throw error;
        await new Promise((resolve) => setTimeout(resolve, 100 * 4 ** (tries - 1)));
      }
  }

  async #readOnce(from, to, most) {
    if (this.signal?.aborted) this.fail("stopped");
    this.requests++;
    const abort = new AbortController(), stop = () => abort.abort(), timer = setTimeout(stop, SILENCE);
    this.signal?.addEventListener("abort", stop);
    let answer, bytes;
    try {
      answer = await fetch(this.url, { headers: { Range: `bytes=${from}-${to - 1}` }, cache: "no-store",
        credentials: "omit", signal: abort.signal });
      if (answer.status === 206) bytes = await this.#body(answer, to - from);
      else answer.body?.cancel(); // it may be the whole file
    } catch (error) {
      if (error instanceof RemoteError) throw error;
      this.fail(this.signal?.aborted ? "stopped" : "reach");
    } finally {
      clearTimeout(timer);
      this.signal?.removeEventListener("abort", stop);
    }
    if (answer.status === 200) this.fail("ranges");
    if (answer.status !== 206) this.fail("status", { x: answer.status });
    const version = [answer.headers.get("etag"), answer.headers.get("last-modified")].join(" ");
    if (version === " ") this.fail("version");
    if (this.#version !== null && version !== this.#version) this.fail("changed");
    this.#checkRange(answer, from, to, bytes.length, most);
    this.#version = version;
    this.bytes += bytes.length;
    return bytes;
  }

  // At most `most` bytes of it.
  async #body(answer, most) {
    const bytes = new Uint8Array(most), reader = answer.body.getReader();
    let size = 0;
    for (let next; !(next = await reader.read()).done; size += next.value.length)
      if (next.value.length > most - size) {
        reader.cancel();
        this.fail("range", { x: 0, y: most });
      } else {
        bytes.set(next.value, size);
      }
    return bytes.subarray(0, size);
  }

  // Other sites see Content-Range only if the server allows that.
  #checkRange(answer, from, to, size, most) {
    const text = answer.headers.get("content-range");
    const [, first, last, total] = text?.match(/^bytes (\d+)-(\d+)\/(\d+)$/)?.map(Number) ?? [];
    if (text !== null && !(first === from && last === from + size - 1 && last < total))
      this.fail("range", { x: from, y: to - 1 });
    const wanted = most && total !== undefined ? Math.min(to, total) - from : to - from;
    if (size !== wanted && !(most && text === null && size > 0))
      this.fail("range", { x: from, y: to - 1 });
    if (total === undefined) return;
    if (this.size !== null && this.size !== total) this.fail("changed");
    this.size = total;
  }
}

// Header, allow list and slots are read and checked. Free the layout.
export async function openRemote(calyx, url, signal) {
  const file = new RemoteFile(url, signal);
  const first = await file.read(0, calyx.headerMost, true);
  const layout = calyx.layout(first);
  try {
    const end = layout.sections.at(-1).at;
    if (file.size !== null && file.size !== end) file.fail("size", { x: end, y: file.size });
    const slots = layout.sections.filter(({ name }) => name === "slot"), { at } = slots[0];
    const bytes = await file.read(at, end);
    for (const slot of slots)
      slot.sum = layout.check(slot, bytes.subarray(slot.at - at, slot.at - at + slot.bytes));
    if (!slots.some(({ sum }) => sum === "good")) file.fail("slots");
    const list = layout.sections.find(({ name }) => name === "allow");
    if (list) list.sum = layout.checkKept(list, await file.read(list.at, list.at + list.bytes));
    if (list && list.sum !== "good") file.fail("list");
    return { file: end <= WHOLE ? inMemory(await file.read(0, end)) : file, layout,
      remote: { file, at, end, slots: bytes } };
  } catch (error) {
    layout.free();
    throw error;
  }
}

// Bytes as a File. Each read of a Blob takes a browser about a millisecond.
function inMemory(bytes) {
  return { slice: (from, to) => ({ arrayBuffer: async () => bytes.slice(from, to).buffer }) };
}

async function readBytes(file, from, to) {
  return new Uint8Array(await file.slice(from, to).arrayBuffer());
}

// Reads the lines that a lookup needs, part after part.
async function has(calyx, { file, layout }, word) {
  if (layout.allows(word)) return false;
  const hash = layout.hash(word), size = calyx.lineBytes;
  for (let part = 0, found = 0; ;) {
    const places = layout.lines(part, hash);
    const lines = await Promise.all(places.map((at) => readBytes(file, at, at + size)));
    if (lines.some((line) => line.length < size)) throw new Error("the file is shorter now");
    const bytes = new Uint8Array(lines.length * size);
    for (const [i, line] of lines.entries()) bytes.set(line, i * size);
    const [has, next] = layout.answer(part, hash, bytes);
    found ^= has;
    if (!next) return found === 1;
    part = next;
  }
}

// Of what openRemote returned, or of { file, layout } for a File.
export async function hasMany(calyx, held, words) {
  const found = [], { remote, layout } = held, { size } = held.file;
  const file = remote || size > SMALL ? held.file : inMemory(await readBytes(held.file, 0, size));
  for (let i = 0; i < words.length; i += MOST_WORDS)
    found.push(...await Promise.all(words.slice(i, i + MOST_WORDS).map((word) => has(calyx, { file, layout }, word))));
  const now = await remote?.file.read(remote.at, remote.end);
  if (now?.some((byte, i) => byte !== remote.slots[i])) remote.file.fail("changed");
  return found;
}

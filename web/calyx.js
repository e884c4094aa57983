// The library, as JavaScript sees it: the other half of bridge.c. Works in the
// page and in the worker, each with an instance of its own.

export class CalyxError extends Error {
  constructor(status, text) {
    super(text);
    this.status = status;
  }
}

const OK = 0;
export const NO_MEMORY = -2;

// A module whose one function returns a vector: valid where vectors are known.
const withVectors = Uint8Array.of(
  0, 0x61, 0x73, 0x6d, 1, 0, 0, 0, // \0asm, version 1
  1, 5, 1, 0x60, 0, 1, 0x7b, // a type: () -> v128
  3, 2, 1, 0, // a function of it:
  10, 8, 1, 6, 0, 0x41, 0, 0xfd, 15, 11); // i32.const 0, i8x16.splat

// The library was compiled twice: "simd" has vector kernels, "plain" has not.
export const best = () => (WebAssembly.validate(withVectors) ? "simd" : "plain");

// The compiled library, which the page and its worker share.
export async function compile(build) {
  const url = new URL(`calyx-${build}.wasm.gz`, import.meta.url);
  const answer = await fetch(url);
  if (!answer.ok) throw new Error(`${url}: ${answer.status}`);
  const bytes = await answer.arrayBuffer();
  const packed = new Uint8Array(bytes)[0] === 0x1f; // some hosts unpack it
  return WebAssembly.compile(packed ? await unpack(bytes) : bytes);
}

function unpack(bytes) {
  const stream = new Blob([bytes]).stream();
  return new Response(stream.pipeThrough(new DecompressionStream("gzip"))).arrayBuffer();
}

export async function start(module) {
  // The C library can print; nothing here does.
  const never = new Proxy({}, { get: () => () => 52 });
  const { exports } = await WebAssembly.instantiate(module,
    { wasi_snapshot_preview1: never });
  exports._initialize();
  return new Calyx(exports);
}

class Calyx {
  constructor(wasm) {
    this.wasm = wasm;
    this.version = this.text(wasm.version());
    this.kinds = this.names(wasm.kind_name);
    this.hashes = this.names(wasm.hash_name);
    this.kernels = this.names(wasm.kernel_name); // the best first
  }

  text(at) {
    const bytes = new Uint8Array(this.wasm.memory.buffer, at);
    return new TextDecoder().decode(bytes.slice(0, bytes.indexOf(0)));
  }

  names(named) {
    const all = [];
    for (let at; (at = named(all.length)); ) all.push(this.text(at));
    return all;
  }

  out(n) {
    return [...new Float64Array(this.wasm.memory.buffer, this.wasm.out_at(), n)];
  }

  check(status) {
    if (status !== OK)
      throw new CalyxError(status, this.text(this.wasm.why_at()));
  }

  // Calls `use(address, size)` with the bytes in the library's memory.
  lend(bytes, use) {
    const at = this.wasm.take(bytes.length || 1);
    if (!at) throw new CalyxError(NO_MEMORY, "out of memory");
    try {
      new Uint8Array(this.wasm.memory.buffer, at, bytes.length).set(bytes);
      return use(at, bytes.length);
    } finally {
      this.wasm.give(at);
    }
  }

  // ---- Planning: any two of the three are not 0 ----

  plan(kind, { keys = 0, rate = 0, memory = 0 }) {
    this.check(this.wasm.plan(this.kinds.indexOf(kind), keys, rate, memory));
    const [capacity, bytes, bits, probes, at, fpr] = this.out(6);
    return { kind, keys: capacity, bytes, bits, probes, rate: at, fpr };
  }

  rateAt(kind, bits, probes, items) {
    return this.wasm.rate_at(this.kinds.indexOf(kind), bits, probes, items);
  }

  weigh(plan, { filter, store, present, keyBytes }) {
    this.check(this.wasm.weigh(this.kinds.indexOf(plan.kind), plan.keys,
      plan.bits, plan.probes, filter, store, present, keyBytes));
    const [withFilter, withTable, alone] = this.out(3);
    return { withFilter, withTable, alone };
  }

  abilities(kind) {
    const can = this.wasm.abilities(this.kinds.indexOf(kind));
    if (can < 0) this.check(can);
    return ["remove", "merge", "grow", "share"].filter((_, i) => can >> i & 1);
  }

  // ---- Filters ----

  make({ kind, capacity = 0, fpr = 0, bits = 0, probes = 0, growth = 0,
         hash = "xxh3", seed = 0n, kernel = this.kernels[0] }) {
    const at = this.wasm.make(this.kinds.indexOf(kind), capacity, fpr, bits,
      probes, growth, this.hashes.indexOf(hash), seed,
      this.kernels.indexOf(kernel));
    if (!at) throw new CalyxError(-1, this.text(this.wasm.why_at()));
    return new Filter(this, at);
  }

  // ---- Files ----

  // The filter of a head, still without bits; null if it takes more than
  // `most` bytes. Throws if the head is not sound.
  openHead(bytes, most) {
    const status = this.lend(bytes, (at, size) =>
      this.wasm.open_head(at, size, most));
    if (status === NO_MEMORY) return null;
    this.check(status);
    return new Filter(this, this.wasm.opened_filter());
  }

  checksum(bytes, seed = 0n) {
    return BigInt.asUintN(64, this.lend(bytes, (at, size) =>
      this.wasm.checksum(at, size, seed)));
  }
}

const utf8 = new TextEncoder();

class Filter {
  constructor(calyx, at) {
    this.calyx = calyx;
    this.wasm = calyx.wasm;
    this.at = at;
  }

  free() {
    this.wasm.drop(this.at);
    this.at = 0;
  }

  with(word, use) {
    return this.calyx.lend(utf8.encode(word), use);
  }

  add(word) {
    this.with(word, (at, size) => this.wasm.add(this.at, at, size));
  }

  has(word) {
    return this.with(word, (at, size) => this.wasm.has(this.at, at, size)) === 1;
  }

  remove(word) {
    return this.with(word, (at, size) =>
      this.wasm.forget(this.at, at, size)) === 1;
  }

  count(word) {
    return this.with(word, (at, size) => this.wasm.count_of(this.at, at, size));
  }

  hash(word) {
    return BigInt.asUintN(64, this.with(word, (at, size) =>
      this.wasm.hash_of(this.at, at, size)));
  }

  addHash(hash) {
    this.wasm.add_hash(this.at, hash);
  }

  hasHash(hash) {
    return this.wasm.has_hash(this.at, hash) === 1;
  }

  getBits(from, size) {
    return this.calyx.lend(new Uint8Array(size), (at) => {
      this.wasm.get_bits(this.at, from, at, size);
      return new Uint8Array(this.wasm.memory.buffer, at, size).slice();
    });
  }

  putBits(from, bytes) {
    return this.calyx.lend(bytes, (at, size) =>
      this.wasm.put_bits(this.at, from, at, size));
  }

  describe() {
    this.wasm.describe(this.at);
    const [bytes, items, capacity, rate, fill, distinct, parts, probes] =
      this.calyx.out(8);
    return { bytes, items, capacity, rate, fill, distinct, parts, probes };
  }

  addNumbers(from, n) {
    if (this.wasm.add_numbers(this.at, from, n) !== OK)
      throw new CalyxError(NO_MEMORY, "out of memory");
  }

  hasNumbers(from, n) {
    return this.wasm.has_numbers(this.at, from, n);
  }
}

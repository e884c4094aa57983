// Filters for JavaScript, over the library as WebAssembly: calyx.js, which the page
// uses, too, and batch.c. What the library knows (kinds, plans, files) comes
// from it.

import { CalyxError, Filter as Held } from "./calyx.js";
import { Plain } from "./plain.js";
import { RemoteError, hasMany, openRemote } from "./remote.js";

export { CalyxError, RemoteError };

let calyx, wasm, crypto;
let packed; // where batch.c takes packed keys from

// Once, before all else, with the library that calyx.js started: node.js and
// browser.js do it.
export function setup(library, source) {
  calyx = library;
  crypto = source;
  wasm = calyx.wasm;
  packed = { at: wasm.packed_bytes(), most: wasm.packed_most(), room: new Uint8Array() };
}

// ---- Errors and numbers ----

function check(status) {
  if (status < 0) throw new CalyxError(status, calyx.text(wasm.status_text(status)));
  return status;
}

function checkWith(status) {
  if (status < 0) throw new CalyxError(status, calyx.text(wasm.reason()));
}

function whole(number, name) {
  if (!Number.isSafeInteger(number) || number < 0)
    throw new RangeError(`${name} is a whole number, not ${number}`);
  return number;
}

function real(number, name) {
  if (typeof number !== "number" || !Number.isFinite(number) || number < 0)
    throw new RangeError(`${name} is a number from 0 on, not ${number}`);
  return number;
}

function atLeastOne(number, name) {
  if (whole(number, name) === 0) throw new RangeError(`${name} is 1 or more, not 0`);
  return number;
}

function rate(p = 0.01) {
  if (!(typeof p === "number" && p > 0 && p < 1))
    throw new RangeError(`a rate is a number between 0 and 1, not ${p}`);
  return p;
}

function oneOf(names, name, what) {
  if (!names.includes(name))
    throw new RangeError(`no ${what} is named '${name}'; there are: ${names.join(", ")}`);
  return name;
}

function checkNames(options, names) {
  for (const name of Object.keys(options)) oneOf(names, name, "option");
}

const aKind = (kind = calyx.kinds[0]) => oneOf(calyx.kinds, kind, "kind");

// ---- Keys: a string is its UTF-8; a number is the 8 bytes of its two's complement, in
// little-endian order ----

const utf8 = new TextEncoder();

function bytesOf(key) {
  if (typeof key === "string") return utf8.encode(key);
  if (key instanceof Uint8Array) return key;
  const isNumber = typeof key === "bigint" ? key >= -(1n << 63n) && key < 1n << 64n
    : Number.isSafeInteger(key);
  if (!isNumber)
    throw new TypeError("a key is a string, a Uint8Array, a whole number between " +
      `-2^53 and 2^53, or a bigint from -2^63 to 2^64 - 1, not ${String(key)}`);
  const bytes = new Uint8Array(8);
  new DataView(bytes.buffer).setBigUint64(0, BigInt(key), true);
  return bytes;
}

// Writes the bytes of a key at `used` of the room for packed keys, and returns where
// they end; -1 if there is no room for them.
function place(key, used) {
  const room = packedRoom();
  if (typeof key === "string") {
    const { read, written } = utf8.encodeInto(key, used ? room.subarray(used) : room);
    return read < key.length ? -1 : used + written;
  }
  const bytes = bytesOf(key);
  if (bytes.length > room.length - used) return -1;
  room.set(bytes, used);
  return used + bytes.length;
}

// The memory moves when it grows.
function packedRoom() {
  if (packed.room.buffer !== wasm.memory.buffer)
    packed.room = new Uint8Array(wasm.memory.buffer, packed.at, wasm.packed_room());
  return packed.room;
}

// Packs keys for one call of batch.c, from `from` on, and returns their number: 0
// if the first alone has no room.
function pack(keys, from) {
  const ends = new Uint32Array(wasm.memory.buffer, wasm.packed_ends(), packed.most);
  let used = 0, n = 0;
  for (; n < packed.most && from + n < keys.length; ends[n++] = used) {
    const end = place(keys[from + n], used);
    if (end < 0) break;
    used = end;
  }
  return n;
}

// Calls `call(address, size)` with the bytes of one key.
function withKey(key, call) {
  const size = place(key, 0);
  return size < 0 ? calyx.lend(bytesOf(key), call) : call(packed.at, size);
}

// Takes keys from an iterable, a chunk at a time: code of the iterable may use
// filters itself, so it does not run between `pack` and the call.
function* chunks(keys) {
  if (typeof keys === "string" || !keys?.[Symbol.iterator])
    throw new TypeError("many keys are an array or another iterable");
  let chunk = [];
  for (const key of keys) {
    if (chunk.push(key) < packed.most) continue;
    yield chunk;
    chunk = [];
  }
  if (chunk.length) yield chunk;
}

// Calls `several(n)` for keys that were packed, and `single(key)` for large ones.
function forMany(keys, several, single) {
  for (const chunk of chunks(keys))
    for (let at = 0; at < chunk.length; ) {
      const n = pack(chunk, at);
      if (n) several(n);
      else single(chunk[at]);
      at += n || 1;
    }
}

const results = (n) => new Uint8Array(wasm.memory.buffer, wasm.packed_results(), n);
const sum = (bytes) => bytes.reduce((all, one) => all + one, 0);

// ---- Filters ----

const unusedFilters = new FinalizationRegistry((at) => wasm.drop(at));
const unusedBuilders = new FinalizationRegistry((at) => wasm.builder_free(at));

// A filter that grows has keys that nobody knows beforehand: with a random seed, nobody
// can choose keys against it. Others have seed 0, so that filters made apart can be merged.
const aSeed = (growth) => (growth ? crypto.getRandomValues(new BigUint64Array(1))[0] : 0n);

// Options as calyx.js takes them, checked.
function wanted(n, p, options) {
  checkNames(options, ["kind", "bits", "probes", "growth", "hash", "seed"]);
  const { kind, bits = 0, probes = 0, growth = 0, hash, seed = aSeed(growth) } = options;
  if (n === undefined && !bits && !growth)
    throw new RangeError("expected a number of keys, or bits, or growth");
  if (hash !== undefined) oneOf(calyx.hashes, hash, "hash");
  return {
    kind: kind === undefined ? kind : aKind(kind), hash, seed: BigInt.asUintN(64, BigInt(seed)),
    capacity: n === undefined ? 0 : atLeastOne(n, "the number of keys"),
    fpr: n !== undefined && bits ? 0 : rate(p), bits: whole(bits, "bits"),
    probes: whole(probes, "probes"), growth: real(growth, "growth"),
  };
}

export class Filter {
  #held;

  constructor(n, p, options = {}) {
    this.#held = n instanceof Held ? n : calyx.make(wanted(n, p, options));
    unusedFilters.register(this, this.#held.at, this);
  }

  static fromBytes(bytes) {
    if (!(bytes instanceof Uint8Array)) throw new TypeError("bytes are a Uint8Array");
    return new Filter(new Held(calyx, calyx.decode(bytes).at));
  }

  free() {
    if (!this.#held.at) return;
    unusedFilters.unregister(this);
    this.#held.free();
  }

  get #at() {
    if (!this.#held.at) throw new Error("the filter was freed");
    return this.#held.at;
  }

  #with(key, call) {
    const at = this.#at;
    return withKey(key, (from, size) => call(at, from, size));
  }

  add(key) {
    return check(this.#with(key, wasm.add_key)) === 1;
  }

  has(key) {
    return this.#with(key, wasm.has) === 1;
  }

  remove(key) {
    return check(this.#with(key, wasm.forget)) === 1;
  }

  count(key) {
    return this.#with(key, wasm.count_of);
  }

  addMany(keys) {
    let fresh = 0;
    forMany(keys, (n) => {
      const status = wasm.add_packed(this.#at, n);
      fresh += sum(results(wasm.packed_done()));
      check(status);
    }, (key) => (fresh += this.add(key)));
    return fresh;
  }

  hasMany(keys) {
    const found = [];
    forMany(keys, (n) => {
      wasm.has_packed(this.#at, n);
      found.push(results(n).slice());
    }, (key) => found.push(Uint8Array.of(this.has(key))));
    const all = new Uint8Array(found.reduce((size, some) => size + some.length, 0));
    let at = 0;
    for (const some of found) {
      all.set(some, at);
      at += some.length;
    }
    return all;
  }

  get size() {
    return wasm.items(this.#at);
  }

  get info() {
    void this.#at;
    const info = this.#held.describe();
    return { ...info, strict: info.strict === 1, seed: BigInt(info.seed) };
  }

  merge(other) {
    checkWith(wasm.merge(this.#at, other.#at));
  }

  clear() {
    check(wasm.clear(this.#at));
  }

  toBytes() {
    void this.#at;
    return this.#held.encode();
  }
}

// ---- All keys first, then the filter ----

export class Builder {
  #held;

  constructor(p, options = {}) {
    checkNames(options, ["kind"]);
    this.#held = calyx.builder({ kind: aKind(options.kind), fpr: rate(p) });
    unusedBuilders.register(this, this.#held.at, this);
  }

  get #at() {
    if (!this.#held.at) throw new Error("the builder was freed");
    return this.#held.at;
  }

  add(key) {
    this.addMany([key]);
  }

  addMany(keys) {
    forMany(keys, (n) => checkWith(wasm.builder_add_packed(this.#at, n)), (key) => {
      const at = this.#at;
      calyx.check(withKey(key, (from, size) => wasm.builder_add(at, from, size)));
    });
  }

  finish() {
    void this.#at;
    return new Filter(this.#held.finish());
  }

  free() {
    if (!this.#held.at) return;
    unusedBuilders.unregister(this);
    this.#held.free();
  }
}

// ---- A file on a web server, of which only what lookups need is read ----

const unusedLayouts = new FinalizationRegistry((layout) => layout.free());

export class RemoteFilter {
  #held;

  constructor(held) {
    this.#held = held;
    unusedLayouts.register(this, held.layout, this);
  }

  static async open(url) {
    const held = await openRemote(calyx, url);
    const filter = new RemoteFilter(held), { asks, secret, kind } = held.layout.describe();
    if (asks) return filter;
    filter.free();
    throw new CalyxError(-1, secret ? "it was made with a secret key, which is not for web pages"
      : `a lookup in a ${kind} filter learns what to read only while it reads; read the file whole`);
  }

  async hasMany(keys) {
    if (!this.#held) throw new Error("the filter was freed");
    return Uint8Array.from(await hasMany(calyx, this.#held, Array.from(keys, bytesOf)));
  }

  async has(key) {
    return (await this.hasMany([key]))[0] === 1;
  }

  get info() {
    if (!this.#held) throw new Error("the filter was freed");
    const { asks, secret, ...info } = this.#held.layout.describe();
    return { ...info, strict: info.strict === 1, seed: BigInt(info.seed) };
  }

  get traffic() {
    const { requests, bytes } = this.#held.remote.file;
    return { requests, bytes };
  }

  free() {
    if (!this.#held) return;
    unusedLayouts.unregister(this);
    this.#held.layout.free();
    this.#held = null;
  }
}

// ---- Plain strings in a Redis or Valkey server, by a client of the caller ----

export class PlainFilter extends Plain {
  static async open(client, name) {
    return new PlainFilter(calyx, bytesOf, client, name).load(null);
  }
}

// ---- What is built in ----

export function plan(n, p, options = {}) {
  checkNames(options, ["kind"]);
  return calyx.plan(aKind(options.kind), { keys: atLeastOne(n, "the number of keys"), rate: rate(p) });
}

export const kinds = () => [...calyx.kinds];
export const hashes = () => [...calyx.hashes];
export const version = () => calyx.version;
export const abilities = (kind) => calyx.abilities(aKind(kind));

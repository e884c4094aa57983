// The library, as JavaScript sees it: the other half of bridge.c. filter.js and
// the page stand on it. Works in a page and in its worker, each with an instance
// of its own.

export class CalyxError extends Error {
  constructor(status, text) {
    super(text);
    this.status = status;
  }
}

const OK = 0, DAMAGED = -7;
export const NO_MEMORY = -2;

// The C library can print; nothing here does.
const imports = { wasi_snapshot_preview1: new Proxy({}, { get: () => () => 52 }), math: Math };

function begin({ exports }) {
  exports._initialize();
  return new Calyx(exports);
}

export const start = async (module) => begin(await WebAssembly.instantiate(module, imports));

// At once, which a browser refuses for large modules outside of workers.
export const startNow = (module) => begin(new WebAssembly.Instance(module, imports));

class Calyx {
  constructor(wasm) {
    this.wasm = wasm;
    this.version = this.text(wasm.version());
    this.kinds = this.names(wasm.kind_name);
    this.hashes = this.names(wasm.hash_name);
    this.kernels = this.names(wasm.kernel_name); // the best first
    this.headerMost = wasm.header_most(); // bytes
    this.lineBytes = wasm.line_bytes();
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

  // The results of the last call, by name.
  fields() {
    const view = new DataView(this.wasm.memory.buffer), all = {};
    for (let at = this.wasm.fields_at(), name; (name = view.getUint32(at, true)); at += 16) {
      const text = view.getUint32(at + 4, true);
      all[this.text(name)] = text ? this.text(text) : view.getFloat64(at + 8, true);
    }
    return all;
  }

  check(status) {
    if (status !== OK)
      throw new CalyxError(status, this.text(this.wasm.why_at()));
  }

  // Copies bytes to the library's memory; `give` frees them.
  put(bytes) {
    const at = this.wasm.take(bytes.length || 1);
    if (!at) throw new CalyxError(NO_MEMORY, "out of memory");
    new Uint8Array(this.wasm.memory.buffer, at, bytes.length).set(bytes);
    return at;
  }

  // Calls `use(address, size)` with the bytes in the library's memory.
  lend(bytes, use) {
    const at = this.put(bytes);
    try {
      return use(at, bytes.length);
    } finally {
      this.wasm.give(at);
    }
  }

  // ---- Planning: any two of keys, rate and the size, in bits or bytes, are not 0 ----

  plan(kind, { keys = 0, rate = 0, memory = 0, bits = 0, probes = 0 }) {
    this.check(this.wasm.plan(this.kinds.indexOf(kind), keys, rate, memory, bits, probes));
    return this.fields();
  }

  rateAt(kind, bits, probes, items) {
    return this.wasm.rate_at(this.kinds.indexOf(kind), bits, probes, items);
  }

  weigh(plan, { filter, store, present, keyBytes }) {
    this.check(this.wasm.weigh(this.kinds.indexOf(plan.kind), plan.keys,
      plan.bits, plan.probes, filter, store, present, keyBytes));
    return this.fields();
  }

  abilities(kind) {
    this.wasm.abilities(this.kinds.indexOf(kind));
    return Object.keys(this.fields());
  }

  can(kind, ability) {
    return this.abilities(kind).includes(ability);
  }

  // Kinds that can be filled key by key.
  addable() {
    return this.kinds.filter((kind) => this.can(kind, "add"));
  }

  // The bits of one block.
  leastBits(kind) {
    return this.wasm.least_bits(this.kinds.indexOf(kind));
  }

  // The kind with the smallest blocks: any bit is open to every key, as in
  // Bloom's paper.
  textbook() {
    return this.addable().reduce((a, b) => (this.leastBits(b) < this.leastBits(a) ? b : a));
  }

  // ---- Filters ----

  // Without a kind, the library chooses it.
  make({ kind, capacity = 0, fpr = 0, bits = 0, probes = 0, growth = 0,
         hash, seed = 0n, kernel = this.kernels[0] }) {
    const at = this.wasm.make(this.kinds.indexOf(kind), capacity, fpr, bits,
      probes, growth, this.hashes.indexOf(hash), seed,
      this.kernels.indexOf(kernel));
    if (!at) throw new CalyxError(-1, this.text(this.wasm.why_at()));
    return new Filter(this, at);
  }

  // A filter of raw bits.
  fromBits({ kind, capacity, bits, probes }, bytes) {
    const at = this.lend(bytes, (from, size) =>
      this.wasm.from_bits(this.kinds.indexOf(kind), capacity, bits, probes, from, size));
    if (!at) throw new CalyxError(-1, this.text(this.wasm.why_at()));
    return new Filter(this, at);
  }

  // A builder: what kinds without "add" are made by. Free it.
  builder({ kind, fpr }) {
    const at = this.wasm.builder_new(this.kinds.indexOf(kind), fpr);
    if (!at) throw new CalyxError(-1, this.text(this.wasm.why_at()));
    return new Builder(this, at);
  }

  // ---- Files ----

  // The filter of the bytes of a whole file.
  decode(bytes) {
    const at = this.lend(bytes, this.wasm.decode);
    if (!at) throw new CalyxError(DAMAGED, this.text(this.wasm.why_at()));
    return new Filter(this, at);
  }

  // What a file is that is no filter of Calyx, by its first 64 bytes: {name}, and what
  // these say of it; {} if they are not known.
  recognize(head, size) {
    const bytes = new Uint8Array(64);
    bytes.set(head.subarray(0, 64));
    this.lend(bytes, (at) => this.wasm.recognize(at, size));
    return this.fields();
  }

  // What the first bytes of a file say; throws if they are not sound.
  layout(bytes) {
    const at = this.lend(bytes, this.wasm.layout_new);
    if (!at) throw new CalyxError(-1, this.text(this.wasm.why_at()));
    return new Layout(this, at);
  }
}

const utf8 = new TextEncoder();

export class Filter {
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

  // Lookups of the word return no from now on, until it is added.
  allow(word) {
    this.calyx.check(this.with(word, (at, size) => this.wasm.allow(this.at, at, size)));
  }

  count(word) {
    return this.with(word, (at, size) => this.wasm.count_of(this.at, at, size));
  }

  hash(word) {
    return BigInt.asUintN(64, this.with(word, (at, size) =>
      this.wasm.hash_of(this.at, at, size)));
  }

  getBits(from, size) {
    return this.calyx.lend(new Uint8Array(size), (at) => {
      this.wasm.get_bits(this.at, from, at, size);
      return new Uint8Array(this.wasm.memory.buffer, at, size).slice();
    });
  }

  // How often each bit was set, as far as the kind counts. Of a filter with more
  // than one part, all bits of the bodies, one after the other.
  counters() {
    const { bits, bytes, parts } = this.describe();
    if (parts > 1) {
      const body = this.getBits(0, bytes);
      return Uint8Array.from({ length: 8 * bytes }, (_, bit) => body[bit >> 3] >> (bit & 7) & 1);
    }
    return this.calyx.lend(this.getBits(0, bytes), (body) =>
      this.calyx.lend(new Uint8Array(bits), (at) => {
        this.wasm.get_counters(this.at, body, at);
        return new Uint8Array(this.wasm.memory.buffer, at, bits).slice();
      }));
  }

  // The slots of a table, line by line: 0 if one is not in use, else 256 times its run,
  // from 1 on, and its remainder.
  slots() {
    return this.calyx.lend(this.getBits(0, this.describe().bits / 8), (body, size) =>
      this.calyx.lend(new Uint8Array(2 * size), (at) => {
        const n = this.wasm.get_slots(body, size, at);
        return new Uint16Array(this.wasm.memory.buffer, at, n).slice();
      }));
  }

  // The bytes of a file.
  encode() {
    const size = this.wasm.encoded_size(this.at);
    return this.calyx.lend(new Uint8Array(size), (at) => {
      this.calyx.check(this.wasm.encode(this.at, at, size));
      return new Uint8Array(this.wasm.memory.buffer, at, size).slice();
    });
  }

  describe() {
    this.wasm.describe(this.at);
    return this.calyx.fields();
  }

  addNumbers(from, n) {
    if (this.wasm.add_numbers(this.at, from, n) !== OK)
      throw new CalyxError(NO_MEMORY, "out of memory");
  }

  hasNumbers(from, n) {
    return this.wasm.has_numbers(this.at, from, n);
  }
}

class Builder {
  constructor(calyx, at) {
    this.calyx = calyx;
    this.at = at;
  }

  free() {
    this.calyx.wasm.builder_free(this.at);
    this.at = 0;
  }

  add(word) {
    this.calyx.check(this.calyx.lend(utf8.encode(word), (at, size) =>
      this.calyx.wasm.builder_add(this.at, at, size)));
  }

  addNumbers(from, n) {
    this.calyx.check(this.calyx.wasm.builder_add_numbers(this.at, from, n));
  }

  // A filter of the keys so far; more may follow.
  finish() {
    const at = this.calyx.wasm.builder_finish(this.at);
    if (!at) throw new CalyxError(-1, this.calyx.text(this.calyx.wasm.why_at()));
    return new Filter(this.calyx, at);
  }
}

const encoded = (word) => typeof word === "string" ? utf8.encode(word) : word;

// Where a file has what; the caller reads it. A word is a text, or bytes.
class Layout {
  constructor(calyx, at) {
    this.calyx = calyx;
    this.wasm = calyx.wasm;
    this.at = at;
    this.kept = [];
    this.parts = this.all(this.wasm.layout_part);
    this.sections = this.all(this.wasm.layout_section);
  }

  all(get) {
    const all = [];
    while (get(this.at, all.length)) all.push(this.calyx.fields());
    return all;
  }

  free() {
    this.wasm.layout_free(this.at);
    for (const at of this.kept) this.wasm.give(at);
    this.at = 0;
    this.kept = [];
  }

  // "good", "open" or "bad": bytes at an address in the library's memory.
  checkAt(section, from, at, size) {
    return this.calyx.text(this.wasm.layout_check(this.at,
      this.sections.indexOf(section), from, at, size));
  }

  check(section, bytes) {
    return this.calyx.lend(bytes, (at, size) => this.checkAt(section, 0, at, size));
  }

  // The library keeps the tables and the allow list until the layout is freed.
  checkKept(section, bytes) {
    const at = this.calyx.put(bytes);
    this.kept.push(at);
    return this.checkAt(section, 0, at, bytes.length);
  }

  // Is the word on the allow list, and so not in the filter?
  allows(word) {
    return !!this.calyx.lend(encoded(word), (at, size) =>
      this.wasm.layout_allows(this.at, at, size));
  }

  // `set`: the number of bits set in each part, or nothing if that is not known.
  describe(set) {
    if (!set) {
      this.wasm.layout_describe(this.at, 0);
      const { rate, fill, distinct, ...known } = this.calyx.fields();
      return known;
    }
    const words = new Uint8Array(BigUint64Array.from(set, BigInt).buffer);
    this.calyx.lend(words, (at) => this.wasm.layout_describe(this.at, at));
    return this.calyx.fields();
  }

  hash(word) {
    return this.calyx.lend(encoded(word), (at, size) => this.wasm.layout_hash(this.at, at, size));
  }

  // The places in the file that a lookup in this part reads.
  lines(part, hash) {
    return this.calyx.lend(new Uint8Array(512), (at) => {
      const n = this.wasm.layout_lines(this.at, part, hash, at);
      return [...new Float64Array(this.wasm.memory.buffer, at, n)];
    });
  }

  // The bits that a key sets in its line, counted from the high bit of each byte on, as
  // Redis does; null if the kind has them in more than one line.
  bits(part, hash) {
    return this.calyx.lend(new Uint8Array(64), (at) => {
      if (this.wasm.layout_add(this.at, part, hash, at) !== OK) return null;
      const line = new Uint8Array(this.wasm.memory.buffer, at, 64);
      return Array.from({ length: 512 }, (_, bit) => bit)
        .filter((bit) => line[bit >> 3] >> (7 - (bit & 7)) & 1);
    });
  }

  // What a lookup in this part tests, in its order: each time some bits, whose sum
  // modulo 2 must be `sum`. None if the kind does not answer by such tests.
  tests(part, hash) {
    const from = this.wasm.lookup_tests(this.at, part, hash), all = [];
    const numbers = new Float64Array(this.wasm.memory.buffer, from);
    for (let i = 0; numbers[i] >= 0; i += 3) {
      const test = all[numbers[i + 1]] ??= { bits: [], sum: numbers[i + 2] };
      test.bits.push(numbers[i]);
    }
    return all;
  }

  // The bits that a lookup in this part tests, if it tests them one by one.
  probes(part, hash) {
    const all = this.tests(part, hash);
    return all.every(({ bits, sum }) => bits.length === 1 && sum === 1) ? all.flatMap(({ bits }) => bits) : [];
  }

  // Whether this part has the key, and the part to look into next; 0: none.
  answer(part, hash, bytes) {
    return this.calyx.lend(bytes, (at) =>
      [this.wasm.layout_has(this.at, part, hash, at), this.wasm.layout_next(this.at, part, hash, at)]);
  }
}

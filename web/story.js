// A small filter and what is done to it: a list of deeds, such as add rose, look
// up iris. The filter is made anew from the deeds before the one that is shown.
// Which bits a word has is not computed here: the library says it.
//
// A lookup has one of three forms. "bits": all bits of the word must be 1. "sums":
// sums of some bits, modulo 2, must be certain bits, which makes equations.
// "codes": some slot at the word's place must have its code.

export const ADD = "+", MANY = "*", REMOVE = "-", ASK = "?", ALLOW = "!";
export const TIMES = 15; // what MANY stands for: as far as a counter counts
export const LONGEST = 200; // characters of a word
export const MOST_DEEDS = 300;

// As in a link: "+rose,?iris".
export function parse(text) {
  const all = [];
  for (const each of text.split(",").slice(0, MOST_DEEDS)) {
    if (![ADD, MANY, REMOVE, ASK, ALLOW].includes(each[0])) continue;
    try {
      const word = decodeURIComponent(each.slice(1));
      if (word && word.length <= LONGEST) all.push({ deed: each[0], word });
    } catch {
      // half a character, from a link that was cut
    }
  }
  return all;
}

export const write = (deeds) => deeds.map(({ deed, word }) =>
  deed + encodeURIComponent(word.toWellFormed?.() ?? word)).join(",");

// Words that can be spoken: three pairs of a consonant and a vowel. There are 421,875,
// and a list of them would take 0.1 seconds to make.
const pairs = [..."bdfghklmnprstvz"].flatMap((c) => [..."aeiou"].map((v) => c + v));
export const SPOKEN = pairs.length ** 3;

export function spokenWord(i) {
  const n = pairs.length, pair = (at) => pairs[Math.floor(at) % n];
  return pair(i) + pair(i / n / n) + pair(i / n);
}

// The sizes and numbers of probes, of those given, that a kind can have.
export const sizesOf = (calyx, kind, sizes) =>
  sizes.filter((bits) => possible(calyx, { kind, bits, probes: 0 })?.bits === bits);
export const probesOf = (calyx, kind, bits, probes) =>
  probes.filter((k) => possible(calyx, { kind, bits, probes: k }));

function possible(calyx, { kind, bits, probes }) {
  try {
    const filter = calyx.make({ kind, capacity: CAPACITY, bits, probes });
    const is = filter.describe();
    calyx.layout(filter.encode()).free(); // is it one that a file can have?
    filter.free();
    return is;
  } catch {
    return null;
  }
}

const CAPACITY = 20; // keys; the rate of a small filter follows from its bits
const STATIC_RATE = 0.05; // of kinds whose size follows from their keys
const SAMPLES = 40; // hashes, to learn how large a later part is
const LAST_HASH = (1n << 64n) - 1n;

export class Story {
  constructor(calyx, { kind, bits, probes }) {
    this.calyx = calyx;
    this.shape = { kind, bits, probes, capacity: CAPACITY };
    this.adds = calyx.can(kind, "add"); // else it is made anew from all words
    this.removes = !this.adds || calyx.can(kind, "remove");
    const filter = this.empty(), is = filter.describe();
    this.bits = is.bits;
    this.probes = is.probes;
    this.shape.probes = is.probes;
    this.open = calyx.leastBits(kind) < 64; // every bit to every key
    this.block = this.open ? this.bits : calyx.leastBits(kind);
    this.learn(filter);
    const tests = this.layout.tests(0, filter.hash(""));
    this.form = !tests.length ? "codes" : tests.some((test) => test.bits.length > 1) ? "sums" : "bits";
    this.repeats = calyx.can(kind, "count"); // what it stores of a word
    this.counts = this.form === "bits" && this.repeats; // how often a bit was set
    filter.free();
  }

  free() {
    this.layout.free();
  }

  empty() {
    return this.adds ? this.calyx.make(this.shape) : this.build([]);
  }

  build(words) {
    const builder = this.calyx.builder({ kind: this.shape.kind, fpr: STATIC_RATE });
    try {
      for (const word of words) builder.add(word);
      return builder.finish();
    } finally {
      builder.free();
    }
  }

  // What a filter of this shape tests. One that is made anew has another shape.
  learn(filter, words = []) {
    const key = JSON.stringify(words);
    if (this.learned === key) return;
    this.learned = key;
    this.layout?.free();
    this.layout = this.calyx.layout(filter.encode());
    this.seen = new Map(); // word -> what its lookup tests
    this.parts = new Map(); // part -> where its sums are
  }

  // The cells of the picture: how often each bit was set, or the codes in slots.
  read(filter) {
    return this.form === "codes" ? filter.slots() : filter.counters();
  }

  memo(word, make) {
    if (!this.seen.has(word)) {
      const filter = this.empty();
      this.seen.set(word, make(filter));
      filter.free();
    }
    return this.seen.get(word);
  }

  // The bits that a lookup tests one by one, in its order.
  bitsOf(word) {
    if (this.form !== "bits") return [];
    return this.memo(word, (filter) => this.layout.probes(0, filter.hash(word)));
  }

  // The cells that belong to a word.
  cellsOf(word, cells) {
    if (this.form === "bits") return this.bitsOf(word);
    if (this.form === "sums") return this.sumsOf(word, cells).tests.flatMap(({ bits }) => bits);
    const { line, code } = this.codeOf(word), each = this.slotsOf(cells);
    return [...cells.keys()].filter((at) => cells[at] === code && Math.floor(at / each) === line);
  }

  // The equations of a word: `tests` of bits among `cells`. They are in the first
  // part whose flag for the word is 0; if it is 1, `tests` is empty.
  sumsOf(word, cells) {
    const parts = this.layout.parts;
    const all = this.memo(word, (filter) =>
      parts.map((_, part) => this.layout.tests(part, filter.hash(word))));
    let from = 0;
    for (const [part, tests] of all.entries()) {
      const [flag] = tests.find(({ bits }) => bits.length === 1).bits;
      const bumped = !!cells[from + flag];
      if (!bumped || part === parts.length - 1) {
        const shifted = tests.filter(({ bits }) => bits.length > 1)
          .map(({ bits, sum }) => ({ sum, bits: bits.map((bit) => from + bit) }));
        return { part, from, flag: from + flag, bumped, tests: bumped ? [] : shifted };
      }
      from += parts[part].bits;
    }
  }

  // How a part of equations is laid out: rows that they have in each group, and
  // how wide a row is; the flags of the groups. By the tests of some hashes.
  groupsOf(part) {
    if (!this.parts.has(part)) {
      const hashes = part ? Array.from({ length: SAMPLES }, (_, i) => BigInt(i + 1) * (LAST_HASH / 41n)) : [LAST_HASH];
      const all = hashes.map((hash) => this.layout.tests(part, hash));
      const flags = all.map((tests) => tests.find(({ bits }) => bits.length === 1).bits[0]);
      const sums = all[0].filter(({ bits }) => bits.length > 1), first = flags[0] & ~511; // a line of flags
      this.parts.set(part, { rows: sums.length, width: sums[1].bits[0] - sums[0].bits[0],
        flags: first, groups: Math.max(...flags) - first + 1 });
    }
    return this.parts.get(part);
  }

  // The code of a word: what it leaves in an empty filter, and where.
  codeOf(word) {
    return this.memo(word, (filter) => {
      filter.add(word);
      const cells = this.read(filter), at = cells.findIndex((code) => code), code = cells[at];
      return { line: Math.floor(at / this.slotsOf(cells)), code, run: code >> 8, remainder: code & 255 };
    });
  }

  // How many slots a line has.
  slotsOf(cells) {
    return cells.length / (this.bits / this.block);
  }

  // The blocks of the picture, each a list of cells; `columns` of them in a row.
  blocksOf(view) {
    const range = (from, n) => Array.from({ length: n }, (_, i) => from + i);
    if (this.form === "sums") {
      const { part = 0, from = 0 } = view;
      const { rows, width, groups, flags } = this.groupsOf(part);
      return { columns: width, blocks: range(0, groups).map((g) =>
        [...range(from + g * rows * width, rows * width), from + flags + g]) };
    }
    const codes = this.form === "codes", cells = codes ? view.before.length : this.bits;
    const each = codes ? this.slotsOf(view.before) : Math.min(this.block, cells);
    return { columns: codes ? each / 4 : cells <= 8 ? 8 : Math.min(each, cells <= 128 ? 16 : 32),
      blocks: range(0, Math.ceil(cells / each)).map((i) => range(i * each, each)) };
  }

  // The block of a word, or -1.
  blockOf(word) {
    return this.form === "bits" ? Math.floor(this.bitsOf(word)[0] / this.block)
      : this.form === "codes" ? this.codeOf(word).line : -1;
  }

  // Do the deed; `state` is {filter, words, allowed}. The filter becomes another
  // one if bits were cleared by force, or if it is made anew from all words.
  perform(state, { deed, word }) {
    const { words, allowed } = state;
    if (deed === ASK) return;
    if (deed === ALLOW) {
      if (words.has(word)) return; // it would be denied
      allowed.add(word);
      state.filter.allow(word);
      return;
    }
    const had = state.filter.has(word), n = words.get(word) ?? 0;
    if (deed !== REMOVE) {
      words.set(word, n + (deed === MANY ? TIMES : 1));
      allowed.delete(word);
    } else if (had && n > 1 && this.removes) words.set(word, n - 1);
    else if (had) words.delete(word);
    if (!this.adds) return this.replace(state, this.build(words.keys()));
    if (deed === ADD) state.filter.add(word);
    if (deed === MANY) for (let i = 0; i < TIMES; i++) state.filter.add(word);
    if (deed !== REMOVE && !state.filter.has(word)) words.delete(word); // no room
    if (deed !== REMOVE || !had) return;
    if (this.removes) return void state.filter.remove(word);
    if (this.form === "codes") return this.replace(state, this.filled(words.keys()));
    const body = state.filter.getBits(0, Math.ceil(this.bits / 8));
    for (const bit of this.bitsOf(word)) body[bit >> 3] &= ~(1 << (bit & 7));
    this.replace(state, this.calyx.fromBits(this.shape, body));
  }

  filled(words) {
    const filter = this.empty();
    for (const word of words) filter.add(word);
    return filter;
  }

  replace(state, filter) {
    state.filter.free();
    state.filter = filter;
    for (const word of state.allowed) filter.allow(word);
  }

  // The filter after these deeds, how often each word was added, and the words on
  // the allow list.
  after(deeds) {
    const state = { filter: this.empty(), words: new Map(), allowed: new Set() };
    for (const each of deeds) this.perform(state, each);
    return state;
  }

  // All that is to be drawn of the deed number `shown`.
  look(deeds, shown) {
    const now = deeds[shown];
    const state = this.after(deeds.slice(0, shown));
    const denied = () => new Set([...state.words.keys()].filter((word) => !state.filter.has(word)));
    const view = { now, before: this.read(state.filter), words: new Map(state.words),
      allowedBefore: new Set(state.allowed), lostBefore: denied(), bits: [], tests: [] };
    if (now) {
      view.hash = state.filter.hash(now.word);
      view.had = state.filter.has(now.word);
      this.perform(state, now);
    }
    view.after = this.read(state.filter);
    if (view.after.length !== view.before.length) view.before = view.after; // another size
    Object.assign(view, { wordsAfter: state.words, allowed: state.allowed, lost: denied() });
    if (!this.adds) this.learn(state.filter, [...state.words.keys()]);
    if (now) Object.assign(view, this.testsOf(now, view));
    if (now && this.form === "codes") { // which may be spilled
      const { filter } = this.after(deeds.slice(0, shown + 1).filter(({ deed }) => deed !== ALLOW));
      view.passes = filter.has(now.word);
      view.spilled = view.passes && now.deed !== REMOVE && !this.cellsOf(now.word, view.cells).length;
      filter.free();
    }
    const { fill, rate } = state.filter.describe();
    state.filter.free();
    return Object.assign(view, { fill, rate });
  }

  // What a lookup of the word tests, and among which cells; `passes` if these have
  // the word, whatever the allow list says.
  testsOf({ deed, word }, { before, after }) {
    if (this.form === "bits") {
      const bits = this.bitsOf(word), tests = bits.map((bit) => ({ bits: [bit], sum: 1 }));
      return { bits, tests, cells: before, passes: bits.every((bit) => before[bit]) };
    }
    const cells = deed === ASK ? before : after;
    if (this.form === "codes" || deed === REMOVE) return { cells };
    const sums = this.sumsOf(word, cells);
    return { cells, ...sums, passes: !sums.bumped && sums.tests.every((test) => sumOf(test, cells) === test.sum) };
  }

  // A word that was never added and is found, of `first` and then of those that can be
  // spoken; "" if there is none. Stops now and then to let the page breathe.
  async falsePositive(deeds, first) {
    const { filter, words } = this.after(deeds);
    let found = "", tries = 0;
    while (tries < first.length + SPOKEN) {
      const word = first[tries] ?? spokenWord(tries - first.length);
      if (++tries % 20000 === 0) await new Promise((go) => setTimeout(go));
      if (!filter.has(word) || words.has(word)) continue;
      found = word;
      break;
    }
    filter.free();
    return { found, tries };
  }
}

export const sumOf = ({ bits }, cells) => bits.reduce((sum, bit) => sum ^ Number(cells[bit] > 0), 0);

// Steps of a deed: the hash, the place, each test up to the first that fails if
// that decides, the answer.
export function stepsOf(view) {
  if (!view.now) return { probes: 0, last: 0, zero: -1 };
  const zero = adding(view.now) || view.had ? -1
    : view.tests.findIndex((test) => sumOf(test, view.cells) !== test.sum);
  const probes = zero >= 0 ? zero + 1 : view.tests.length;
  return { zero, probes, last: probes + 2 };
}

export const adding = ({ deed }) => deed === ADD || deed === MANY;

// What came of a deed, in one word. "false": a false positive; "lost": a false
// negative; "listed": no, by the allow list.
export function verdictOf(view) {
  const { deed, word } = view.now;
  const added = view.words.has(word);
  if (adding(view.now)) {
    if (!view.wordsAfter.has(word)) return "refused";
    if (view.bits.some((bit) => view.after[bit] === TIMES)) return "full";
    return view.had ? "again" : "added";
  }
  if (deed === ALLOW) return added ? "kept" : view.had ? "allowed" : "needless";
  if (deed === ASK) {
    if (view.had) return added ? "maybe" : "false";
    return added ? "lost" : view.allowed.has(word) && view.passes ? "listed" : "no";
  }
  if (!view.had || (!added && !view.bits.length && view.before.every((n, i) => n === view.after[i]))) return "notthere";
  const killed = [...view.lost].some((other) => !view.lostBefore.has(other));
  if (!added) return killed ? "wrong" : "wronged";
  return killed ? "killed" : "removed";
}

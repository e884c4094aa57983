// A small filter and what is done to it: a list of deeds, such as add rose, look
// up iris. The filter is made anew from the deeds before the one that is shown.
// Which bits a word has is not computed here: the library says it.

export const ADD = "+", MANY = "*", REMOVE = "-", ASK = "?";
export const TIMES = 15; // what MANY stands for: as far as a counter counts
export const LONGEST = 200; // characters of a word
export const MOST_DEEDS = 300;

// As in a link: "+rose,?iris".
export function parse(text) {
  const all = [];
  for (const each of text.split(",").slice(0, MOST_DEEDS)) {
    if (![ADD, MANY, REMOVE, ASK].includes(each[0])) continue;
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

// Words that can be spoken: three pairs of a consonant and a vowel.
export function* syllables() {
  const pairs = [..."bdfghklmnprstvz"].flatMap((c) => [..."aeiou"].map((v) => c + v));
  for (const a of pairs) for (const b of pairs) for (const c of pairs) yield c + a + b;
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
    filter.free();
    return is;
  } catch {
    return null;
  }
}

const CAPACITY = 20; // keys; the rate of a small filter is that of its bits
const STATIC_RATE = 0.05; // of kinds whose size follows from their keys

export class Story {
  constructor(calyx, { kind, bits, probes }) {
    this.calyx = calyx;
    this.shape = { kind, bits, probes, capacity: CAPACITY };
    this.adds = calyx.can(kind, "add"); // else it is made anew from all words
    this.removes = !this.adds || calyx.can(kind, "remove");
    this.counts = calyx.can(kind, "count");
    const filter = this.empty(), is = filter.describe();
    this.bits = is.bits;
    this.probes = is.probes;
    this.shape.probes = is.probes;
    this.open = calyx.leastBits(kind) < 64; // every bit to every key
    this.block = this.open ? this.bits : calyx.leastBits(kind);
    this.layout = calyx.layout(filter.encode());
    this.tests = this.layout.probes(0, filter.hash("")).length > 0; // single bits?
    this.seen = new Map(); // word -> its bits
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

  // The bits that a lookup tests, in its order; none if the kind does not test
  // single bits.
  bitsOf(word) {
    if (!this.tests) return [];
    if (!this.seen.has(word)) {
      const filter = this.empty();
      this.seen.set(word, this.layout.probes(0, filter.hash(word)));
      filter.free();
    }
    return this.seen.get(word);
  }

  blockOf(word) {
    return this.tests ? Math.floor(this.bitsOf(word)[0] / this.block) : -1;
  }

  // Do the deed; returns the filter, which is another one if bits were cleared
  // by force, or if it is made anew from `words`.
  perform(filter, { deed, word }, words) {
    if (!this.adds) {
      if (deed === ASK) return filter;
      filter.free();
      return this.build(words.keys());
    }
    if (deed === ADD) filter.add(word);
    if (deed === MANY) for (let i = 0; i < TIMES; i++) filter.add(word);
    if (deed !== REMOVE) return filter;
    if (this.removes) {
      filter.remove(word);
      return filter;
    }
    if (!filter.has(word)) return filter;
    const body = filter.getBits(0, Math.ceil(this.bits / 8));
    for (const bit of this.bitsOf(word)) body[bit >> 3] &= ~(1 << (bit & 7));
    filter.free();
    return this.calyx.fromBits(this.shape, body);
  }

  // The filter after these deeds, and how often each word was added.
  after(deeds) {
    let filter = this.empty();
    const words = new Map();
    for (const each of deeds) {
      note(words, each, each.deed === REMOVE && filter.has(each.word), this.removes);
      filter = this.perform(filter, each, words);
    }
    return { filter, words };
  }

  // All that is to be drawn of the deed number `shown`.
  look(deeds, shown) {
    const now = deeds[shown];
    const { filter, words } = this.after(deeds.slice(0, shown));
    const view = { now, before: filter.counters(), words: new Map(words) };
    let last = filter;
    if (now) {
      view.hash = filter.hash(now.word);
      view.had = filter.has(now.word);
      view.bits = this.bitsOf(now.word);
      note(words, now, view.had && now.deed === REMOVE, this.removes);
      last = this.perform(filter, now, words);
    }
    view.after = last.counters();
    if (view.after.length !== view.before.length) view.before = view.after; // another size
    view.wordsAfter = words;
    view.lost = new Set([...words.keys()].filter((word) => !last.has(word)));
    view.lostBefore = view.lost;
    if (now?.deed === REMOVE) {
      const { filter: old } = this.after(deeds.slice(0, shown));
      view.lostBefore = new Set([...view.words.keys()].filter((word) => !old.has(word)));
      old.free();
    }
    const is = last.describe();
    view.fill = is.fill;
    view.rate = is.rate;
    last.free();
    return view;
  }

  // A word that was never added and is found, from `candidates`; "" if there is
  // none. Stops now and then to let the page breathe.
  async falsePositive(deeds, candidates) {
    const { filter, words } = this.after(deeds);
    let found = "", tries = 0;
    for (const word of candidates) {
      if (++tries % 20000 === 0) await new Promise((go) => setTimeout(go));
      if (!filter.has(word) || words.has(word)) continue;
      found = word;
      break;
    }
    filter.free();
    return { found, tries };
  }
}

function note(words, { deed, word }, had, removes) {
  const n = words.get(word) ?? 0;
  if (deed === ADD) words.set(word, n + 1);
  if (deed === MANY) words.set(word, n + TIMES);
  if (deed !== REMOVE || !had) return;
  if (n > 1 && removes) words.set(word, n - 1);
  else words.delete(word);
}

// Steps of a deed: the hash, the block, each probe up to the first zero if that
// decides, the answer.
export function stepsOf(view) {
  if (!view.now) return { probes: 0, last: 0, zero: -1 };
  const adds = view.now.deed === ADD || view.now.deed === MANY;
  const zero = adds || view.had ? -1 : view.bits.findIndex((bit) => !view.before[bit]);
  const probes = zero >= 0 ? zero + 1 : view.bits.length;
  return { zero, probes, last: probes + 2 };
}

// What came of a deed, in one word. "false": a false positive; "lost": a false
// negative.
export function verdictOf(view) {
  const { deed, word } = view.now;
  const added = view.words.has(word);
  if (deed === ADD || deed === MANY) {
    if (view.bits.some((bit) => view.after[bit] === TIMES)) return "full";
    return view.had ? "again" : "added";
  }
  if (deed === ASK) {
    if (view.had) return added ? "maybe" : "false";
    return added ? "lost" : "no";
  }
  if (!view.had) return "notthere";
  const killed = [...view.lost].some((other) => !view.lostBefore.has(other));
  if (!added) return killed ? "wrong" : "wronged";
  return killed ? "killed" : "removed";
}

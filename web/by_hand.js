// A filter whose positions are given by the reader, as in the pictures of articles: the
// word "x→0.4.7" has the bits 0, 4 and 7. It answers to the calls of the library that
// story.js makes, so that See can draw it; no hash is computed.

export const BY_HAND = "by-hand";
export const MOST_BITS = 1024;

// "x -> 0, 4, 7", "x: 0 4 7" or "x→0.4.7" as the last of these; "" if it is none.
export function withPositions(text, bits) {
  const [, name, list] = text.match(/^(.+?)\s*(?:→|->|=>|[:=：])\s*(\d[\d\s.,，、]*)$/) ?? [];
  const all = list?.split(/\D+/).filter(Boolean).map(Number);
  return all?.length && all.every((at) => at < bits) ? `${name}→${all.join(".")}` : "";
}

export const positionsOf = (word) => word.slice(word.lastIndexOf("→") + 1).split(".").map(Number);

class Filter {
  constructor(bits, set = new Uint8Array(bits)) {
    Object.assign(this, { bits, set, allowed: new Set() });
  }

  add(word) {
    for (const at of positionsOf(word)) this.set[at] = 1;
  }

  has(word) {
    return !this.allowed.has(word) && positionsOf(word).every((at) => this.set[at]);
  }

  allow(word) {
    this.allowed.add(word);
  }

  describe() {
    const fill = this.set.reduce((sum, bit) => sum + bit, 0) / this.bits;
    return { bits: this.bits, probes: 0, fill, rate: NaN };
  }

  getBits(from, n) {
    const bytes = new Uint8Array(n);
    this.set.forEach((bit, at) => (bytes[at >> 3] |= bit << (at & 7)));
    return bytes;
  }

  counters() {
    return this.set.slice();
  }

  hash(word) {
    return word;
  }

  encode() {}
  free() {}
}

const layout = {
  parts: [{}],
  probes: (part, word) => positionsOf(word || "→0"),
  tests: (part, word) => layout.probes(part, word).map((bit) => ({ bits: [bit], sum: 1 })),
  free() {},
};

export const byHand = {
  can: (kind, ability) => ability === "add",
  leastBits: () => 1,
  make: ({ bits }) => new Filter(bits),
  layout: () => layout,
  fromBits: ({ bits }, body) => new Filter(bits, Uint8Array.from({ length: bits }, (_, at) => body[at >> 3] >> (at & 7) & 1)),
};

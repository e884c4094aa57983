// Two figures of the passages that are no rows of bits: the cache lines that a lookup
// reads, and equations that the reader solves.
import { make } from "./dom.js";
import { t } from "./text/text.js";

const WAIT = 80; // ns for a line that is not in the cache
const LINE = 512, BITS = 256 * LINE; // of each filter

// The lines that a lookup of a word reads, in a textbook filter and in one of blocks,
// as the library says.
export class Lines {
  constructor(element, calyx) {
    this.element = element;
    this.filters = [calyx.textbook(), calyx.addable()[0]].map((kind) => {
      const filter = calyx.make({ kind, capacity: 10000, bits: BITS, probes: 7 });
      return { kind, filter, layout: calyx.layout(filter.encode()) };
    });
  }

  draw(word) {
    this.element.replaceChildren(...this.filters.map(({ kind, filter, layout }) =>
      this.memory(kind, new Set(layout.probes(0, filter.hash(word)).map((bit) => Math.floor(bit / LINE))))));
  }

  memory(kind, read) {
    const cells = Array.from({ length: BITS / LINE }, (_, i) => make("span", { class: read.has(i) ? "memory read" : "memory" }));
    const wait = t("lines.wait", { n: read.size, x: read.size * WAIT });
    return make("div", { class: "lines" },
      make("p", {}, make("b", {}, t(read.size > 1 ? "lines.spread" : "lines.block", { kind })), " ", wait),
      make("div", { class: "memories", role: "img", "aria-label": wait }, ...cells));
  }
}

// Three words, each an equation on twelve cells: the sum of the cells that its hash picks
// has to be even or odd, as another bit of its hash says.
const CELLS = 12, PICKS = 3;

export class Equations {
  constructor(element) {
    this.element = element;
    this.cells = Array(CELLS).fill(0);
  }

  // The library computes the hashes. They pick what they pick in a ribbon filter: a
  // start, and cells close after it.
  of({ word, hash }) {
    const start = Number(hash >> 32n) % (CELLS - 5), picks = new Set([start]);
    for (let h = hash; picks.size < PICKS; h >>= 3n) picks.add(start + 1 + Number(h & 7n) % 5);
    const cells = [...picks].sort((a, b) => a - b), wanted = Number(hash >> 60n & 1n);
    return { word, cells, wanted, sum: cells.reduce((sum, at) => sum ^ this.cells[at], 0) };
  }

  draw(words) {
    const all = words.map((each) => this.of(each));
    const cells = this.cells.map((value, at) => {
      const owners = all.flatMap(({ cells: of }, i) => (of.includes(at) ? [i] : []));
      const cell = make("button", { type: "button", class: "cell", "data-cell": at, "aria-pressed": String(!!value) }, String(value));
      cell.append(make("span", { class: "owners" }, ...owners.map((i) => make("i", { class: "c" + i }))));
      cell.onclick = () => {
        this.cells[at] ^= 1;
        this.draw(words);
        this.element.querySelector(`[data-cell="${at}"]`).focus({ preventScroll: true });
      };
      return cell;
    });
    const rows = all.map(({ word, cells: of, wanted, sum }, i) => make("p", { class: `equation c${i}`, "data-right": String(sum === wanted) },
      make("b", {}, word), " ", of.map((at) => this.cells[at]).join(" + "), ` = ${sum} `,
      make("span", {}, sum === wanted ? "✓" : t("equations.want", { x: wanted }))));
    const right = all.filter(({ sum, wanted }) => sum === wanted).length;
    this.element.replaceChildren(make("div", { class: "twelve" }, ...cells), ...rows,
      make("p", { class: "equations-say", role: "status" }, t(right === all.length ? "equations.solved" : "equations.left", { x: right, y: all.length })));
  }
}

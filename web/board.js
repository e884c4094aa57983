// The bits of a small filter as cells, with a hash above them and wires from it
// to the bits of a word. Used by the first screen, See and Learn.
import { make, quoted, svg } from "./dom.js";
import { ADD, ASK, MANY, REMOVE, TIMES, stepsOf } from "./story.js";

export class Board {
  constructor(element) {
    this.element = element;
    this.hash = make("div", { class: "hash-line" });
    this.grid = make("div", { class: "cells", role: "img" });
    this.wires = svg("svg", { class: "wires", "aria-hidden": "true" });
    element.classList.add("board");
    element.replaceChildren(this.hash, this.grid, this.wires);
    this.shape = "";
    this.cells = [];
    this.blocks = [];
    new ResizeObserver(() => this.wire()).observe(element);
  }

  // Cells are made once for a shape, so that changes can be animated.
  fit({ bits, block }) {
    const shape = `${bits} ${block}`;
    if (this.shape === shape) return;
    this.shape = shape;
    this.cells = [];
    this.blocks = [];
    const columns = Math.min(bits, block, bits <= 128 ? 16 : 32);
    for (let from = 0; from < bits; from += block) {
      const cells = [];
      for (let bit = from; bit < Math.min(bits, from + block); bit++)
        cells.push(make("span", { class: "bit", "data-bit": bit }));
      this.cells.push(...cells);
      this.blocks.push(make("div", { class: `block columns-${columns}` }, ...cells));
    }
    this.grid.replaceChildren(...this.blocks);
    this.grid.classList.toggle("counting", false);
  }

  // Draw a view of a story up to a step. `label` is read by screen readers.
  draw(story, view, step, label, { lit = [] } = {}) {
    this.fit(story.adds ? story : { bits: view.after.length, block: view.after.length });
    this.grid.classList.toggle("counting", story.counts);
    const steps = stepsOf(view);
    const probed = Math.max(0, Math.min(step - 1, steps.probes));
    const final = step >= steps.last;
    const changes = view.now && view.now.deed !== ASK;
    const probes = view.now ? view.bits.slice(0, probed) : [];
    const removed = view.now?.deed === REMOVE;
    this.cells.forEach((cell, bit) => {
      const passed = changes && (final || probes.includes(bit));
      const n = (passed ? view.after : view.before)[bit];
      const fresh = passed && n > view.before[bit];
      const gone = passed && removed && n < view.before[bit];
      const zero = steps.zero >= 0 && probed > steps.zero && bit === view.bits[steps.zero];
      const names = ["bit", n && "set", n === TIMES && "full", fresh && "new", gone && "gone",
        probes.includes(bit) && "probe", zero && "zero", lit.includes(bit) && "lit"];
      cell.className = names.filter(Boolean).join(" ");
      const text = story.counts && n ? String(n) : "";
      if (cell.textContent !== text) cell.textContent = text;
    });
    const here = view.now && step >= 1 && this.blocks.length > 1 ? story.blockOf(view.now.word) : -1;
    this.blocks.forEach((block, i) => block.classList.toggle("here", i === here));
    this.grid.setAttribute("aria-label", label);
    this.drawHash(story, view, step);
    this.targets = view.now && step > 0 ? probes.map((bit) => ({ bit,
      one: view.before[bit] > 0, adds: view.now.deed === ADD || view.now.deed === MANY })) : [];
    this.wire();
  }

  // The word and its hash; of the hash, the digits that choose the first place.
  drawHash(story, view, step) {
    if (!view.now) return this.hash.replaceChildren("\u00a0");
    const hex = view.hash.toString(16).padStart(16, "0");
    const chosen = step >= 1 ? leading(story, view) : 0;
    this.hash.replaceChildren(
      make("b", { class: "bubble" }, quoted(view.now.word)), " → ",
      make("span", { class: "hash" }, "0x", make("mark", {}, hex.slice(0, chosen)), hex.slice(chosen)));
  }

  wire() {
    const box = this.element.getBoundingClientRect(), targets = this.targets ?? [];
    if (!box.width || !targets.length) return this.wires.replaceChildren();
    this.wires.setAttribute("viewBox", `0 0 ${box.width} ${box.height}`);
    const from = (this.hash.querySelector(".hash") ?? this.hash).getBoundingClientRect();
    const x0 = from.left + Math.min(from.width, 60) / 2 - box.left, y0 = from.bottom - box.top;
    this.wires.replaceChildren(...targets.filter(({ bit }) => this.cells[bit]).map(({ bit, one, adds }) => {
      const cell = this.cells[bit].getBoundingClientRect();
      const x = cell.left + cell.width / 2 - box.left, y = cell.top - box.top;
      const bend = (y0 + y) / 2;
      return svg("path", { class: adds || one ? "one" : "zero",
        d: `M${x0} ${y0}C${x0} ${bend} ${x} ${bend} ${x} ${y}` });
    }));
  }
}

// How many hexadecimal digits of the hash choose the first bit, or the block,
// if its high bits do: which is compared with what the library did. Else 0.
export function leading(story, view) {
  if (!story.tests) return 0;
  const places = story.open ? story.bits : story.bits / story.block;
  const chosen = Number(view.hash * BigInt(places) >> 64n);
  const is = story.open ? view.bits[0] : Math.floor(view.bits[0] / story.block);
  return places > 1 && chosen === is ? Math.max(1, Math.ceil(Math.log2(places) / 4)) : 0;
}

// The cells of a small filter, with a hash above them and wires from it to the
// bits of a word. Used by the first screen, See and Learn.
import { make, quoted, svg } from "./dom.js";
import { ASK, REMOVE, TIMES, adding, stepsOf } from "./story.js";

export class Board {
  constructor(element) {
    this.element = element;
    this.hash = make("div", { class: "hash-line" });
    this.grid = make("div", { class: "cells", role: "img" });
    this.wires = svg("svg", { class: "wires", "aria-hidden": "true" });
    element.classList.add("board");
    element.replaceChildren(this.hash, this.grid, this.wires);
    this.shape = "";
    this.cells = []; // by number; not all are drawn
    this.blocks = [];
    new ResizeObserver(() => this.wire()).observe(element);
  }

  // Cells are made once for a shape, so that changes can be animated.
  fit({ columns, blocks }, form = "bits") {
    const shape = [form, columns, blocks.map((block) => block[0]), blocks[0].length].join();
    if (this.shape === shape) return;
    this.shape = shape;
    this.cells = [];
    this.blocks = blocks.map((block) => {
      const cells = block.map((at) => (this.cells[at] = make("span", { class: "bit", "data-bit": at })));
      return make("div", { class: `block columns-${columns}` }, ...cells);
    });
    this.grid.replaceChildren(...this.blocks);
    this.grid.className = `cells ${form}`;
  }

  // Draw a view of a story up to a step. `label` is read by screen readers; `lit`
  // are cells to point out; `hues` returns the colours of a cell, one for each word.
  draw(story, view, step, label, { lit = [], hues = null } = {}) {
    this.fit(story.blocksOf(view), story.form);
    this.grid.classList.toggle("counting", story.counts);
    const steps = stepsOf(view), final = step >= steps.last;
    const probed = Math.max(0, Math.min(step - 1, steps.probes));
    const changes = view.now && view.now.deed !== ASK;
    const probes = this.probesOf(story, view, step, probed);
    const zero = steps.zero >= 0 && probed > steps.zero ? view.tests[steps.zero].bits : [];
    const codes = story.form === "codes";
    let run = 0, odd = false;
    this.cells.forEach((cell, at) => {
      const passed = changes && (final || (story.form === "bits" && probes.includes(at)) || (story.form === "sums" && step > 0));
      const n = (passed ? view.after : view.before)[at];
      const fresh = !codes && passed && n > view.before[at]; // codes move up
      const gone = !codes && passed && view.now.deed === REMOVE && n < view.before[at];
      if (codes && n && n >> 8 !== run) run = n >> 8, odd = !odd; // the next run in use
      const names = ["bit", n && "set", codes && n && !odd && "other", story.counts && n === TIMES && "full", fresh && "new", gone && "gone",
        probes.includes(at) && "probe", zero.includes(at) && "zero", lit.includes(at) && "lit"];
      cell.className = names.filter(Boolean).join(" ");
      cell.style.background = stripes(hues?.(at) ?? [], n);
      const text = !n ? "" : codes ? hex(n & 255, 2) : story.counts ? String(n) : "";
      if (cell.textContent !== text) cell.textContent = text;
    });
    const here = view.now && step >= 1 && this.blocks.length > 1 ? story.blockOf(view.now.word) : -1;
    this.blocks.forEach((block, i) => block.classList.toggle("here", i === here));
    this.grid.setAttribute("aria-label", label);
    this.drawHash(story, view, step);
    this.targets = view.now && step > 0 && story.form === "bits" ? probes.map((bit) => ({ bit,
      one: view.before[bit] > 0, adds: adding(view.now) })) : [];
    this.wire();
  }

  // The cells that a step speaks of: all bits up to it, one equation, or the
  // slots with the code of the word.
  probesOf(story, view, step, probed) {
    if (!view.now || step < 1) return [];
    if (story.form === "bits") return view.bits.slice(0, probed);
    if (story.form === "sums") return view.tests[Math.max(0, probed - 1)]?.bits ?? [];
    return view.now.deed === REMOVE ? [] : story.cellsOf(view.now.word, view.cells);
  }

  // The word and its hash; of the hash, the digits that choose its place.
  drawHash(story, view, step) {
    if (!view.now) return this.hash.replaceChildren("\u00a0");
    if (story.given) return this.hash.replaceChildren(make("b", { class: "bubble" }, quoted(view.now.word)));
    const digits = hex(view.hash, 16), chosen = step >= 1 ? leading(story, view) : 0;
    this.hash.replaceChildren(make("b", { class: "bubble" }, quoted(view.now.word)), " → ",
      make("span", { class: "hash" }, "0x", make("mark", {}, digits.slice(0, chosen)), digits.slice(chosen)));
  }

  wire() {
    const box = this.element.getBoundingClientRect(), targets = this.targets ?? [];
    if (!box.width || !targets.length) return this.wires.replaceChildren();
    this.wires.setAttribute("viewBox", `0 0 ${box.width} ${box.height}`);
    const from = (this.hash.querySelector(".hash") ?? this.hash.firstElementChild ?? this.hash).getBoundingClientRect();
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

// A cell that several words set has a stripe for each.
const stripes = (hues, n) => (!n || !hues.length ? "" : hues.length === 1 ? `var(--w${hues[0]})`
  : `linear-gradient(135deg, ${hues.flatMap((hue, i) => [`var(--w${hue}) ${100 * i / hues.length}%`, `var(--w${hue}) ${100 * (i + 1) / hues.length}%`]).join()})`);

export const hex = (n, digits) => n.toString(16).padStart(digits, "0");

// How many hexadecimal digits of the hash choose the first bit, or the block,
// if its high bits do: which is compared with what the library did. Else 0.
export function leading(story, view) {
  if (story.form !== "bits" || story.given) return 0;
  const places = story.open ? story.bits : story.bits / story.block;
  const chosen = Number(view.hash * BigInt(places) >> 64n);
  const is = story.open ? view.bits[0] : Math.floor(view.bits[0] / story.block);
  return places > 1 && chosen === is ? Math.max(1, Math.ceil(Math.log2(places) / 4)) : 0;
}

// The charts of Plan. They are drawn a moment after the last letter was typed.
import { draw } from "../chart.js";
import { $, say } from "../dom.js";
import { countText, general, rateText, sizeText, timeText } from "../number.js";
import { t } from "../text/text.js";
import { request } from "../work.js";

const GROWN = 100000; // keys guessed at most, when a filter is grown for a chart
const MOST_BITS = 24; // a key, in the first chart
const SOON = 60, LATER = 250; // ms
const dashes = ["", "8 4", "2 3", "10 3 2 3", "5 5", "1 3", "12 4", "6 2 2 2"];
const times = [0.125, 0.25, 0.5, 0.75, 1, 1.25, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10,
  12, 16];

// What others take, in bits a key for a rate, by their papers: cuckoo filters
// (Fan et al. 2014), binary fuse filters (Graf and Lemire 2022), ribbon filters
// (Dillinger and Walzer 2021).
const others = {
  cuckoo: (rate) => (Math.log2(1 / rate) + 3) / 0.95,
  fuse: (rate) => 1.13 * Math.log2(1 / rate),
  ribbon: (rate) => 1.05 * Math.log2(1 / rate),
};

const span = (from, to, n) =>
  Array.from({ length: n }, (_, i) => from + (to - from) * i / (n - 1));

export class Charts {
  constructor(calyx, planKind) {
    this.calyx = calyx;
    this.planKind = planKind;
    this.grown = null; // {key, points}: what the worker found out
    this.waits = 0;
  }

  line(name, values) {
    const i = this.calyx.kinds.indexOf(name);
    return { label: name, values, color: i % 6, dash: dashes[i % dashes.length], quiet: name !== this.chosen };
  }

  draw(want, chosen, plans) {
    clearTimeout(this.timer);
    this.chosen = chosen.kind;
    this.timer = setTimeout(() => {
      const adds = this.calyx.can(chosen.kind, "add"); // else it is as large as its keys want
      for (const id of ["chart-probes", "chart-fill"]) $(id).closest("figure").hidden = !adds;
      this.bits(chosen, plans);
      if (adds) this.probes(chosen);
      if (adds) this.fill(chosen);
      this.size(chosen, plans);
      if ($("growth").open) this.growth(chosen);
    }, SOON);
  }

  // What others take, beside what the library has; a kind of its own stands for
  // itself.
  others() {
    const own = this.calyx.kinds;
    return Object.entries(others).filter(([name]) => !own.includes(name)).map(([name, bitsFor], i) =>
      ({ bitsFor, line: { label: t("other." + name), color: 6, dash: dashes[1 + i], quiet: true } }));
  }

  bits(chosen, plans) {
    const keys = Math.max(1000, Math.min(chosen.keys, 1e9));
    const xs = span(1, MOST_BITS, 24);
    const rate = (name, bits) => {
      const p = this.planKind(name, { keys, memory: Math.floor(bits * keys / 8) });
      return p.whyNot || p.rate >= 1 || p.rate <= 0 ? null : p.rate;
    };
    const lines = plans.map((p) => this.line(p.kind, xs.map((bits) => rate(p.kind, bits))));
    const inverse = (bitsFor) => xs.map((bits) => {
      const unit = bitsFor(0.25) - bitsFor(0.5); // bits for half the rate
      const exponent = 1 + (bits - bitsFor(0.5)) / unit;
      return exponent > 0.5 ? 2 ** -exponent : null;
    });
    for (const { bitsFor, line } of this.others()) lines.push({ ...line, values: inverse(bitsFor) });
    lines.push({ label: t("bound"), values: xs.map((bits) => 2 ** -bits), color: 7, dash: "3 6" });
    draw($("chart-bits"), {
      xs, lines,
      x: { label: t("axis.bits"), text: "number", range: [0, MOST_BITS] },
      y: { label: t("axis.rate"), text: "rate", log: true, range: [1e-7, 1] },
      marks: [{ x: 8 * chosen.bytes / chosen.keys, label: chosen.kind }],
      summary: t("sum.bits", { x: plans.map((p) => {
        const at = rate(p.kind, 10);
        return `${p.kind} ${at === null ? "–" : rateText(at)}`;
      }).join(t("comma")) }),
    });
  }

  probes(chosen) {
    const xs = span(1, 24, 24);
    const values = xs.map((k) => this.calyx.rateAt(chosen.kind, chosen.bits, k, chosen.keys) || null)
      .map((rate) => (Number.isNaN(rate) ? null : rate));
    const m = chosen.bits / chosen.keys;
    const bloom = xs.map((k) => (1 - Math.exp(-k / m)) ** k);
    const all = [...values, ...bloom].filter((v) => v > 0);
    draw($("chart-probes"), {
      xs, lines: [{ label: chosen.kind, values, color: this.calyx.kinds.indexOf(chosen.kind) % 6, points: true },
        { label: t("bloom.formula"), values: bloom, color: 7, dash: "3 6" }],
      x: { label: t("axis.probes"), text: "number", range: [0, 24] },
      y: { label: t("axis.rate"), text: "rate", log: true, range: decades(all) },
      marks: [{ x: chosen.probes, label: `k = ${chosen.probes}` }],
      summary: t("sum.probes", { x: chosen.probes, y: rateText(chosen.rate) }),
    });
  }

  rate(p, x) {
    const rate = this.calyx.rateAt(p.kind, p.bits, p.probes, Math.round(x * p.keys));
    return rate > 0 ? rate : null;
  }

  fill(p) {
    const xs = span(0.05, 4, 80), values = xs.map((x) => this.rate(p, x));
    draw($("chart-fill"), {
      xs, lines: [{ label: p.kind, values, color: this.calyx.kinds.indexOf(p.kind) % 6 }],
      x: { label: t("axis.fill"), text: (v) => `${general(v, 3)}×`, range: [0, 4] },
      y: { label: t("axis.rate"), text: "rate", log: true,
        range: decades([this.rate(p, 0.3) ?? 1e-6, values.at(-1) ?? 1]) },
      marks: [{ x: 1, label: t("capacity") }],
      summary: t("sum.fill", { x: `${p.kind} ${rateText(this.rate(p, 2) ?? 0)}` }),
    });
  }

  size(chosen, plans) {
    const xs = span(-1, -7, 13).map((e) => 10 ** e);
    const bytes = (name, rate) => {
      const p = this.planKind(name, { keys: chosen.keys, rate });
      return p.whyNot ? null : p.bytes;
    };
    const lines = plans.map((p) => this.line(p.kind, xs.map((rate) => bytes(p.kind, rate))));
    const most = Math.max(...lines.filter((line) => !this.calyx.can(line.label, "remove"))
      .flatMap((line) => line.values).filter(Boolean));
    const beside = this.others().map(({ bitsFor, line }) =>
      ({ ...line, values: xs.map((rate) => bitsFor(rate) * chosen.keys / 8) }));
    draw($("chart-size"), {
      xs, lines: [...lines, ...beside],
      x: { label: t("axis.rate"), text: "rate", log: true, reversed: true, range: [1e-7, 0.1] },
      y: { label: t("axis.memory"), text: (v) => sizeText(v), range: [0, 1.1 * most] },
      marks: [{ x: chosen.rate, label: rateText(chosen.rate) }],
      summary: t("sum.size", { x: lines.map((line) => `${line.label} ${
        line.values[4] ? sizeText(line.values[4]) : "–"}`).join(t("comma")) }),
    });
  }

  async growth(p) {
    const guess = Math.min(p.keys, GROWN), rate = p.fpr;
    const key = [p.kind, guess, rate].join();
    if (this.grown?.key !== key) {
      const mine = ++this.waits;
      await new Promise((resolve) => setTimeout(resolve, LATER)); // still typing?
      if (mine !== this.waits) return;
      try {
        const points = await request("grow", { kind: p.kind, guess, rate, times });
        this.grown = { key, points };
      } catch (error) {
        this.grown = { key, why: error.message };
      }
      if (mine !== this.waits) return;
    }
    for (const id of ["chart-grow", "chart-memory"])
      $(id).closest("figure").hidden = !!this.grown.why;
    if (this.grown.why) return say($("grow-note"), t("grow.cannot", { x: this.grown.why }));
    say($("grow-note"), t("grow.note", { x: countText(guess * times.at(-1)),
      y: countText(guess) }));
    this.drawGrowth(p);
  }

  drawGrowth(p) {
    const fixed = times.map((x) => this.rate(p, x));
    const each = 8 * p.bytes / p.keys;
    const x = { label: t("axis.guess"), log: true, range: [0.1, 20],
      text: (v) => `${general(v, 3)}×` };
    const two = (a, b) => [
      { label: t("fixed"), values: a, color: 3, dash: "6 4" },
      { label: t("growing"), values: b, color: 0 }];
    const rates = this.grown.points.map((q) => q.rate || null);
    const bits = this.grown.points.map((q) => q.bits);
    const last = (a, b, text) => `${t("fixed")} ${text(a.at(-1))}${t("comma")}` +
      `${t("growing")} ${text(b.at(-1))}`;
    draw($("chart-grow"), {
      xs: times, x, lines: two(fixed, rates),
      y: { label: t("axis.rate"), text: "rate", log: true, range: decades([...fixed, ...rates].filter((v) => v > 1e-12)) },
      marks: [{ x: 1, label: "1×" }],
      summary: t("sum.grow", { x: last(fixed, rates, rateText) }),
    });
    const flat = times.map((m) => each / m);
    draw($("chart-memory"), {
      xs: times, x,
      lines: [...two(flat, bits), { label: t("right"), color: 7,
        dash: "3 6", values: times.map(() => each) }],
      y: { label: t("axis.bits"), text: "number", log: true, range: decades([...flat, ...bits]) },
      marks: [{ x: 1, label: "1×" }],
      summary: t("sum.memory", { x: last(flat, bits, (v) => general(v, 3)) }),
    });
  }

  drawStore(p, load, { costs, wasted, worth, paysBelow, text }) {
    const xs = span(-6, 0, 61).map((e) => 10 ** e);
    const mean = (rate) => load.filter + load.present * load.store + wasted * rate;
    const level = (label, y, color, dash) =>
      ({ label, values: xs.map(() => y), color, dash });
    const most = Math.max(costs.alone, mean(1), 1e-9);
    draw($("chart-store"), {
      xs,
      lines: [{ label: p.kind, values: xs.map(mean), color: 0 },
        level(t("store.alone"), costs.alone, 3, "6 4"),
        level(t("table"), costs.withTable, 7, "3 6")],
      x: { label: t("axis.rate"), text: "rate", log: true, range: [1e-6, 1] },
      y: { label: t("axis.time"), text: timeText, range: [0, most * 1.1] },
      marks: worth < 1 && paysBelow > 0
        ? [{ x: worth, label: t("store.worth", { x: rateText(worth) }) }] : [],
      summary: t("sum.store", { x: text }),
    });
  }
}

// A range of whole powers of ten around these values.
function decades(values) {
  const low = Math.max(1e-15, Math.min(...values)), high = Math.max(...values, low);
  const from = 10 ** Math.floor(Math.log10(low)), to = 10 ** Math.ceil(Math.log10(high));
  return [from, to > from ? to : 10 * from];
}

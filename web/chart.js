// Charts: uPlot in the page's colors. A chart is drawn anew when its data,
// width, language or theme change.
import { countText, general, rateText } from "./number.js";

const charts = new Map(); // element -> what it was drawn from

export const palette = (i) =>
  getComputedStyle(document.documentElement).getPropertyValue(`--line-${i}`);

const color = (name) =>
  getComputedStyle(document.documentElement).getPropertyValue(name);

// Log axes are marked at powers of ten only.
const decades = (u, ticks) =>
  ticks.map((v) => (Math.abs(Math.log10(v) % 1) < 1e-9 ? v : null));

const axis = (spec) => ({
  stroke: color("--soft"),
  grid: { stroke: color("--grid"), width: 1 },
  ticks: { stroke: color("--grid"), width: 1 },
  font: "12px system-ui, sans-serif",
  labelFont: "12px system-ui, sans-serif",
  labelSize: 20,
  ...spec,
});

// Short enough for an axis: 1 % and 10⁻⁶.
const raised = (n) => [...String(n)].map((d) => "⁰¹²³⁴⁵⁶⁷⁸⁹"[d]).join("");
const tick = (v) => v >= 1e-4 ? rateText(v) : "10⁻" + raised(Math.round(-Math.log10(v)));

const shown = {
  rate: (v) => (v == null ? "" : rateText(v)),
  number: (v) => (v == null ? "" : v >= 1000 ? countText(v) : general(v, 3)),
};

// `lines` are {label, color, dash, values}; `x` and `y` are {label, log, text,
// range}, where text is a name in `shown` or a function; `marks` are {x, label}.
export function draw(element, spec) {
  charts.set(element, spec);
  const width = Math.floor(element.clientWidth);
  if (!width || !globalThis.uPlot) return;
  element.uplot?.destroy();
  element.setAttribute("role", "img");
  element.setAttribute("aria-label", spec.summary);
  const text = (a) => (typeof a.text === "function" ? a.text : shown[a.text]);
  const scale = (a, time) => ({
    time, distr: a.log ? 3 : 1, ...(a.range && { range: a.range }) });
  const ticks = (a) => ({
    label: a.label,
    values: (u, all) => all.map((v) =>
      (v == null ? "" : a.text === "rate" ? tick(v) : text(a)(v))),
    ...(a.log && { filter: decades }),
  });
  element.uplot = new uPlot({
    width, height: Math.max(220, Math.min(320, Math.round(width * 0.6))),
    scales: { x: scale(spec.x, false), y: scale(spec.y) },
    axes: [axis(ticks(spec.x)), axis({ size: 72, ...ticks(spec.y) })],
    series: [
      { label: spec.x.label, value: (u, v) => (v == null ? "–" : text(spec.x)(v)) },
      ...spec.lines.map((l) => ({
        label: l.label, stroke: l.color, width: 2, dash: l.dash,
        spanGaps: false, points: { show: !!l.points, size: 5 },
        value: (u, v) => (v == null ? "–" : text(spec.y)(v)),
      })),
    ],
    hooks: { draw: [(u) => mark(u, spec.marks ?? [])] },
  }, [spec.xs, ...spec.lines.map((l) => l.values)], element);
}

function mark(u, marks) {
  const { ctx, bbox } = u;
  ctx.save();
  ctx.strokeStyle = ctx.fillStyle = color("--accent");
  ctx.lineWidth = 2;
  ctx.setLineDash([]);
  ctx.font = `${12 * devicePixelRatio}px system-ui, sans-serif`;
  for (const { x, label } of marks) {
    const at = u.valToPos(x, "x", true);
    if (at < bbox.left || at > bbox.left + bbox.width) continue;
    ctx.beginPath();
    ctx.moveTo(at, bbox.top);
    ctx.lineTo(at, bbox.top + bbox.height);
    ctx.stroke();
    const left = at > bbox.left + bbox.width / 2;
    ctx.textAlign = left ? "right" : "left";
    ctx.fillText(label, at + (left ? -6 : 6), bbox.top + 14 * devicePixelRatio);
  }
  ctx.restore();
}

export function redraw() {
  for (const [element, spec] of charts) draw(element, spec);
}

let width = innerWidth;
addEventListener("resize", () => {
  if (width === innerWidth) return; // a phone's bars came or went
  width = innerWidth;
  redraw();
});

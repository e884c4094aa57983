// Charts: SVG whose colors are classes, so that a theme or a printer changes
// them without drawing anew. A chart is drawn again when its data, width or
// language change.
import { make, svg } from "./dom.js";
import { countText, general, rateText } from "./number.js";

const charts = new Map(); // element -> what it was drawn from
let clips = 0;

const raised = (n) => [...String(n)].map((d) => "⁰¹²³⁴⁵⁶⁷⁸⁹"[d]).join("");

// Values as read at the pointer, and shorter at an axis: 1 % and 10⁻⁶.
const shown = {
  rate: rateText,
  number: (v) => (v >= 1000 ? countText(v) : general(v, 3)),
};
const ticked = {
  ...shown,
  rate: (v) => (v >= 1e-4 || v === 0 ? rateText(v) : "10⁻" + raised(Math.round(-Math.log10(v)))),
};
const textOf = (axis, table) => (typeof axis.text === "function" ? axis.text : table[axis.text]);

// Maps values to places and back.
function scale({ log, range: [low, high] }, from, to) {
  const f = log ? Math.log : (x) => x, g = log ? Math.exp : (x) => x;
  const [a, b] = [f(low), f(high)];
  return {
    at: (v) => from + (f(log ? Math.max(v, low / 1e6) : v) - a) / (b - a) * (to - from),
    value: (place) => g(a + (place - from) / (to - from) * (b - a)),
    inside: (v) => v >= low && v <= high,
  };
}

// 1, 2 or 5 times a power of ten, at or above x.
export function roundUp(x) {
  const power = 10 ** Math.floor(Math.log10(x));
  return power * [1, 2, 5, 10].find((m) => m * power >= x * (1 - 1e-9));
}

function ticks({ log, range: [low, high] }, most) {
  const all = [];
  if (log) {
    const first = Math.ceil(Math.log10(low) - 1e-9), last = Math.floor(Math.log10(high) + 1e-9);
    const step = Math.max(1, Math.ceil((last - first + 1) / most));
    for (let e = last; e >= first; e -= step) all.push(10 ** e);
    return all;
  }
  const step = roundUp((high - low) / most);
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high * (1 + 1e-9); i++) all.push(i * step);
  return all;
}

function pathOf(xs, values, x, y) {
  let path = "", pen = "M";
  xs.forEach((v, i) => {
    const value = values[i];
    if (value == null || !x.inside(v)) return void (pen = "M");
    path += `${pen}${x.at(v).toFixed(1)} ${y.at(value).toFixed(1)}`;
    pen = "L";
  });
  return path;
}

function bandOf(xs, low, high, x, y) {
  const edge = (values, order) => order.filter((i) => values[i] != null)
    .map((i) => `${x.at(xs[i]).toFixed(1)} ${y.at(values[i]).toFixed(1)}`);
  const order = [...xs.keys()];
  return "M" + [...edge(high, order), ...edge(low, order.reverse())].join("L") + "Z";
}

// Moves labels apart that would lie on each other.
function spread(labels, gap, top, bottom) {
  labels.sort((a, b) => a.y - b.y);
  let last = top - gap;
  for (const label of labels) last = label.y = Math.max(label.y, last + gap);
  let next = bottom + gap;
  for (const label of labels.toReversed()) next = label.y = Math.min(label.y, next - gap);
}

// Where a line ends, at its right: the index of its last value in sight.
function endOf({ values }, spec, x) {
  let end = -1;
  values.forEach((v, i) => {
    const seen = v != null && v >= spec.y.range[0] && v <= spec.y.range[1] && x.inside(spec.xs[i]);
    if (seen && (end < 0 || x.at(spec.xs[i]) > x.at(spec.xs[end]))) end = i;
  });
  return end;
}

// Lines that lie on each other share a label.
function shareLabels(lines) {
  const same = (a, b) => a.values.every((v, i) => (v == null ? b.values[i] == null : Math.abs(v / b.values[i] - 1) < 0.01));
  return lines.map((line) => {
    const all = lines.filter((other) => other.label && same(line, other));
    return { ...line, shared: all[0] === line ? all.map(({ label }) => label).join(", ") : "" };
  });
}

// `lines` are {label, color, dash, values, points, low, high, quiet}, color a number; one
// that is quiet is grey until it is touched;
// `x` and `y` are {label, log, text, range}, where text is a name in `shown` or
// a function; `marks` are {x, label}.
export function draw(element, spec) {
  charts.set(element, spec);
  const width = Math.floor(element.clientWidth);
  if (!width) return;
  const height = spec.height ?? Math.max(230, Math.min(300, Math.round(width * 0.58)));
  const beside = width >= 430; // labels at the ends of their lines, or below
  const named = spec.lines.filter((line) => line.label);
  const letters = Math.max(0, ...shareLabels(named).map((line) => widthOf(line.shared)));
  const box = { left: 62, top: 24, bottom: height - 38,
    right: width - (beside ? Math.min(14 + 7.6 * letters, 0.36 * width) : 12) };
  const x = spec.x.reversed ? scale(spec.x, box.right, box.left) : scale(spec.x, box.left, box.right), y = scale(spec.y, box.bottom, box.top);

  const picture = svg("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img",
    "aria-label": spec.summary, class: "chart-svg" });
  for (const v of ticks(spec.y, 6)) picture.append(
    svg("line", { class: "grid", x1: box.left, x2: box.right, y1: y.at(v), y2: y.at(v) }),
    svg("text", { class: "tick end", x: box.left - 6, y: y.at(v) + 4 }, textOf(spec.y, ticked)(v)));
  for (const v of ticks(spec.x, Math.max(3, Math.floor((box.right - box.left) / 70)))) picture.append(
    svg("line", { class: "grid", x1: x.at(v), x2: x.at(v), y1: box.top, y2: box.bottom }),
    svg("text", { class: "tick middle", x: x.at(v), y: box.bottom + 16 }, textOf(spec.x, ticked)(v)));
  picture.append(
    svg("text", { class: "axis middle", x: (box.left + box.right) / 2, y: height - 4 }, spec.x.label),
    svg("text", { class: "axis", x: 2, y: 10 }, spec.y.label));

  for (const { x: v, label } of spec.marks ?? []) {
    if (!x.inside(v)) continue;
    const left = x.at(v) > (box.left + box.right) / 2;
    picture.append(
      svg("line", { class: "mark", x1: x.at(v), x2: x.at(v), y1: box.top, y2: box.bottom }),
      svg("text", { class: "mark-label" + (left ? " end" : ""), x: x.at(v) + (left ? -5 : 5),
        y: box.bottom - 6 }, label));
  }
  const clip = `clip-${++clips}`, inner = svg("g", { "clip-path": `url(#${clip})` });
  picture.append(svg("clipPath", { id: clip }, svg("rect", { x: box.left, y: box.top - 2,
    width: box.right - box.left + 4, height: box.bottom - box.top + 4 })), inner);
  const labels = [];
  const loud = (line) => !line.quiet;
  for (const line of shareLabels(spec.lines).sort((a, b) => loud(a) - loud(b))) {
    const series = svg("g", { class: `series c${line.color}` + (line.quiet ? " quiet" : "") });
    inner.append(series);
    if (line.low) series.append(svg("path", { class: "band", d: bandOf(spec.xs, line.low, line.high, x, y) }));
    const d = pathOf(spec.xs, line.values, x, y);
    series.append(svg("path", { class: "touch", d }),
      svg("path", { class: "line", d, ...(line.dash && { "stroke-dasharray": line.dash }) }));
    if (line.points) line.values.forEach((v, i) => v != null && series.append(
      svg("circle", { class: "dot", cx: x.at(spec.xs[i]), cy: y.at(v), r: 2.5 })));
    const last = endOf(line, spec, x);
    if (line.shared && last >= 0) labels.push({ line, series, y: y.at(line.values[last]) + 4 });
  }
  if (beside) {
    spread(labels, 14, box.top + 6, box.bottom);
    for (const { line, series, y: at } of labels) picture.append(touches(series, svg("text",
      { class: `end-label c${line.color}` + (line.quiet ? " quiet" : ""), x: box.right + 6, y: at }, line.shared)));
  }
  const legend = beside ? [] : [make("p", { class: "legend" }, ...labels.map(({ line, series }) =>
    touches(series, make("span", { class: `key c${line.color}` + (line.quiet ? " quiet" : "") },
      svg("svg", { viewBox: "0 0 26 8", width: 26, height: 8, "aria-hidden": "true" },
        svg("path", { class: "line", d: "M0 4H26", ...(line.dash && { "stroke-dasharray": line.dash }) })), " ", line.shared))))];
  element.replaceChildren(picture, ...legend);
  follow(element, picture, spec, { x, y, box, width });
}

// A label and its line light up together.
function touches(series, label) {
  const light = (on) => () => [series, label].forEach((each) => each.classList.toggle("lit", on));
  for (const each of [series, label]) {
    each.onpointerenter = light(true);
    each.onpointerleave = light(false);
  }
  return label;
}

// Chinese letters are as wide as two.
const widthOf = (text) => [...text].reduce((n, c) => n + (c > "\u2e80" ? 2 : 1), 0);

// The values under the pointer.
function follow(element, picture, spec, { x, y, box, width }) {
  const cross = svg("line", { class: "cross", y1: box.top, y2: box.bottom, visibility: "hidden" });
  const note = make("div", { class: "reading", hidden: true, "aria-hidden": "true" });
  picture.append(cross);
  element.append(note);
  picture.onpointermove = (event) => {
    const place = event.clientX - picture.getBoundingClientRect().left;
    const wanted = x.value(Math.min(Math.max(place, box.left), box.right));
    const near = spec.xs.reduce((best, v, i) =>
      (Math.abs(x.at(v) - x.at(wanted)) < Math.abs(x.at(spec.xs[best]) - x.at(wanted)) ? i : best), 0);
    const at = x.at(spec.xs[near]);
    cross.setAttribute("x1", at);
    cross.setAttribute("x2", at);
    cross.setAttribute("visibility", "visible");
    note.hidden = false;
    note.style.left = at < width / 2 ? `${at + 10}px` : "auto";
    note.style.right = at < width / 2 ? "auto" : `${width - at + 10}px`;
    note.replaceChildren(
      make("b", {}, `${spec.x.label}: ${textOf(spec.x, shown)(spec.xs[near])}`),
      ...spec.lines.filter((line) => line.values[near] != null).map((line) =>
        make("span", { class: `c${line.color}` },
          `${line.label ? line.label + " " : ""}${textOf(spec.y, shown)(line.values[near])}`)));
  };
  picture.onpointerleave = () => {
    cross.setAttribute("visibility", "hidden");
    note.hidden = true;
  };
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

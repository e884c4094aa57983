// Try: fill a filter in the worker, and draw how its rate and its speed go.
import { draw, palette } from "./chart.js";
import { $, data, make, quoted, say } from "./dom.js";
import { countFrom, countText, general, rateFrom, rateText, sizeText } from "./number.js";
import { get, set } from "./state.js";
import { t } from "./text.js";
import { ask } from "./work.js";

const LEAST_KEYS = 1000, MOST_KEYS = 20e6;
const usual = { "try-kind": "line", "try-keys": "1M", "try-rate": "1%" };
const names = { "try-kind": "tk", "try-keys": "tn", "try-rate": "tp" };

let calyx = null;
let points = []; // {keys, measured, expected, add, ask}: times in nanoseconds
let done = null; // what the worker said at the end
let runs = 0, frame = 0;

export function start() {
  for (const id of Object.keys(names)) {
    $(id).value = get(names[id], usual[id]);
    $(id).onchange = () => set(names[id], $(id).value === usual[id] ? "" : $(id).value);
  }
  $("try-form").onsubmit = (event) => {
    event.preventDefault();
    run();
  };
  $("try-stop").onclick = () => {
    runs++;
    ask("stop", { what: "try" }).catch(() => {});
    stopped();
  };
}

export function ready(library) {
  calyx = library;
  $("try-kind").replaceChildren(...calyx.kinds.map((kind) => make("option", {}, kind)));
  const kind = get("tk");
  $("try-kind").value = calyx.kinds.includes(kind) ? kind : usual["try-kind"];
  update();
}

function stopped() {
  $("try-run").disabled = false;
  $("try-stop").disabled = true;
}

async function run() {
  if (!calyx) return;
  const keys = countFrom($("try-keys").value), rate = rateFrom($("try-rate").value);
  const goodKeys = keys >= LEAST_KEYS && keys <= MOST_KEYS;
  const goodRate = rate > 0 && rate < 1;
  $("try-keys").setAttribute("aria-invalid", !goodKeys);
  $("try-rate").setAttribute("aria-invalid", !goodRate);
  say($("try-error"), !goodKeys ? t("bad.try", { x: quoted($("try-keys").value) })
    : !goodRate ? t("bad.rate", { x: quoted($("try-rate").value) }) : "");
  if (!goodKeys || !goodRate) return;

  const mine = ++runs;
  points = [];
  done = null;
  $("try-run").disabled = true;
  $("try-stop").disabled = false;
  $("try-progress").value = 0;
  try {
    const kind = $("try-kind").value;
    const answer = await ask("try", { kind, keys, rate }, (point) => {
      if (mine !== runs) return;
      points.push(point);
      $("try-progress").value = point.keys / keys;
      frame ||= requestAnimationFrame(() => { // points may come faster than that
        frame = 0;
        update();
      });
    });
    if (mine === runs) done = answer;
  } catch (error) {
    if (mine === runs) say($("try-error"), t("not.so", { x: error.message }));
  }
  if (mine !== runs) return;
  stopped();
  update();
}

export function update() {
  if (!calyx) return;
  const facts = [];
  const fact = (key, ...value) =>
    facts.push(make("dt", {}, t(key)), make("dd", { "data-fact": key }, ...value));
  const last = points.at(-1);
  if (last) {
    fact("try.keys", data(last.keys, countText(last.keys)));
    fact("try.expected", data(last.expected, rateText(last.expected)));
  }
  if (done) {
    fact("try.measured", data(done.measured, rateText(done.measured)), " ",
      t("try.of", { x: countText(done.passed), y: countText(done.asked) }));
    fact("try.lost", data(done.lost, countText(done.lost)));
    fact("try.memory", data(done.bytes, sizeText(done.bytes)));
    fact("try.add", data(done.add, `${general(done.add, 3)} ns`));
    fact("try.ask", data(done.ask, `${general(done.ask, 3)} ns`));
  }
  $("try-facts").replaceChildren(...facts);
  if (!points.length) return;

  const xs = points.map((p) => p.keys);
  const x = { label: t("axis.keys"), text: (v) => v >= 1e6 ? `${general(v / 1e6, 3)}M`
    : v >= 1e3 ? `${general(v / 1e3, 3)}k` : String(v) };
  draw($("chart-try"), {
    xs, x,
    lines: [
      { label: t("try.expected"), color: palette(5), dash: [6, 4],
        values: points.map((p) => p.expected || null) },
      { label: t("try.measured"), color: palette(3), points: true,
        values: points.map((p) => p.measured || null) }],
    y: { label: t("axis.rate"), text: "rate", log: true,
      range: (u, low, high) => [Math.max(1e-9, low || 1e-6) / 2, Math.min(1, (high || 1) * 2)] },
    summary: t("sum.try", { x: rateText(last.measured), y: rateText(last.expected),
      z: countText(last.keys) }),
  });
  draw($("chart-time"), {
    xs, x,
    lines: [
      { label: t("try.add"), color: palette(0), values: points.map((p) => p.add) },
      { label: t("try.ask"), color: palette(1), dash: [8, 4], values: points.map((p) => p.ask) }],
    y: { label: t("axis.ns"), text: "number",
      range: (u, low, high) => [0, (high || 1) * 1.1] },
    summary: t("sum.time", { x: general(last.add, 3), y: general(last.ask, 3) }),
  });
}

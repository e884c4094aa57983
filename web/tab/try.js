// Try: fill a filter in the worker, and draw how its rate and its speed go. The
// axes are fixed when a run starts.
import { draw, roundUp } from "../chart.js";
import { $, data, download, make, quoted, say } from "../dom.js";
import { countFrom, countText, general, rateFrom, rateText, sizeText, timeText } from "../number.js";
import { get, set } from "../state.js";
import { t } from "../text/text.js";
import { request } from "../work.js";

const LEAST_KEYS = 1000, MOST_KEYS = 20e6, MOST_UNASKED = 1e6;
const usual = { "try-kind": "", "try-keys": "1M", "try-rate": "1%" };
const names = { "try-kind": "tk", "try-keys": "tn", "try-rate": "tp" };
const SMOOTH = 5; // steps of which the median is drawn

let calyx = null;
let points = []; // {keys, lookups, measured, expected, most, add, lookup}: times in seconds
let wanted = null; // {kind, keys, rate} of this run
let done = null; // what the worker said at the end
let runs = 0, frame = 0;

export function start() {
  for (const id of Object.keys(names)) {
    $(id).value = get(names[id], usual[id]);
    $(id).onchange = () => set(names[id], $(id).value === usual[id] ? "" : $(id).value);
  }
  if (calyx) choose();
  $("try-form").onsubmit = (event) => {
    event.preventDefault();
    run();
  };
  $("try-stop").onclick = () => {
    runs++;
    request("stop", { what: "try" });
    stopped();
  };
  $("try-save").onclick = async () => download(await request("encode", {}), "numbers.calyx");
}

export function ready(library) {
  calyx = library;
  usual["try-kind"] = calyx.kinds[0];
  $("try-kind").replaceChildren(...calyx.kinds.map((name) => make("option", {}, name)));
  choose();
  update();
}

function choose() {
  const kind = get("tk", usual["try-kind"]);
  $("try-kind").value = calyx.kinds.includes(kind) ? kind : usual["try-kind"];
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
  wanted = { kind: $("try-kind").value, keys, rate };
  $("try-run").disabled = $("try-save").disabled = true;
  $("try-stop").disabled = false;
  $("try-progress").value = 0;
  try {
    const answer = await request("try", wanted, (point) => {
      if (mine !== runs) return;
      points.push(point);
      $("try-progress").value = 0.95 * point.keys / keys; // then a last count
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
  $("try-progress").value = done ? 1 : 0;
  $("try-save").disabled = !done;
  update();
}

export function update() {
  if (!calyx || $("try").hidden) return;
  if (!runs && countFrom($("try-keys").value) <= MOST_UNASKED) return void run(); // at first sight
  drawFacts();
  if (!points.length) return;
  const last = points.at(-1), xs = points.map((p) => p.keys);
  const x = { label: t("axis.keys"), range: [0, wanted.keys],
    text: (v) => v >= 1e6 ? `${general(v / 1e6, 3)}M` : v >= 1e3 ? `${general(v / 1e3, 3)}k` : String(v) };
  // 19 of 20 measurements of a rate lie within two deviations.
  const slack = (p) => 2 * Math.sqrt(Math.max(p.expected, 1 / p.lookups) / p.lookups);
  draw($("chart-try"), {
    xs, x,
    lines: [
      { label: t("try.expected"), color: 7, dash: "6 4", values: points.map((p) => p.expected),
        low: points.map((p) => Math.max(0, p.expected - slack(p))),
        high: points.map((p) => p.expected + slack(p)) },
      { label: t("try.measured"), color: 1, points: true, values: points.map((p) => p.measured) }],
    y: { label: t("axis.rate"), text: "rate",
      range: [0, 1.25 * (last.most + 2 * Math.sqrt(last.most / last.lookups))] },
    summary: t("sum.try", { x: rateText(last.measured), y: rateText(last.expected),
      z: countText(last.keys) }),
  });
  const [add, lookup] = [smooth("add"), smooth("lookup")];
  const most = Math.max(median([...add]), median([...lookup]), 1e-9);
  draw($("chart-time"), {
    xs, x,
    lines: [{ label: t("try.add"), color: 0, values: add },
      { label: t("try.lookup"), color: 3, dash: "8 4", values: lookup }],
    y: { label: t("axis.time"), text: timeText, range: [0, roundUp(2 * most)] },
    summary: t("sum.time", { x: timeText(add.at(-1)), y: timeText(lookup.at(-1)) }),
  });
}

const median = (values) => values.sort((a, b) => a - b)[values.length >> 1];
const smooth = (name) => points.map((p, i) =>
  median(points.slice(Math.max(0, i - SMOOTH + 1), i + 1).map((each) => each[name])));

function drawFacts() {
  const facts = [], last = points.at(-1);
  const fact = (key, ...value) =>
    facts.push(make("dt", {}, t(key)), make("dd", { "data-fact": key }, ...value));
  say($("try-value"), done ? rateText(done.measured) : last ? rateText(last.measured) : "…");
  say($("try-text"), done ? t(done.measured > wanted.rate ? "try.above" : "try.text", {
    x: countText(done.passed), y: countText(done.lookups), z: rateText(last.expected),
    p: rateText(done.own), n: countText(wanted.keys) }) : "");
  if (last) {
    fact("try.keys", data(last.keys, countText(last.keys)));
    fact("try.expected", data(last.expected, rateText(last.expected)));
  }
  if (done) {
    const [add, lookup] = ["add", "lookup"].map((name) => median(points.map((p) => p[name])));
    fact("try.measured", data(done.measured, rateText(done.measured)));
    fact("try.own", data(done.own, rateText(done.own)));
    fact("try.lost", data(done.lost, countText(done.lost)));
    fact("try.memory", data(done.bytes, sizeText(done.bytes)));
    fact("try.add", data(add, add > 0 ? timeText(add) : t("try.short")));
    fact("try.lookup", data(lookup, lookup > 0 ? timeText(lookup) : t("try.short")));
  }
  $("try-facts").replaceChildren(...facts);
}

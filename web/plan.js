// Plan: of keys, rate and memory, two decide the third, for every kind. The
// numbers are those of `calyx plan --json`.
import { draw, palette } from "./chart.js";
import { $, data, make, quoted, say } from "./dom.js";
import { countFrom, countText, general, rateFrom, rateText, sizeFrom, sizeText,
  timeFrom, timeText } from "./number.js";
import { get, set } from "./state.js";
import { t } from "./text.js";
import { ask } from "./work.js";

const MOST_KEYS = 2 ** 40, MOST_MEMORY = 2 ** 41, MOST_KEY_BYTES = 1000000;
const GROWN = 100000; // keys guessed at most, when a filter is grown for a chart
const dashes = [[], [8, 4], [2, 3], [10, 3, 2, 3], [5, 5]];

let calyx = null;
let kind = ""; // chosen, or the first that is possible
let order = ["memory", "rate", "keys"]; // edited longest ago first
let grown = null; // {key, points}: what the worker found out

const goal = { keys: countFrom, rate: rateFrom, memory: sizeFrom };
const names = { keys: "n", rate: "p", memory: "m", store: "store",
  filter: "filter", present: "present", keybytes: "bytes" };
const usual = { store: "1ms", filter: "100ns", present: "50%", keybytes: "8" };

export function start() {
  const given = Object.keys(goal).some((id) => get(names[id]));
  for (const id of Object.keys(goal)) $(id).value = get(names[id]);
  if (!given) {
    $("keys").value = "10M";
    $("rate").value = "1%";
  }
  for (const id of Object.keys(usual)) $(id).value = get(names[id], usual[id]);
  kind = get("kind");
  for (const id of Object.keys(names)) $(id).oninput = () => edited(id);
  for (const id of ["plan-form", "store-form"])
    $(id).onsubmit = (event) => event.preventDefault();
}

function edited(id) {
  if (id in goal && $(id).value) {
    order = [...order.filter((other) => other !== id), id];
    if (order.every((each) => $(each).value)) clear(order[0]);
  }
  set(names[id], $(id).value === usual[id] ? "" : $(id).value);
  for (const each of Object.keys(goal)) set(names[each], $(each).value);
  update();
}

function clear(id) {
  $(id).value = "";
  order = [id, ...order.filter((other) => other !== id)];
}

export function ready(library) {
  calyx = library;
  update();
}

// ---- What was asked ----

// The numbers in the fields; `bad` is what to say about the first that is none.
function read() {
  const want = { keys: 0, rate: 0, memory: 0, bad: "" };
  if (order.every((id) => $(id).value)) clear("memory");
  for (const [id, from] of Object.entries(goal)) {
    const text = $(id).value;
    if (text.trim()) want[id] = from(text);
    const most = { keys: MOST_KEYS, rate: 1, memory: MOST_MEMORY }[id];
    const fine = !text.trim() || (want[id] > 0 && want[id] <= most &&
      (id !== "rate" || want[id] < 1));
    $(id).setAttribute("aria-invalid", !fine);
    if (!fine) want.bad ||= t("bad." + id, { x: quoted(text) });
  }
  if (want.bad) return want;
  if (!want.keys && !want.memory) want.bad = t("need.two");
  else if (!want.rate && !(want.keys && want.memory)) want.rate = 0.01;
  return want;
}

function readStore() {
  const fields = {
    store: [timeFrom, "bad.time", (x) => x >= 0 && x <= 1e9],
    filter: [timeFrom, "bad.time", (x) => x >= 0 && x <= 1e9],
    present: [rateFrom, "bad.share", (x) => x >= 0 && x <= 1],
    keybytes: [sizeFrom, "bad.keybytes", (x) => x <= MOST_KEY_BYTES],
  };
  const load = { bad: "" };
  for (const [id, [from, text, fine]] of Object.entries(fields)) {
    load[id] = from($(id).value);
    const good = fine(load[id]);
    $(id).setAttribute("aria-invalid", !good);
    if (!good) load.bad ||= t(text, { x: quoted($(id).value) });
  }
  load.keyBytes = load.keybytes;
  return load;
}

// ---- All of it ----

function planKind(name, want) {
  try {
    return calyx.plan(name, want);
  } catch (error) {
    return { kind: name, whyNot: error.message };
  }
}

export function update() {
  if (!calyx || $("plan").hidden) return; // it will be shown
  const want = read(), load = readStore();
  say($("plan-error"), want.bad);
  say($("store-error"), load.bad);
  if (want.bad) return;
  const plans = calyx.kinds.map((name) => planKind(name, want));
  const possible = plans.filter((p) => !p.whyNot);
  const chosen = possible.find((p) => p.kind === kind) ?? possible[0];
  showThird(want, chosen);
  showTable(want, plans, chosen, load.keyBytes || 8);
  if (!chosen) return;
  showRuns(want, chosen);
  chartBits(want, chosen, plans);
  chartFill(possible);
  chartGrowth(chosen);
  if (!load.bad) showStore(chosen, load);
}

function showThird(want, chosen) {
  const texts = { keys: (p) => countText(p.keys), rate: (p) => rateText(p.rate),
    memory: (p) => sizeText(p.bytes) };
  for (const [id, text] of Object.entries(texts))
    $(id).placeholder = chosen ? t("third", { x: text(chosen) }) : "";
}

// ---- The table ----

function exact(want, keyBytes) {
  const keysOf = (bytes) => want.keys || Math.floor(want.memory / bytes);
  const table = { name: "table", bytesEach: 2 * keyBytes, probes: 1.5 };
  const list = { name: "list", bytesEach: keyBytes };
  for (const e of [table, list]) {
    e.keys = keysOf(e.bytesEach);
    e.bytes = e.bytesEach * e.keys;
  }
  list.probes = Math.ceil(Math.log2(Math.max(2, list.keys)));
  return [table, list];
}

function showTable(want, plans, chosen, keyBytes) {
  const solvesKeys = !want.keys;
  $("amount-head").dataset.t = solvesKeys ? "keys" : "memory";
  say($("amount-head"), t(solvesKeys ? "keys" : "memory"));
  const amount = (p) => solvesKeys ? data(p.keys, countText(p.keys))
    : data(p.bytes, sizeText(p.bytes));
  const cell = (...children) => make("td", {}, ...children);
  const rows = plans.map((p) => {
    const radio = make("input", { type: "radio", name: "kind", value: p.kind,
      disabled: !!p.whyNot });
    radio.checked = p === chosen;
    radio.onchange = () => {
      kind = p.kind;
      set("kind", kind);
      update();
      document.querySelector(`#kinds input[value=${kind}]`).focus();
    };
    const head = make("th", { scope: "row" }, make("label", {}, radio, p.kind));
    const row = make("tr", { "data-kind": p.kind,
      class: p === chosen ? "chosen" : "" }, head);
    if (p.whyNot) {
      row.append(make("td", { colspan: 5, class: "why" },
        t("not.so", { x: p.whyNot })));
      return row;
    }
    const bits = 8 * p.bytes / p.keys;
    const can = calyx.abilities(p.kind);
    row.append(cell(amount(p)), cell(data(bits, bits.toFixed(2))),
      cell(data(p.probes, String(p.probes))),
      cell(data(p.rate, rateText(p.rate))),
      make("td", { "data-can": can.join(" ") },
        can.map((each) => t("can." + each)).join(", ")));
    return row;
  });
  for (const e of exact(want, keyBytes))
    rows.push(make("tr", { "data-kind": e.name, class: "exact" },
      make("th", { scope: "row" }, t(e.name)), cell(amount(e)),
      cell(data(8 * e.bytesEach, (8 * e.bytesEach).toFixed(2))),
      cell(data(e.probes, general(e.probes, 3))),
      cell(t("exact")),
      cell(t(e.name + ".note", { x: keyBytes }))));
  $("kinds").tBodies[0].replaceChildren(...rows);
}

// ---- What to run: the lines of the command, and the same in C ----

function showRuns(want, p) {
  const isUsual = p.kind === calyx.kinds[0];
  const aim = !want.keys ? `--memory ${want.memory} -p ${general(want.rate)}`
    : want.memory ? `-n ${want.keys} --memory ${want.memory}`
    : `-n ${want.keys} -p ${general(want.rate)}`;
  say($("run-build"), `calyx build ${aim}${isUsual ? "" : " --kind " + p.kind}` +
    " -o seen.calyx keys.txt");
  say($("run-reserve"),
    `BF.RESERVE seen ${general(p.fpr)} ${p.keys} NONSCALING`);
  const size = want.memory ? `.bits = ${p.bits}` : `.fpr = ${general(want.rate)}`;
  say($("run-c"), `calyx_filter *f;
calyx_options want = {.kind = "${p.kind}", .capacity = ${p.keys}, ${size}};
if (calyx_new(&want, &f, NULL) != CALYX_OK) return 1;
calyx_add(f, "rose", 4, NULL);
calyx_has(f, "rose", 4);   // true, always
calyx_free(f);`);
}

// ---- Charts ----

const span = (from, to, n) =>
  Array.from({ length: n }, (_, i) => from + (to - from) * i / (n - 1));

const lineOf = (name, values, extra = {}) => {
  const i = calyx.kinds.indexOf(name);
  return { label: name, values, color: palette(i), dash: dashes[i], ...extra };
};

function chartBits(want, chosen, plans) {
  const keys = Math.max(1000, Math.min(chosen.keys, 1e9));
  const xs = span(1, 32, 63);
  const rate = (name, bits) => {
    const p = planKind(name, { keys, memory: Math.floor(bits * keys / 8) });
    return p.whyNot || p.rate >= 1 || p.rate <= 0 ? null : p.rate;
  };
  const lines = plans.map((p) =>
    lineOf(p.kind, xs.map((bits) => rate(p.kind, bits))));
  lines.push({ label: t("bound"), values: xs.map((bits) => 2 ** -bits),
    color: palette(5), dash: [3, 6] });
  const own = 8 * chosen.bytes / chosen.keys;
  draw($("chart-bits"), {
    xs, lines,
    x: { label: t("axis.bits"), text: "number", range: [0, 32] },
    y: { label: t("axis.rate"), text: "rate", log: true, range: [1e-7, 1] },
    marks: [{ x: own, label: chosen.kind }],
    summary: t("sum.bits", { x: plans.map((p) => {
      const at = rate(p.kind, 10);
      return `${p.kind} ${at === null ? "–" : rateText(at)}`;
    }).join(", ") }),
  });
}

function chartFill(plans) {
  const xs = span(0.05, 4, 80);
  const at = (p, x) => {
    const rate = calyx.rateAt(p.kind, p.bits, p.probes, Math.round(x * p.keys));
    return rate > 0 ? rate : null;
  };
  draw($("chart-fill"), {
    xs, lines: plans.map((p) => lineOf(p.kind, xs.map((x) => at(p, x)))),
    x: { label: t("axis.fill"), text: (v) => `${general(v, 3)}×` },
    y: { label: t("axis.rate"), text: "rate", log: true },
    marks: [{ x: 1, label: "1×" }],
    summary: t("sum.fill", { x: plans.map((p) =>
      `${p.kind} ${rateText(at(p, 2))}`).join(", ") }),
  });
}

const times = [0.125, 0.25, 0.5, 0.75, 1, 1.25, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10,
  12, 16];
let waits = 0;

async function chartGrowth(p) {
  const guess = Math.min(p.keys, GROWN), rate = p.fpr;
  const key = [p.kind, guess, rate].join();
  if (grown?.key !== key) {
    const mine = ++waits;
    await new Promise((resolve) => setTimeout(resolve, 250)); // still typing?
    if (mine !== waits) return;
    try {
      const points = await ask("grow", { kind: p.kind, guess, rate, times });
      grown = { key, points };
    } catch (error) {
      grown = { key, why: error.message };
    }
    if (mine !== waits) return;
  }
  if (grown.why) {
    say($("grow-note"), t("grow.cannot", { x: grown.why }));
    for (const id of ["chart-grow", "chart-memory"]) $(id).hidden = true;
    return;
  }
  for (const id of ["chart-grow", "chart-memory"]) $(id).hidden = false;
  say($("grow-note"), t("grow.note", { x: countText(guess * times.at(-1)),
    y: countText(guess) }));
  const fixed = times.map((x) =>
    calyx.rateAt(p.kind, p.bits, p.probes, Math.round(x * p.keys)) || null);
  const each = 8 * p.bytes / p.keys;
  const x = { label: t("axis.guess"), log: true, range: [0.1, 20],
    text: (v) => `${general(v, 3)}×` };
  const two = (a, b) => [
    { label: t("fixed"), values: a, color: palette(3), dash: [6, 4] },
    { label: t("growing"), values: b, color: palette(0) }];
  const rates = grown.points.map((q) => q.rate || null);
  const bits = grown.points.map((q) => q.bits);
  const last = (a, b, text) => `${t("fixed")} ${text(a.at(-1))}, ` +
    `${t("growing")} ${text(b.at(-1))}`;
  draw($("chart-grow"), {
    xs: times, x, lines: two(fixed, rates),
    y: { label: t("axis.rate"), text: "rate", log: true },
    marks: [{ x: 1, label: "1×" }],
    summary: t("sum.grow", { x: last(fixed, rates, rateText) }),
  });
  const flat = times.map((m) => each / m);
  draw($("chart-memory"), {
    xs: times, x,
    lines: [...two(flat, bits), { label: t("right"), color: palette(5),
      dash: [3, 6], values: times.map(() => each) }],
    y: { label: t("axis.bits"), text: "number", log: true },
    marks: [{ x: 1, label: "1×" }],
    summary: t("sum.memory", { x: last(flat, bits, (v) => general(v, 3)) }),
  });
}

// ---- In front of a store ----

function showStore(p, load) {
  const costs = calyx.weigh(p, load);
  const strangers = (1 - load.present) * load.store;
  const paysBelow = strangers > 0 ? 1 - load.filter / strangers : 0;
  const worth = strangers > 0
    ? 0.01 * (load.filter + load.present * load.store) / strangers : 1;
  const row = (name, id, time) => make("tr", { "data-cost": id },
    make("th", { scope: "row" }, name),
    make("td", {}, data(time, timeText(time))),
    make("td", {}, time > 0 ? countText(Math.round(1 / time)) : "–"));
  $("costs").tBodies[0].replaceChildren(
    row(t("store.alone"), "alone", costs.alone),
    row(p.kind, "filter", costs.withFilter),
    row(t("table"), "table", costs.withTable));
  $("verdict").dataset.worth = Math.min(1, worth);
  $("verdict").dataset.paysBelow = paysBelow;
  say($("verdict"), verdict(p, costs, paysBelow, worth));

  const xs = span(-6, 0, 61).map((e) => 10 ** e);
  const mean = (rate) => load.filter + load.present * load.store + strangers * rate;
  const level = (label, y, color, dash) =>
    ({ label, values: xs.map(() => y), color, dash });
  draw($("chart-store"), {
    xs,
    lines: [{ label: p.kind, values: xs.map(mean), color: palette(0) },
      level(t("store.alone"), costs.alone, palette(3), [6, 4]),
      level(t("table"), costs.withTable, palette(5), [3, 6])],
    x: { label: t("axis.rate"), text: "rate", log: true },
    y: { label: t("axis.time"), text: timeText,
      range: (u, low, high) => [0, (high || 1) * 1.1] },
    marks: worth < 1 && paysBelow > 0
      ? [{ x: worth, label: t("store.worth", { x: rateText(worth) }) }] : [],
    summary: t("sum.store", { x: verdict(p, costs, paysBelow, worth) }),
  });
}

function verdict(p, costs, paysBelow, worth) {
  if (!(paysBelow > 0)) return t("store.never");
  const faster = general(costs.alone / costs.withFilter, 3);
  const below = paysBelow < 0.95
    ? " " + t("store.below", { x: rateText(paysBelow) }) : "";
  if (worth >= 1) return t("store.any", { x: faster }) + below;
  const at = planKind(p.kind, { keys: p.keys, rate: worth });
  const size = at.whyNot ? "–" : sizeText(at.bytes);
  return t("store.best", { x: faster, y: rateText(worth), z: size }) + below;
}

// Plan: of keys, rate and memory, two decide the third, for every kind; the
// number of hash functions is the best one, or is given. All three decide the
// fewest hash functions. `calyx plan --json` prints the same numbers.
import { $, data, make, quoted, say, svg } from "../dom.js";
import { bitsFrom, countFrom, countText, general, isBinary, rateFrom, rateText, shortText, sizeFrom,
  sizeText, timeFrom, timeText } from "../number.js";
import { get, set, turn } from "../state.js";
import { knownAs, t } from "../text/text.js";
import { Charts } from "./plan_charts.js";
import { bindings, commands, elsewhere, installs } from "./plan_code.js";

const MOST_KEYS = 2 ** 40, MOST_MEMORY = 2 ** 41, MOST_KEY_BYTES = 1000000, MOST_PROBES = 64;

let calyx = null, charts = null;
let kind = ""; // chosen, or the first that is possible
let order = ["memory", "rate", "keys"]; // edited longest ago first
let solved = "memory"; // the field that is computed
let fixed = false; // is the number of hash functions given?
let probesText = ""; // and as what: a kind that has none does not show it
let last = null; // what was shown
const facts = new Map(); // of kinds, which never change

const goal = { keys: countFrom, rate: rateFrom, memory: sizeFrom };
const names = { keys: "n", rate: "p", memory: "m", probes: "k", store: "store",
  filter: "filter", present: "present", keybytes: "bytes" };
const usual = { store: "1ms", filter: "100ns", present: "50%", keybytes: "8" };
const presets = {
  penetration: { keys: "50M", rate: "0.1%", store: "2ms", present: "30%" },
  crawler: { keys: "1G", rate: "1%" },
  passwords: { keys: "900M", rate: "0.1%" },
  lsm: { keys: "2M", rate: "1%", store: "100us", present: "20%" },
  spam: { keys: "5M", rate: "1 in 100 000" },
  stream: { keys: "100M", rate: "0.01%" },
};

// Does the address ask for a plan?
export const given = () => ["n", "p", "m", "k", "kind"].some((name) => get(name));

export function start() {
  const given = Object.keys(goal).filter((id) => get(names[id]));
  for (const id of Object.keys(goal)) $(id).value = get(names[id]);
  order = ["memory", "rate", "keys"];
  if (!given.length) {
    $("keys").value = "10M";
    $("rate").value = "1%";
  }
  const missing = () => order.filter((id) => !$(id).value);
  if (missing().length > 1 && !$("rate").value) $("rate").value = "1%"; // as the command does
  solved = missing()[0] ?? "probes";
  for (const id of Object.keys(usual)) $(id).value = get(names[id], usual[id]);
  $("probes").value = probesText = get("k");
  fixed = !!get("k");
  if (fixed && solved === "probes") solved = "memory";
  kind = get("kind");
  for (const id of Object.keys(names)) {
    $(id).oninput = () => edited(id);
    $(id).onfocus = () => $(id).classList.contains("solved") && $(id).select();
  }
  $("plan-form").onclick = (event) => {
    const button = event.target.closest("[data-solve]");
    if (button) solve(button.dataset.solve);
  };
  for (const id of ["plan-form", "store-form"])
    $(id).onsubmit = (event) => event.preventDefault();
  $("growth").ontoggle = () => update();
  $("code-tabs").onclick = $("code-tabs").onkeydown = turnTab;
  $("presets").onclick = (event) => {
    const chip = event.target.closest("[data-preset]");
    if (chip) apply(presets[chip.dataset.preset]);
  };
}

function apply(preset) {
  turn(true);
  solved = "memory";
  order = ["memory", "rate", "keys"];
  fixed = false;
  probesText = "";
  const values = { ...usual, ...preset };
  for (const [id, value] of Object.entries(values)) $(id).value = value;
  store();
  update();
}

// From now on this field is computed, from what the others have; the one that was
// computed so far is given, not as it was rounded.
function give(id) {
  if (id !== solved && solved !== "probes" && last) $(solved).value = {
    keys: String(last.keys), memory: `${last.bytes} ${t("bytes")}`,
    rate: `${general(100 * last.rate * (1 + 1e-6), 6)}%`,
  }[solved];
}

function solve(id) {
  give(id);
  solved = id;
  fixed &&= id !== "probes";
  store();
  update();
}

// What is typed is given. If it was computed, what was edited longest ago is
// computed from now on.
function edited(id) {
  if (id === "probes") {
    probesText = $(id).value.trim();
    fixed = probesText !== "";
    if (solved === id) solved = order[0];
  }
  if (id in goal && !$(id).value.trim()) solved = emptied(id);
  else if (id in goal) {
    order = [...order.filter((other) => other !== id), id];
    if (id === solved) solved = order[0];
  }
  store();
  update();
}

// A field that is emptied is to be computed; the one that was is given from now on.
function emptied(id) {
  give(id);
  return id;
}

function store() {
  for (const id of Object.keys(goal)) set(names[id], id === solved ? "" : $(id).value);
  for (const id of Object.keys(usual)) set(names[id], $(id).value === usual[id] ? "" : $(id).value);
  set("k", fixed ? probesText : "");
}

export function ready(library) {
  calyx = library;
  charts = new Charts(calyx, planKind);
  update();
}

// ---- What is wanted ----

// The numbers in the fields; `bad` is what to say about the first that is none.
function read() {
  const want = { keys: 0, rate: 0, memory: 0, probes: 0, bad: "" };
  const most = { keys: MOST_KEYS, rate: 1, memory: MOST_MEMORY };
  for (const [id, from] of Object.entries(goal)) {
    const text = $(id).value;
    if (id !== solved) want[id] = from(text);
    const fine = id === solved || (want[id] > 0 && want[id] <= most[id] &&
      (id !== "rate" || want[id] < 1));
    $(id).setAttribute("aria-invalid", !fine);
    if (!fine) want.bad ||= text.trim() ? t("bad." + id, { x: quoted(text) }) : t("need.two");
  }
  want.bits = want.memory ? bitsFrom($("memory").value) : 0; // exactly these
  want.probes = fixed ? countFrom(probesText) : 0;
  const fine = !fixed || want.probes <= MOST_PROBES;
  $("probes").setAttribute("aria-invalid", !fine);
  if (!fine) want.bad ||= t("bad.probes", { x: quoted(probesText) });
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

// The fewest hash functions with which a kind keeps the rate, of those that it can
// have; `range` is the fewest, the most, and the best of them; `free` if there is
// a choice.
function fewest(name, want) {
  const { keys, memory, bits, rate } = want;
  const best = planKind(name, { keys, memory, bits });
  if (best.whyNot || (best.rate <= rate && !hashes(name))) return best;
  if (best.rate > rate)
    return { kind: name, said: true, whyNot: t("probes.none", { p: rateText(rate), k: best.probes, x: rateText(best.rate) }) };
  const fine = [];
  for (let probes = 1; probes <= MOST_PROBES; probes++) {
    const p = planKind(name, { keys, memory, bits, probes });
    if (!p.whyNot && p.probes === probes && p.rate <= rate) fine.push(p);
    else if (fine.length && !p.whyNot) break; // the rate only rises from here
  }
  return { ...(fine[0] ?? best), free: fine.length > 1, range: [fine[0] ?? best, fine.at(-1) ?? best, best] };
}

export function update() {
  drawPresets();
  if (!calyx || $("plan").hidden) return; // it will be shown
  const want = read(), load = readStore();
  const planned = solved === "probes" ? fewest : planKind;
  const plans = want.bad ? [] : calyx.kinds.map((name) => planned(name, wantOf(name, want)));
  const possible = plans.filter((p) => !p.whyNot), best = recommended(possible);
  const chosen = possible.find((p) => p.kind === kind) ?? best;
  const bad = want.bad || (chosen ? "" : notSo(plans[0]));
  say($("plan-error"), bad);
  say($("store-error"), load.bad);
  for (const id of ["answer", "plan-result"]) { // what is there is of other numbers
    $(id).inert = !!bad;
    $(id).classList.toggle("stale", !!bad);
  }
  showSolved(chosen);
  last = chosen;
  if (bad) return;
  showAnswer(want, chosen, best, possible[0], load.keyBytes || 8);
  showKinds(plans, chosen, best, exact(want, load.keyBytes || 8), load.keyBytes || 8);
  showFormulas(want, chosen);
  showCode(wantOf(chosen.kind, want), chosen);
  charts.draw(want, chosen, plans);
  if (!load.bad) showStore(chosen, load);
}

// What is wanted, as far as a kind can have it: a number of hash functions; exactly
// these bits, if it is not made of blocks.
const wantOf = (name, want) => ({ ...want, probes: hashes(name) ? want.probes : 0, bits: calyx.leastBits(name) < 64 ? want.bits : 0 });

const bytesEach = (p) => p.bytes / p.keys;

// The first kind, unless another that can do as much, for one more cache line, takes
// a tenth less: at low rates that is so.
function recommended(possible) {
  const [first] = possible, abilities = first && calyx.abilities(first.kind);
  return possible.find((p) => hashes(p.kind) && linesOf(p) <= linesOf(first) + 1 && bytesEach(p) < 0.9 * bytesEach(first) &&
    abilities.every((each) => calyx.can(p.kind, each))) ?? first;
}

// Sizes in MiB for people who typed MiB.
const sizeIn = (bytes) => sizeText(bytes, solved !== "memory" && isBinary($("memory").value));
const NONE = "–";
const texts = { keys: (p) => countText(p.keys), rate: (p) => rateText(p.rate),
  memory: (p) => sizeIn(p.bytes), probes: (p) => (hashes(p.kind) ? String(p.probes) : NONE) };

function showSolved(chosen) {
  $("probes").disabled = !!chosen && !hashes(chosen.kind); // it has none
  for (const id of Object.keys(texts)) {
    const is = id === solved || (id === "probes" && (!fixed || $(id).disabled));
    $(id).classList.toggle("solved", is);
    if (is) $(id).value = chosen ? texts[id](chosen) : "";
    else if (id === "probes" && $(id).value === NONE) $(id).value = probesText;
    const button = document.querySelector(`[data-solve=${id}]`);
    button.setAttribute("aria-pressed", id === solved);
    button.setAttribute("aria-label", t("solve", { x: t(id) }));
    button.title = t("solve", { x: t(id) });
  }
}

// Why a kind cannot: the library says it in English, the page in its language.
const notSo = ({ whyNot, said }) => (said ? whyNot : t("not.so", { x: whyNot }));

function showAnswer(want, p, best, first, keyBytes) {
  const asked = solved === "probes" && !hashes(p.kind) ? "rate" : solved;
  say($("answer-name"), t("answer." + asked, { n: countText(p.keys), p: rateText(want.rate || p.rate),
    m: sizeIn(p.bytes) }));
  say($("answer-value"), (asked === "probes" ? "k = " : "") + texts[asked](p));
  const [table] = exact(want, keyBytes), less = (a, b) => general(100 - 100 * bytesEach(a) / bytesEach(b), 2);
  say($("answer-text"), t(calyx.can(p.kind, "add") ? "answer.text" : "answer.static", { b: (8 * bytesEach(p)).toFixed(2), kind: p.kind,
    l: costOf(p).join(t("comma")) }) +
    (p === best && p !== first ? t("answer.best", { x: first.kind, y: less(p, first) })
      : p === first && p !== best ? t("answer.better", { x: best.kind, y: less(best, p) }) : "") +
    (p.range ? rangeText(p) : want.keys ? t("answer.table", { x: general(table.bytes / p.bytes, 2) }) : ""));
}

// What a lookup does: hash functions, equations, or a code of some width; and the
// memory that it reads.
function costOf(p) {
  const form = formOf(p.kind), lines = linesOf(p);
  return [t("cost." + form, { x: p.probes }),
    form === "codes" ? t("lines.codes") : t(lines === 1 ? "lines.one" : "lines.many", { x: lines })];
}

function rangeText({ rate, free, range: [least, most, best] }) {
  return " " + t(free ? "answer.range" : "answer.only", { x: least.probes, y: most.probes,
    z: best.probes, p: rateText(best.rate), r: rateText(rate) });
}

function drawPresets() {
  const chips = Object.entries(presets).map(([name]) =>
    make("button", { type: "button", "data-preset": name }, t("preset." + name)));
  $("presets").replaceChildren(...chips);
}

// ---- Kinds ----

// Cache lines that a lookup reads in a large filter, in the mean; 0 if the kind
// does not say.

// How a kind answers: by "bits", "sums" of bits, or "codes".
function formOf(name) {
  const key = "form " + name;
  if (!facts.has(key)) sampled(name, 1 << 12, 0, (filter, layout) => {
    const tests = layout.tests(0, filter.hash(""));
    facts.set(key, !tests.length ? "codes" : tests.some(({ bits }) => bits.length > 1) ? "sums" : "bits");
  });
  return facts.get(key);
}

const hashes = (name) => formOf(name) === "bits"; // else there is no number of hash functions

function linesOf({ kind: name, probes }) {
  const key = `lines ${name} ${probes}`;
  if (facts.has(key)) return facts.get(key);
  let n = 0;
  const SAMPLES = 32;
  const layout = sampled(name, 1 << 17, probes, (filter, each) => {
    for (let i = 0; i < SAMPLES; i++) n += new Set(each.lines(0, filter.hash("key " + i))).size;
  });
  facts.set(key, layout ? Math.round(n / SAMPLES) : 0);
  return facts.get(key);
}

// An empty filter of this shape, and its layout; false if it cannot be made.
function sampled(name, bits, probes, use) {
  let filter, layout;
  try {
    filter = calyx.can(name, "add") ? calyx.make({ kind: name, capacity: 20, bits, probes }) : built(name, bits);
    layout = calyx.layout(filter.encode());
    use(filter, layout);
    return true;
  } catch {
    return false;
  } finally {
    layout?.free();
    filter?.free();
  }
}

// Of a kind that is made of all keys: about as many bits, of some numbers.
function built(name, bits) {
  const builder = calyx.builder({ kind: name, fpr: 0.01 });
  try {
    builder.addNumbers(0, Math.ceil(bits / 8));
    return builder.finish();
  } finally {
    builder.free();
  }
}

// A picture of 1024 bits, or of the smallest filter: where the bits of three words
// lie. For sums of bits, the bits of one sum; else the bits that change when the word
// is added.
function thumbnail(p) {
  const COLUMNS = 64, words = ["rose", "tulip", "poppy"];
  const block = calyx.leastBits(p.kind), BITS = Math.max(1024, block);
  const key = `picture ${p.kind} ${p.probes}`;
  if (!facts.has(key)) {
    const dots = [];
    sampled(p.kind, BITS, p.probes, (filter, layout) => {
      const read = () => filter.getBits(0, BITS / 8);
      words.forEach((word, i) => {
        const all = layout.tests(0, filter.hash(word)), sum = all.find(({ bits }) => bits.length > 1);
        for (const bit of sum?.bits ?? all.flatMap(({ bits }) => bits)) dots.push([bit, i]);
        if (all.length) return;
        const before = read();
        filter.add(word);
        read().forEach((byte, at) => {
          for (let bit = 0; bit < 8; bit++)
            if ((byte ^ before[at]) >> bit & 1) dots.push([8 * at + bit, i]);
        });
      });
    });
    facts.set(key, dots);
  }
  const cell = 4, rows = BITS / COLUMNS;
  const picture = svg("svg", { viewBox: `-1 -1 ${COLUMNS * cell + 2} ${rows * cell + 2}`,
    class: "thumbnail", "aria-hidden": "true" });
  const size = block < COLUMNS ? BITS : block;
  for (let from = 0; from < BITS; from += size)
    picture.append(svg("rect", { class: "frame", x: 0, y: from / COLUMNS * cell,
      width: COLUMNS * cell, height: size / COLUMNS * cell, rx: 3 }));
  for (const [bit, i] of facts.get(key))
    picture.append(svg("rect", { class: `dot c${i}`, x: bit % COLUMNS * cell, y: Math.floor(bit / COLUMNS) * cell,
      width: cell, height: cell, rx: 1 }));
  return picture;
}

// When to use a kind, by what it can do and how it compares with the others.
function useOf(p, possible) {
  const can = calyx.abilities(p.kind), bytes = bytesEach;
  const adding = possible.filter((q) => calyx.can(q.kind, "add"));
  const least = possible.reduce((a, b) => (bytes(b) < bytes(a) ? b : a), p);
  const leastAdding = adding.reduce((a, b) => (bytes(b) < bytes(a) ? b : a), p);
  if (can.includes("static")) return t(least === p ? "use.static.least" : "use.static");
  const removing = adding.filter((q) => calyx.can(q.kind, "remove"));
  if (can.includes("remove"))
    return t(removing.some((q) => bytes(q) < bytes(p)) ? "use.remove" : "use.remove.least");
  if (p.kind === calyx.kinds[0]) return t("use.default");
  if (p === leastAdding) return t("use.least");
  if (!hashes(p.kind)) return t("use.table");
  const lines = linesOf(p);
  const first = possible.find((q) => q.kind === calyx.kinds[0]);
  if (lines > 1 && first) return t("use.lower", { x: first.kind, y: general(100 - 100 * bytes(p) / bytes(first), 2) });
  return t("use.block", { x: calyx.leastBits(p.kind) });
}

const leastOf = (plans) => plans.reduce((a, b) => (a && bytesEach(a) <= bytesEach(b) ? a : b), null);

function showKinds(plans, chosen, best, others, keyBytes) {
  const solvesKeys = solved === "keys";
  $("kinds").dataset.solves = solved;
  const possible = plans.filter((p) => !p.whyNot);
  const cards = plans.map((p) => {
    const radio = make("input", { type: "radio", name: "kind", value: p.kind, disabled: !!p.whyNot });
    radio.checked = p === chosen;
    radio.onchange = () => {
      turn(true);
      kind = p.kind;
      set("kind", kind === calyx.kinds[0] ? "" : kind);
      update();
      document.querySelector(`#kinds input[value="${kind}"]`).focus();
    };
    const card = make("label", { class: "kind" + (p === chosen ? " chosen" : "") + (p.whyNot ? " off" : ""),
      "data-kind": p.kind }, make("span", { class: "kind-head" }, radio, make("b", {}, p.kind), make("small", {}, knownAs("known." + p.kind)),
      p === best ? make("small", { class: "badge" }, t("kind.best")) : ""));
    if (p.whyNot) {
      card.append(make("span", { class: "why" }, notSo(p)));
      return card;
    }
    const bits = 8 * bytesEach(p), can = calyx.abilities(p.kind), [cost, lines] = costOf(p);
    const shown = can.filter((each) => t("can." + each));
    card.append(thumbnail(p),
      make("span", { class: "amount" }, solvesKeys ? data(p.keys, countText(p.keys)) : data(p.bytes, sizeIn(p.bytes)),
        solvesKeys ? make("small", {}, t("unit.keys")) : ""),
      make("span", { class: "numbers" },
        data(bits, t("bits.each", { x: bits.toFixed(2) })), data(p.probes, hashes(p.kind) ? `k = ${p.probes}` : cost),
        data(p.rate, `p = ${rateText(p.rate)}`), make("span", {}, lines)),
      make("span", { class: "use" }, useOf(p, possible)),
      make("small", { "data-can": can.join(" ") }, shown.map((each) => t("can." + each)).join(t("comma"))));
    return card;
  });
  const first = new Set([chosen, best, leastOf(possible), leastOf(possible.filter((p) => calyx.can(p.kind, "remove")))]);
  $("kind-cards").replaceChildren(...cards, ...others.map((e) => exactCard(e, solvesKeys, keyBytes)));
  plans.forEach((p, i) => cards[i].classList.toggle("more", !first.has(p)));
}

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

function exactCard(e, solvesKeys, keyBytes) {
  return make("div", { class: "kind exact", "data-kind": e.name },
    make("span", { class: "kind-head" }, make("b", {}, t(e.name)), make("small", {}, t("exact"))),
    make("span", { class: "amount" }, solvesKeys ? data(e.keys, countText(e.keys)) : data(e.bytes, sizeIn(e.bytes)),
      solvesKeys ? make("small", {}, t("unit.keys")) : ""),
    make("span", { class: "numbers" },
      data(8 * e.bytesEach, t("bits.each", { x: String(8 * e.bytesEach) })),
      data(e.probes, t("probes.each", { x: general(e.probes, 3) }))),
    make("span", { class: "use" }, t(e.name + ".note", { x: keyBytes })));
}

// ---- Formulas ----

const frac = (above, below) => make("span", { class: "frac" }, make("span", {}, above),
  make("span", { class: "below" }, ...[below].flat()));
const sup = (text) => make("sup", {}, text);

// Bloom's formulas, with the numbers that were given filled in.
function showFormulas(want, chosen) {
  const LN2 = Math.LN2, two = () => ["(ln 2)", sup("2")];
  const n = want.keys || want.memory * 8 * LN2 ** 2 / -Math.log(want.rate);
  const m = want.memory ? 8 * want.memory
    : fixed ? -want.probes * n / Math.log(1 - want.rate ** (1 / want.probes))
    : n * -Math.log(want.rate) / LN2 ** 2;
  const rateOf = (k) => (1 - Math.exp(-k * n / m)) ** k, best = Math.max(1, Math.round(m / n * LN2));
  let k = fixed ? want.probes : best;
  if (solved === "probes") for (k = 1; k < best && rateOf(k) > want.rate; ) k++;
  const p = rateOf(k);
  const [N, M, P] = [countText(Math.round(n)), countText(Math.round(m)), general(want.rate || p, 4)];
  const rows = {
    memory: fixed ? null : ["m", frac("− n · ln p", two()), frac(`− ${N} · ln ${P}`, "0.4805"), `${M} ${t("bits")}`],
    keys: fixed ? null : ["n", frac("− m · (ln 2)²", "ln p"), frac(`− ${M} · 0.4805`, `ln ${P}`), N],
    rate: ["p", make("span", {}, "(1 − e", sup("−kn/m"), ")", sup("k")),
      make("span", {}, "(1 − e", sup(`−${k} · ${general(n / m, 4)}`), ")", sup(String(k))), rateText(p)],
    probes: ["k", make("span", {}, frac("m", "n"), " · ln 2"),
      make("span", {}, shortText(m / n, 4), " · 0.6931"), `${shortText(m / n * LN2, 3)} ≈ ${Math.max(1, Math.round(m / n * LN2))}`],
  };
  const shown = [...new Set([solved, "probes", "rate"])].filter((id) => rows[id]);
  $("formulas").replaceChildren(...shown.map((id) => {
    const [name, general, filled, result] = rows[id];
    return make("p", { class: "formula", "data-formula": name }, make("i", {}, name), " = ", general,
      " = ", filled, " = ", make("b", {}, result));
  }));
  const more = solved === "keys" ? chosen.keys / n : solved === "memory" ? 8 * chosen.bytes / m : chosen.rate / p;
  say($("formulas-note"), t("formulas.note", { x: chosen.kind,
    y: `${more >= 1 ? "+" : "−"}${general(Math.abs(more - 1) * 100, 2)} %`,
    z: t("formulas." + (solved === "probes" ? "rate" : solved)) }));
}

// ---- Code ----

let language = "build"; // of the code that is shown

function showCode(want, p) {
  const code = { ...commands(calyx, solved === "probes" ? { ...want, rate: 0, probes: p.free ? p.probes : 0 } : want, p), ...bindings(calyx, p) };
  $("code-reserve").hidden = !code.reserve;
  if (language === "reserve" && !code.reserve) language = "build";
  for (const tab of $("code-tabs").children) {
    const is = tab.dataset.code === language;
    tab.setAttribute("aria-selected", is);
    tab.tabIndex = is ? 0 : -1;
    $("box-" + tab.dataset.code).hidden = !is;
  }
  for (const [name, text] of Object.entries(code)) say($("run-" + name), text);
  $("code").setAttribute("aria-labelledby", "code-" + language);
  $("run-get-box").hidden = !installs[language];
  say($("run-get"), installs[language] ?? "");
  $("elsewhere-list").replaceChildren(...elsewhere(p, want.rate || p.rate).flatMap(([name, line], i) => [
    make("dt", {}, name), make("dd", {}, make("code", { id: "elsewhere-" + i }, line),
      make("button", { type: "button", class: "copy", "data-copy": "elsewhere-" + i,
        "aria-label": t("copy.of", { x: name }) }))]));
}

function turnTab(event) {
  const tabs = [...$("code-tabs").children].filter((tab) => !tab.hidden), by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
  const tab = event.type === "click" ? event.target.closest("[data-code]")
    : by && tabs.at((tabs.indexOf(event.target) + by) % tabs.length);
  if (!tab) return;
  language = tab.dataset.code;
  update();
  tab.focus();
}

// ---- In front of a store ----

function showStore(p, load) {
  let costs;
  try {
    costs = calyx.weigh(p, load);
  } catch (error) {
    return say($("store-error"), t("not.so", { x: error.message }));
  }
  const wasted = (1 - load.present) * load.store;
  const paysBelow = wasted > 0 ? 1 - load.filter / wasted : 0;
  const worth = wasted > 0
    ? 0.01 * (load.filter + load.present * load.store) / wasted : 1;
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
  const text = verdict(p, costs, paysBelow, worth);
  say($("verdict"), text);
  charts.drawStore(p, load, { costs, wasted, worth, paysBelow, text });
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

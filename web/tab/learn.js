// Learn: one filter, one scroll. The figure stays while passages go by; each shows the
// same filter in another state, which the reader can change: type a word, add it, drag n,
// m, k and p. All that is said of bits and rates comes from the library.
import { Board } from "../board.js";
import { caption } from "../caption.js";
import { draw as drawChart } from "../chart.js";
import { $, make, quoted, say } from "../dom.js";
import { Equations, Lines } from "../figure.js";
import { Flow } from "../flow.js";
import { showHandles, wireHandles } from "../handle.js";
import { rateText } from "../number.js";
import { get, link, set } from "../state.js";
import { ADD, ALLOW, ASK, LONGEST, REMOVE, Story, spokenWord, stepsOf, verdictOf, write } from "../story.js";
import { t } from "../text/text.js";

const BITS = 128, PROBES = 3, WORDS = 5; // at first
const HUES = 6; // words that have a colour of their own; others are grey
const MOST_WORDS = 64, MOST_ADDED = 12;
const range = (from, to, step = 1) => Array.from({ length: Math.floor((to - from) / step) + 1 }, (_, i) => from + i * step);

const add = (word) => ({ deed: ADD, word });
const ask = (word) => ({ deed: ASK, word });
const remove = (word) => ({ deed: REMOVE, word });

// What the figure shows beside each passage. `n`, `m` and `k` are for who has dragged
// nothing yet; `shape` chooses another kind by what it can do; `pair` wants two words that
// share a bit; `deeds` come after the words are added; `figure` is drawn in place of bits.
const scenes = {
  start: { idle: true },
  bits: {},
  no: { deeds: ({ absent }) => [ask(absent)] },
  maybe: { deeds: ({ words }) => [ask(words[0])] },
  "false-positive": { n: 12, deeds: ({ found }) => [ask(found)], find: true },
  fill: { n: 12, curve: "fill", idle: true },
  "best-k": { n: 16, curve: "probes", idle: true },
  removal: { n: 6, pair: true, deeds: ({ pair }) => [remove(pair[0]), ask(pair[1])] },
  counters: { n: 4, pair: true, shape: "count", deeds: ({ pair }) => [remove(pair[0]), ask(pair[1])] },
  "cache-lines": { figure: "lines" },
  codes: { n: 12, shape: "codes" },
  ribbon: { figure: "equations" },
  "allow-list": { n: 12, find: true, deeds: ({ found }) => [ask(found), { deed: ALLOW, word: found }, ask(found)] },
  database: { figure: "flow" },
};
const names = Object.keys(scenes);

let calyx = null, board = null, flow = null, lines = null, equations = null;
let at = "start"; // the passage that is read
let own = { m: 0, k: 0, n: 0, added: [] }; // what the reader chose
let past = []; // what it was before
let doubled = false;
let scene = null; // {key, story, deeds, words}
let shown = 0, step = Infinity, turn = 0;

export function start() {
  board ??= new Board($("stage-board"));
  flow ??= new Flow($("stage-flow"), t);
  equations ??= new Equations($("stage-equations"));
  at = names.includes(get("at")) ? get("at") : "start";
  const number = (name, all) => (all.includes(Number(get(name))) ? Number(get(name)) : 0);
  own = { m: number("fm", numbers.m.values), k: number("fk", numbers.k.values), n: number("fn", numbers.n.values),
    added: get("fw") ? get("fw").split(",").slice(0, MOST_ADDED).map(decode).filter((word) => word && word.length <= LONGEST) : [] };
  scene = null;
  $("entry-form").onsubmit = (event) => {
    event.preventDefault();
    addWord();
  };
  $("entry").oninput = update;
  $("entry-undo").onclick = undo;
  $("step-back").onclick = () => move(-1);
  $("step-next").onclick = () => move(1);
  $("double").onclick = () => {
    doubled = !doubled;
    scene = null;
    update();
  };
  $("chips").onclick = (event) => {
    const chip = event.target.closest("[data-word]");
    if (!chip) return;
    $("entry").value = chip.dataset.word;
    update();
  };
  watch();
}

function decode(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return ""; // half a character, from a link that was cut
  }
}

export function ready(library) {
  calyx = library;
  flow.ready(calyx);
  lines = new Lines($("stage-lines"), calyx);
  update();
  const wide = matchMedia("(hover: hover) and (min-width: 861px)").matches;
  if (wide && at === "start" && !$("learn").hidden && !document.documentElement.classList.contains("embed"))
    $("entry").focus({ preventScroll: true });
}

// ---- Passages ----

let watcher = null;

// The passage at the middle of the window, or on a phone below the figure, is the one
// that is read.
function watch() {
  if (watcher) return;
  watcher = new IntersectionObserver((entries) => {
    for (const { isIntersecting, target } of entries)
      if (isIntersecting && !$("learn").hidden && target.dataset.scene !== at) read(target.dataset.scene);
  }, { rootMargin: innerWidth > 860 ? "-50% 0px -50% 0px" : "-70% 0px -30% 0px" });
  for (const passage of document.querySelectorAll(".passage")) watcher.observe(passage);
}

function read(name) {
  at = name;
  set("at", name === "start" ? "" : name);
  scene = null;
  $("entry").value = "";
  update();
}

// Scrolls to the passage of the address; at once.
export function reveal() {
  if (at === "start") scrollTo({ top: 0, behavior: "instant" });
  else $("p-" + at).scrollIntoView({ block: innerWidth > 860 ? "center" : "start", behavior: "instant" });
}

export const passage = () => at;

export const embedCode = () => {
  const url = new URL(link({ part: "learn", at, embed: "1", theme: "" }));
  return `<iframe src="${url.href.replaceAll("&", "&amp;")}" title="${t(`p.${at}`)}" ` +
    'style="width:100%;height:640px;border:0" loading="lazy"></iframe>';
};

// ---- What the reader changes ----

function change(values) {
  past.push(own);
  own = { ...own, ...values };
  set("fm", own.m && String(own.m));
  set("fk", own.k && String(own.k));
  set("fn", own.n && String(own.n));
  set("fw", own.added.map(encodeURIComponent).join(","));
  scene = null;
  update();
}

export function undo() {
  const before = past.pop();
  if (!before) return false;
  change(before);
  past.pop();
  update();
  return true;
}

function addWord() {
  const word = $("entry").value;
  if (!word || word.length > LONGEST || own.added.length >= MOST_ADDED || scene?.words.includes(word)) return;
  $("entry").value = "";
  change({ added: [...own.added, word], n: own.n && Math.min(MOST_WORDS, own.n + 1) });
  $("entry").focus({ preventScroll: true });
}

const bits = () => own.m || BITS;
const probes = () => own.k || PROBES;
const count = () => own.n || (scenes[at].n ?? WORDS) + own.added.length;
const rateOf = (m, k, n) => (n ? calyx.rateAt(calyx.textbook(), m, k, n) : 0);
const best = () => Math.max(1, Math.round(bits() / Math.max(1, count()) * Math.LN2));

// The smallest row with this rate.
const bitsFor = (rate) => numbers.m.values.find((m) => rateOf(m, probes(), count()) <= rate) ?? numbers.m.values.at(-1);

const numbers = {
  n: { values: range(0, MOST_WORDS), get: count, set: (n) => change({ n, added: own.added.slice(0, n) }), text: String, label: () => t("handle.n") },
  m: { values: range(32, 256, 16), get: bits, set: (m) => change({ m }), text: String, label: () => t("handle.m") },
  k: { values: range(1, 16), get: probes, set: (k) => change({ k }), text: String, label: () => t("handle.k") },
  p: { values: [0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5], get: () => rateOf(bits(), probes(), count()),
    set: (p) => change({ m: bitsFor(p) }), text: rateText, label: () => t("handle.p") },
};

// ---- Scenes ----

// Ask for abilities, never for names.
function storyOf(shape) {
  const made = (kind, wanted) => new Story(calyx, { kind, ...wanted });
  for (const kind of shape ? calyx.addable().filter((each) => calyx.can(each, "remove")) : []) {
    const least = calyx.leastBits(kind);
    const story = made(kind, { bits: shape === "codes" && doubled ? 2 * least : least, probes: shape === "codes" ? 1 : 3 });
    if (shape === "codes" ? story.form === "codes" : story.counts) return story;
    story.free();
  }
  return made(calyx.textbook(), { bits: bits(), probes: probes() });
}

async function stage() {
  const { shape, deeds, find, idle, pair: paired } = scenes[at], key = [at, t("flowers")].join();
  if (scene?.key === key) return scene;
  const mine = ++turn;
  scene?.story.free();
  scene = null;
  const story = storyOf(shape), flowers = t("flowers").split(" ").filter((word) => !own.added.includes(word));
  const others = range(0, MOST_WORDS).map((i) => spokenWord(331 * i));
  const pair = paired ? sharing(story, flowers) : [], chosen = [...flowers.filter((word) => !pair.includes(word)), ...others];
  const words = [...chosen.slice(0, Math.max(0, count() - own.added.length - pair.length)), ...own.added, ...pair];
  const added = words.map(add), rest = flowers.filter((word) => !words.includes(word));
  const { filter } = story.after(added);
  const absent = rest.find((word) => !filter.has(word)) ?? "";
  filter.free();
  const found = find && words.length ? (await story.falsePositive(added, rest)).found : "";
  if (mine !== turn) return story.free();
  const more = (deeds?.({ words, absent, found, pair }) ?? []).filter(({ word }) => word);
  scene = { key, story, words, deeds: [...added, ...more], idle: idle && !more.length };
  shown = scene.deeds.length - 1;
  step = Infinity;
  return scene;
}

// Two words that share a bit.
function sharing(story, words) {
  const meet = (one, other) => story.bitsOf(one).some((bit) => story.bitsOf(other).includes(bit));
  for (const [i, one] of words.entries())
    for (const other of words.slice(i + 1)) if (meet(one, other)) return [one, other];
  return words.slice(0, 2);
}

// ---- Steps: only by the reader's hand ----

function move(by) {
  const { last } = stepsOf(scene.story.look(scene.deeds, shown));
  step = Math.min(step, last) + by;
  if (step > last && shown < scene.deeds.length - 1) shown++, step = 0;
  else if (step < 0 && shown > 0) shown--, step = Infinity;
  step = Math.max(0, step);
  draw();
}

// ---- Drawing ----

export async function update() {
  if ($("learn").hidden) return flow?.stop();
  document.body.dataset.at = at;
  for (const passage of document.querySelectorAll(".passage")) passage.classList.toggle("now", passage.dataset.scene === at);
  for (const permalink of document.querySelectorAll(".passage h2 a")) // a page of its own, in this language
    permalink.setAttribute("href", permalink.getAttribute("href").replace(/^(zh\/)?/, document.documentElement.lang === "en" ? "" : "zh/"));
  document.title = at === "start" ? t("title.learn") : `${t("p." + at)} · ${t("title.learn")}`;
  if (!calyx) return;
  const { figure, curve, shape } = scenes[at];
  $("stage").className = "stage m-" + (figure ?? (curve ? "curve" : shape ? "shape" : "words"));
  $("double").hidden = shape !== "codes";
  say($("double"), t(doubled ? "double.back" : "double"));
  wireHandles(document, numbers);
  if (figure !== "flow") flow.stop();
  if (!await stage()) return;
  if (curve) drawCurve(curve);
  if (figure === "flow") flow.update($("stage-say"));
  else if (figure) drawFigure(figure);
  draw();
}

function drawFigure(figure) {
  if (figure === "lines") lines.draw($("entry").value || scene.words[0]);
  else equations.draw(scene.words.slice(0, 3).map((word) => ({ word, hash: hashOf(word) })));
}

function hashOf(word) {
  const { filter } = scene.story.after([]), hash = filter.hash(word);
  filter.free();
  return hash;
}

// The large word for each verdict.
const verdicts = { maybe: "maybe", false: "false", lost: "lost", no: "no", listed: "no", removed: "removed", wronged: "removed",
  killed: "removed", wrong: "removed", allowed: "listed" };

function draw() {
  if (!scene || scenes[at].figure === "flow") return;
  const { story, words } = scene, typed = $("entry").value;
  const deeds = typed ? [...scene.deeds, ask(typed)] : scene.deeds, now = typed ? deeds.length - 1 : shown;
  const seen = story.look(deeds, now), idle = scene.idle && !typed;
  const view = idle ? { ...seen, now: undefined, before: seen.after } : seen, steps = stepsOf(view);
  if (!typed) step = Math.min(step, steps.last);
  const final = typed ? steps.last : step, cells = view.after.filter(Boolean).length;
  board.draw(story, view, final, t(story.form === "codes" ? "see.bits.codes" : "see.bits", { x: cells, y: view.after.length }), { hues: huesOf(story, [...view.wordsAfter.keys()]) });
  const verdict = view.now && final >= steps.last ? verdictOf(view) : "";
  $("stage-verdict").dataset.verdict = verdict;
  if (verdict) $("stage-verdict").className = "v-" + verdict;
  else $("stage-verdict").removeAttribute("class");
  say($("stage-verdict"), t("word." + (verdict ? verdicts[verdict] ?? "added" : "idle")));
  if (idle) {
    $("stage-say").dataset.verdict = "";
    const rate = rateOf(story.bits, story.probes, words.length);
    say($("stage-say"), scenes[at].curve ? t("learn.filled", { n: words.length, x: cells, y: story.bits, k: story.probes, z: rateText((cells / story.bits) ** story.probes),
      p: rateText(rate), b: best() }) : t("learn.start", { x: cells, y: story.bits, n: words.length }));
  } else caption($("stage-say"), story, view, final);
  drawChips(words, view);
  $("step-back").disabled = idle || !!typed || (shown === 0 && step === 0);
  $("step-next").disabled = idle || !!typed || (shown === deeds.length - 1 && step >= steps.last);
  $("entry-add").disabled = !typed || words.includes(typed) || own.added.length >= MOST_ADDED;
  $("entry-undo").disabled = !past.length;
  // A figure of something else than bits opens the kind that it is about.
  const about = { lines: () => calyx.addable()[0], equations: () => calyx.kinds.find((kind) => calyx.can(kind, "static")) }[scenes[at].figure]?.();
  $("to-see").href = "?" + new URLSearchParams({ part: "see", see: about ?? story.shape.kind, ...(!about && { sm: story.bits, sk: story.probes }), do: write(deeds) });
  showHandles(document, numbers);
}

// Whose a cell is, as numbers of colours.
function huesOf(story, words) {
  if (story.form !== "bits" || story.counts) return null;
  const owners = new Map();
  for (const word of words)
    for (const bit of new Set(story.bitsOf(word))) owners.set(bit, [...owners.get(bit) ?? [], scene.words.indexOf(word)]);
  return (at) => (owners.get(at) ?? []).filter((i) => i >= 0 && i < HUES);
}

function drawChips(words, view) {
  $("chips").replaceChildren(...words.slice(0, HUES).map((word, i) => make("button", { type: "button", "data-word": word,
    class: `chip c${i}` + (view.lost.has(word) ? " lost" : "") }, quoted(word))),
  words.length > HUES ? make("span", { class: "note" }, t("chips.more", { x: words.length - HUES })) : "");
}

// The rate over n or over k, with a dot where the handles are.
function drawCurve(over) {
  const xs = over === "fill" ? range(0, MOST_WORDS) : range(1, 16), n = count(), k = probes(), m = bits();
  const rate = (x) => (over === "fill" ? rateOf(m, k, x) : rateOf(m, x, n)), here = over === "fill" ? n : k;
  drawChart($("stage-curve"), {
    xs, height: 148, lines: [{ values: xs.map(rate), color: 0 },
      { values: xs.map((x) => (x === here ? rate(x) : null)), color: 3, points: true }],
    x: { label: over === "fill" ? t("axis.keys") + " n" : t("axis.probes"), text: "number", range: [0, xs.at(-1)] },
    y: { label: t("axis.rate") + " p", text: "rate", range: [0, over === "fill" ? 1 : Math.max(0.05, Math.min(1, 1.05 * Math.max(...xs.map(rate))))] },
    marks: over === "fill" ? [] : [{ x: best(), label: `k = ${best()}` }],
    summary: t(over === "fill" ? "curve.fill" : "curve.k", { x: rateText(rate(here)), y: here, z: best() }),
  });
}

// See: a small filter, drawn bit by bit, that plays what is done to it.
import { BY_HAND, MOST_BITS, byHand, withPositions } from "../by_hand.js";
import { Board, hex } from "../board.js";
import { caption, changeOf, ownersOf } from "../caption.js";
import { $, download, make, quoted, say } from "../dom.js";
import { general, rateText } from "../number.js";
import { LONGEST as LONGEST_LINK, get, link, set, turn } from "../state.js";
import { ADD, ALLOW, ASK, LONGEST, MANY, MOST_DEEDS, REMOVE, SPOKEN, Story, parse, probesOf, sizesOf,
  spokenWord, stepsOf, sumOf, write } from "../story.js";
import { t } from "../text/text.js";

const SIZES = [8, 16, 32, 64, 128, 256, 512, 1024, 2048], LARGEST = 1024, PROBES = [1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 16];
const USUAL = { bits: 256, probes: 4 };
const USUAL_BY_HAND = "+x→0.4.7,+y→1.4.6,?z→0.1.4"; // a false positive of two words
const READ = 60, LEAST = 600; // ms a letter of what is said, and a step
const FILL = 20; // words that are added at once
const SURE = 20; // false positives to expect among all words that are tried
const EQUATIONS = 24; // words at first, in a filter of equations

let calyx = null, story = null, board = null;
let kind = "", bits = 0, probes = 0;
let deeds = []; // {deed, word}
let past = []; // what they were before each change
let shown = 0; // which of them is shown, and up to which of its steps
let step = 0;
let busy = false, timer = 0;
let looked = ""; // a word whose bits are shown, because it was clicked

export function start() {
  board ??= new Board($("bits"));
  pause();
  if (calyx) restore();
  for (const id of ["see-kind", "see-size", "see-probes"]) $(id).onchange = reshape;
  $("see-form").onsubmit = (event) => {
    event.preventDefault();
    act(ADD);
  };
  $("see-ask").onclick = () => act(ASK);
  $("see-remove").onclick = () => act(REMOVE);
  $("see-many").onclick = () => act(MANY);
  $("see-allow").onclick = () => act(ALLOW);
  $("see-find").onclick = find;
  $("see-fill").onclick = fill;
  $("see-clear").onclick = () => {
    turn(true); // Back brings the words again
    commit([]);
  };
  $("see-save").onclick = () => {
    const { filter } = story.after(deeds);
    download(filter.encode(), "words.calyx");
    filter.free();
  };
  $("see-next").onclick = () => move(1);
  $("see-back").onclick = () => move(-1);
  $("see-first").onclick = () => {
    if (step === 0 && shown > 0) shown--;
    step = 0;
    halt();
  };
  $("see-last").onclick = () => {
    if (step >= stepsOf(story.look(deeds, shown)).last && shown < deeds.length - 1) shown++;
    step = Infinity;
    halt();
  };
  $("see-play").onclick = () => (timer ? halt() : play());
  $("bits").onclick = $("bits").onpointerover = readCell;
  $("words").onclick = $("allowed").onclick = (event) => {
    const chip = event.target.closest("[data-word]");
    if (!chip) return;
    looked = looked === chip.dataset.word ? "" : chip.dataset.word;
    $("word").value = chip.dataset.word;
    update();
  };
}

export function ready(library) {
  calyx = library;
  $("see-kind").replaceChildren(...calyx.kinds.map((name) => make("option", {}, name)),
    make("option", { value: BY_HAND, "data-t": "see.hand" }, t("see.hand")));
  restore();
}

// From the address: what is there is checked, as anybody can write it.
function restore() {
  kind = [...calyx.kinds, BY_HAND].includes(get("see")) ? get("see") : calyx.textbook();
  shape(Number(get("sm")), Number(get("sk")));
  const wanted = [["m", get("sm"), bits], ["k", isByHand() ? "" : get("sk"), probes]].find(([, asked, is]) => asked && Number(asked) !== is);
  complain(wanted ? t("see.changed", { z: wanted[0], x: quoted(wanted[1]), y: wanted[2] }) : "");
  deeds = get("do") ? parse(get("do")) : usual();
  past = [];
  if (isByHand()) deeds = deeds.flatMap(({ deed, word }) => ({ deed, word: withPositions(word, bits) })).filter(({ word }) => word);
  shown = deeds.length - 1;
  step = Infinity;
  update();
}

const isByHand = () => kind === BY_HAND;

function shapeByHand(wanted) {
  bits = Number.isInteger(wanted) && wanted > 0 && wanted <= MOST_BITS ? wanted : SIZES[0];
  probes = 0;
  story?.free();
  story = new Story(byHand, { kind, bits, probes });
  story.given = true;
  showShape([...new Set([...SIZES.filter((each) => each <= MOST_BITS), bits])].sort((a, b) => a - b), []);
}

// The nearest shape that this kind can have.
function shape(wantedBits, wantedProbes) {
  if (isByHand()) return shapeByHand(wantedBits);
  const near = (all, wanted) => all.reduce((a, b) =>
    (Math.abs(b - wanted) < Math.abs(a - wanted) ? b : a), all[0]);
  const asked = Number.isInteger(wantedBits) && wantedBits > 0 && wantedBits <= SIZES.at(-1) ? [wantedBits] : [];
  let sizes = sizesOf(calyx, kind, [...new Set([...SIZES, ...asked])].sort((a, b) => a - b));
  if (sizes.length > 1) sizes = sizes.filter((each) => each <= LARGEST); // unless there is no other
  const least = Math.min(2 * calyx.leastBits(kind), LARGEST);
  bits = !sizes.length || sizes.includes(wantedBits) ? wantedBits
    : near(sizes, calyx.can(kind, "count") ? calyx.leastBits(kind) : Math.max(USUAL.bits, least));
  const all = sizes.length ? probesOf(calyx, kind, bits, PROBES) : [];
  probes = all.includes(wantedProbes) ? wantedProbes : near(all, USUAL.probes) ?? 0;
  story?.free();
  story = new Story(calyx, { kind, bits, probes });
  if (story.form === "codes" && probes !== all[0]) { // whose codes are in slots of bytes
    probes = all[0];
    story.free();
    story = new Story(calyx, { kind, bits, probes });
  }
  showShape(sizes, story.form === "codes" ? [] : all);
}

function showShape(sizes, all) {
  $("see-size").closest("label").hidden = !sizes.length;
  $("see-probes").closest("label").hidden = !all.length;
  for (const id of ["see-find", "see-fill", "see-save"]) $(id).hidden = isByHand();
  $("word").placeholder = t(isByHand() ? "see.hand.hint" : "see.word.hint");
  const options = (list) => list.map((n) => make("option", {}, String(n)));
  $("see-size").replaceChildren(...options(sizes));
  $("see-probes").replaceChildren(...options(all));
  $("see-kind").value = kind;
  $("see-size").value = bits;
  $("see-probes").value = probes;
}

// Five flowers. Where bits are counted, two of them share one; equations need
// more, or most bits are 0.
function usual() {
  if (isByHand()) return parse(USUAL_BY_HAND);
  const flowers = t("flowers").split(" "), last = story.form === "sums" ? EQUATIONS : 5;
  const words = story.counts ? sharing(flowers) : flowers.slice(0, last);
  return [...words.map((word) => ({ deed: ADD, word })), { deed: ASK, word: flowers[last] }];
}

function sharing(words) {
  for (const [i, a] of words.entries())
    for (const b of words.slice(i + 1))
      if (story.bitsOf(a).some((bit) => story.bitsOf(b).includes(bit)))
        return [...words.filter((word) => word !== a && word !== b).slice(0, 3), a, b];
  return words.slice(0, 5);
}

export const embedCode = () => `<iframe src="${link({ part: "see", embed: "1", theme: "" }).replaceAll("&", "&amp;")}" ` +
  `title="${t("title.see")}" style="width:100%;height:420px;border:0" loading="lazy"></iframe>`;

function reshape() {
  complain("");
  const isUsual = write(deeds) === write(usual());
  turn(true);
  kind = $("see-kind").value;
  shape(Number($("see-size").value), Number($("see-probes").value));
  past = [];
  if (isUsual) deeds = usual();
  finish();
}

function store() {
  const text = write(deeds);
  set("see", kind === calyx.textbook() ? "" : kind);
  const isUsual = bits === USUAL.bits && probes === USUAL.probes;
  set("sm", isUsual ? "" : String(bits));
  set("sk", isUsual ? "" : String(probes));
  set("do", text === write(usual()) ? "" : text || ASK);
}

function finish() {
  pause();
  shown = deeds.length - 1;
  step = Infinity;
  looked = "";
  store();
  update();
}

function commit(next) {
  past.push(deeds);
  deeds = next;
  finish();
}

export function undo() {
  if (!past.length) return false;
  deeds = past.pop();
  complain("");
  finish();
  return true;
}

// A hint is no error.
function complain(text, hint) {
  say($("see-error"), text);
  $("see-error").className = hint ? "note" : "error";
}

function act(deed, typed = $("word").value) {
  const text = isByHand() ? withPositions(typed, bits) : typed;
  const bad = isByHand() && typed && !text ? t("see.hand.bad", { m: bits - 1 }) : !text ? t("see.none") : text.length > LONGEST ? t("see.long")
    : isFull() ? t("see.full") : "";
  complain(bad);
  if (bad || !calyx) return;
  commit([...deeds, { deed, word: text }]);
  if (deed === ADD || deed === ALLOW) $("word").value = "";
  $("word").focus({ preventScroll: true });
}

// A link holds no more.
const isFull = (all = deeds) => all.length >= MOST_DEEDS || write(all).length > LONGEST_LINK - 3 * LONGEST;

// ---- Playing ----

function play() {
  pause();
  const end = stepsOf(story.look(deeds, shown)).last;
  if (step >= end && shown === deeds.length - 1) step = 0;
  timer = -1; // a step follows
  update();
  wait();
}

// Each caption stays for as long as one reads it.
function wait() {
  timer = setTimeout(() => {
    if ($("see").hidden) return pause();
    const { last } = stepsOf(story.look(deeds, shown));
    if (step >= last) {
      if (shown === deeds.length - 1) return halt();
      shown++;
      step = 0;
    } else step++;
    update();
    wait();
  }, Math.max(LEAST, READ * $("see-say").textContent.length));
}

function pause() {
  clearTimeout(timer);
  timer = 0;
}

function halt() {
  pause();
  update();
}

function move(by) {
  pause();
  const { last } = stepsOf(story.look(deeds, shown));
  step = Math.min(step, last) + by;
  if (step > last && shown < deeds.length - 1) shown++, step = 0;
  else if (step < 0 && shown > 0) shown--, step = Infinity;
  step = Math.max(0, step);
  update();
}

// ---- Many words ----

async function find() {
  if (busy || !story) return;
  busy = true;
  try {
    const { filter, words } = story.after(deeds);
    filter.free();
    complain(words.size ? t("see.finding") : t("see.empty"), words.size);
    if (!words.size) return;
    // Where it would take too long, after more words.
    const fuller = [...deeds];
    while (rateOf(fuller) * SPOKEN < SURE && more(fuller) === FILL);
    const { found, tries } = await story.falsePositive(fuller, t("flowers").split(" "));
    const added = fuller.length - deeds.length;
    complain(!found ? t("see.notfound", { x: tries }) : added ? t("see.fuller", { x: added }) : "", found);
    if (found) commit([...fuller, { deed: ASK, word: found }]);
  } finally {
    busy = false;
  }
}

function rateOf(all) {
  const { filter } = story.after(all), { rate } = filter.describe();
  filter.free();
  return rate;
}

function fill() {
  if (!story) return;
  const all = [...deeds];
  complain(more(all) < FILL ? t("see.full") : "");
  if (all.length > deeds.length) commit(all);
}

// Adds words to a list of deeds; returns how many there was room for.
function more(all) {
  const { filter, words } = story.after(all);
  filter.free();
  const room = isFull(all) ? 0 : Math.min(FILL, MOST_DEEDS - 1 - all.length);
  let n = 0;
  for (let i = 7 * all.length; n < room; i += 331) {
    const word = spokenWord(i);
    if (words.has(word)) continue;
    words.set(word, 1);
    all.push({ deed: ADD, word });
    n++;
  }
  return n;
}

// ---- Drawing ----

export function update() {
  if (!story || $("see").hidden) return; // it will be shown
  $("bits").dataset.form = story.form;
  $("see-many").hidden = !story.counts;
  say($("see-remove"), t(story.removes ? "see.remove" : "see.force"));
  say($("see-about"), t("see.about." + (story.given ? "hand" : story.form !== "bits" ? story.form : story.counts ? "count" : story.open ? "open"
    : "block"), { x: story.bits / story.block, y: story.block, k: story.probes,
    z: t(story.removes ? "see.about.remove" : "see.about.once") }));
  const view = story.look(deeds, shown), steps = stepsOf(view);
  step = Math.min(step, steps.last);
  const final = step >= steps.last;
  const words = final ? view.wordsAfter : view.words;
  const cells = story.blocksOf(view).blocks.flatMap((block) => (story.form === "sums" ? block.slice(0, -1) : block));
  const set = cells.filter((at) => view.after[at]).length;
  const lit = looked ? story.cellsOf(looked, view.after) : [];
  board.draw(story, view, step, t(named("see.bits"), { x: set, y: cells.length }), { lit });
  caption($("see-say"), story, view, step);
  drawGauge(set, cells.length, view.rate);
  drawTests(view, Math.max(0, Math.min(step - 1, steps.probes)));
  drawWords($("words"), words, final ? view.lost : view.lostBefore);
  const allowed = final ? view.allowed : view.allowedBefore;
  $("allow-box").hidden = !allowed.size;
  drawWords($("allowed"), new Map([...allowed].map((word) => [word, 1])), new Set());
  say($("see-bit"), looked && story.form === "bits" ? t("see.looked", { x: quoted(looked), y: lit.join(t("comma")) })
    : t(named("see.hover")));
  say($("see-where"), view.now
    ? t("see.where", { x: shown + 1, y: deeds.length, z: step, n: steps.last }) : "");
  const first = !view.now || (shown === 0 && step === 0);
  const end = !view.now || (shown === deeds.length - 1 && final);
  $("see-back").disabled = $("see-first").disabled = first;
  $("see-next").disabled = $("see-last").disabled = end;
  $("see-play").disabled = !view.now;
  say($("see-play"), timer ? "❚❚" : t("see.play"));
  $("see-play").setAttribute("aria-label", t(timer ? "pause" : "play"));
}

// Slots of codes have other words than bits.
const named = (key) => (story.form === "codes" ? key + ".codes" : key);

function drawGauge(count, all, rate) {
  const fill = count / all;
  say($("see-filled-name"), t(named("see.filled")));
  $("see-filled").replaceChildren(
    make("b", {}, t("see.of", { x: count, y: all })), ` = ${rateText(fill)}`,
    make("meter", { min: 0, max: 1, low: 0.55, high: 0.75, optimum: 0.2, value: fill,
      "aria-label": t(named("see.filled")) }));
  const parts = [make("b", {}, story.given ? "–" : count ? rateText(rate) : "0 %")];
  if (!story.given && count && story.form === "bits" && story.open)
    parts.push(" ≈ ", general(fill, 2), make("sup", {}, String(story.probes)), ` ${t("see.power")}`);
  if (story.form === "sums")
    parts.push(" = ½", make("sup", {}, String(story.probes)), ` ${t("see.power.sums", { x: story.probes })}`);
  $("see-rate").replaceChildren(...parts);
}

// The bits of the word, or its equations.
function drawTests(view, probed) {
  const { form } = story;
  $("see-probes-box").hidden = form === "codes";
  if (form === "codes") return;
  say($("see-probes-name"), t("see.probes." + form));
  const heads = ["#", ...["see.bit", "see.is", "see.lit"].map((key) => t(form === "sums" ? key + ".sums" : key))];
  $("probe-table").tHead.rows[0].replaceChildren(...heads.map((text) => make("th", { scope: "col" }, text)));
  $("probe-table").tBodies[0].replaceChildren(...view.tests.map((test, i) =>
    make("tr", { class: i < probed ? "" : "later", "data-bit": test.bits[0] }, make("td", {}, String(i + 1)),
      ...(form === "sums" ? equation(test, view) : bitCells(i, view)))));
}

function bitCells(number, view) {
  const [bit] = view.tests[number].bits, [was, is] = changeOf(view, number);
  return [make("td", {}, String(bit)), make("td", {}, was !== is ? `${was} → ${is}` : String(was)),
    make("td", {}, view.before[bit] ? ownersOf(story, view.words, bit, view.before) || t("see.nobody") : "–")];
}

function equation(test, { cells }) {
  const sum = sumOf(test, cells), right = sum === test.sum;
  return [make("td", { class: "sum" }, test.bits.map((bit) => cells[bit]).join("+")), make("td", {}, String(sum)),
    make("td", { class: right ? "v-maybe" : "v-no", "data-right": String(right) }, `${test.sum} ${right ? "✓" : "✗"}`)];
}

function drawWords(box, words, lost) {
  const all = [...words].map(([word, n]) => make("button", { type: "button", "data-word": word,
    class: ["word", lost.has(word) && "lost", word === looked && "chosen"].filter(Boolean).join(" "),
    "aria-pressed": String(word === looked) },
    quoted(word) + (n > 1 ? ` ×${n}` : ""),
    ...(lost.has(word) ? [make("small", {}, " " + t("see.lost"))] : [])));
  box.replaceChildren(...(all.length ? all : [t("see.nowords")]));
}

// A cell under the pointer, or touched.
function readCell(event) {
  const cell = event.target.closest?.("[data-bit]");
  if (!cell || !story) return;
  const at = Number(cell.dataset.bit), view = story.look(deeds, shown), { form } = story;
  const z = ownersOf(story, view.wordsAfter, at, view.after), n = view.after[at];
  const key = form === "codes" ? (n ? "see.slot" : "see.slot.free") : form === "sums" ? (z ? "see.bit.in" : "see.bit.is")
    : z ? "see.bit.by" : n ? "see.bit.nobody" : "see.bit.is";
  say($("see-bit"), t(key, { x: form === "codes" ? at % story.slotsOf(view.after) : at, y: form === "codes" ? hex(n & 255, 2) : n, z, n: n >> 8 }));
}

// See: a small filter, drawn bit by bit, that plays what is done to it.
import { Board } from "../board.js";
import { caption } from "../caption.js";
import { $, download, make, quoted, say, still } from "../dom.js";
import { general, rateText } from "../number.js";
import { LONGEST as LONGEST_LINK, get, set } from "../state.js";
import { ADD, ASK, LONGEST, MANY, MOST_DEEDS, REMOVE, Story, parse, probesOf, sizesOf, stepsOf,
  syllables, write } from "../story.js";
import { t } from "../text/text.js";

const SIZES = [64, 128, 256, 512, 1024], PROBES = [1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 16];
const USUAL = { bits: 256, probes: 4 };
const PACE = 600; // ms a step
const FILL = 20; // words that are added at once

let calyx = null, story = null, board = null;
let kind = "", bits = 0, probes = 0;
let deeds = []; // {deed, word}
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
  $("see-find").onclick = find;
  $("see-fill").onclick = fill;
  $("see-clear").onclick = () => {
    deeds = [];
    finish();
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
  $("bits").onclick = $("bits").onpointerover = readBit;
  $("words").onclick = (event) => {
    const chip = event.target.closest("[data-word]");
    if (!chip) return;
    looked = looked === chip.dataset.word ? "" : chip.dataset.word;
    $("word").value = chip.dataset.word;
    update();
  };
}

export function ready(library) {
  calyx = library;
  $("see-kind").replaceChildren(...calyx.kinds.map((name) => make("option", {}, name)));
  restore();
}

// From the address: what is there is checked, as anybody can write it.
function restore() {
  kind = calyx.kinds.includes(get("see")) ? get("see") : calyx.textbook();
  shape(Number(get("sm")), Number(get("sk")));
  deeds = get("do") ? parse(get("do")) : usual();
  shown = deeds.length - 1;
  step = Infinity;
  update();
}

// The nearest shape that this kind can have.
function shape(wantedBits, wantedProbes) {
  const near = (all, wanted) => all.reduce((a, b) =>
    (Math.abs(b - wanted) < Math.abs(a - wanted) ? b : a), all[0]);
  const sizes = sizesOf(calyx, kind, SIZES);
  const least = Math.min(2 * calyx.leastBits(kind), SIZES.at(-1));
  bits = !sizes.length || sizes.includes(wantedBits) ? wantedBits
    : near(sizes, calyx.can(kind, "count") ? calyx.leastBits(kind) : Math.max(USUAL.bits, least));
  const all = sizes.length ? probesOf(calyx, kind, bits, PROBES) : [];
  probes = all.includes(wantedProbes) ? wantedProbes : near(all, USUAL.probes) ?? 0;
  $("see-size").closest("label").hidden = $("see-probes").closest("label").hidden = !all.length;
  const options = (list) => list.map((n) => make("option", {}, String(n)));
  $("see-size").replaceChildren(...options(sizes));
  $("see-probes").replaceChildren(...options(all));
  $("see-kind").value = kind;
  $("see-size").value = bits;
  $("see-probes").value = probes;
  story?.free();
  story = new Story(calyx, { kind, bits, probes });
}

// Five flowers. Where bits are counted, two of them share one.
function usual() {
  const flowers = t("flowers").split(" ");
  let words = flowers.slice(0, 5);
  if (story.counts) words = sharing(flowers);
  return [...words.map((word) => ({ deed: ADD, word })), { deed: ASK, word: flowers[5] }];
}

function sharing(words) {
  for (const [i, a] of words.entries())
    for (const b of words.slice(i + 1))
      if (story.bitsOf(a).some((bit) => story.bitsOf(b).includes(bit)))
        return [...words.filter((word) => word !== a && word !== b).slice(0, 3), a, b];
  return words.slice(0, 5);
}

function reshape() {
  const isUsual = write(deeds) === write(usual());
  kind = $("see-kind").value;
  shape(Number($("see-size").value), Number($("see-probes").value));
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

function act(deed, text = $("word").value) {
  const bad = !text ? t("see.none") : text.length > LONGEST ? t("see.long")
    : isFull() ? t("see.full") : "";
  say($("see-error"), bad);
  if (bad || !calyx) return;
  deeds.push({ deed, word: text });
  finish();
  if (deed === ADD) $("word").value = "";
  $("word").focus({ preventScroll: true });
  if (still()) return;
  step = 0;
  play();
}

// A link holds no more.
const isFull = () => deeds.length >= MOST_DEEDS || write(deeds).length > LONGEST_LINK - 3 * LONGEST;

// ---- Playing ----

function play() {
  pause();
  const end = stepsOf(story.look(deeds, shown)).last;
  if (step >= end && shown === deeds.length - 1) step = 0;
  timer = setInterval(() => {
    if ($("see").hidden) return pause();
    const { last } = stepsOf(story.look(deeds, shown));
    if (step >= last) {
      if (shown === deeds.length - 1) return halt();
      shown++;
      step = 0;
    } else step++;
    update();
  }, PACE);
  update();
}

function pause() {
  clearInterval(timer);
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
    say($("see-error"), words.size ? t("see.finding") : t("see.empty"));
    if (!words.size) return;
    const { found, tries } = await story.falsePositive(deeds,
      [...t("flowers").split(" "), ...syllables()]);
    say($("see-error"), found ? "" : t("see.notfound", { x: tries }));
    if (found) act(ASK, found);
  } finally {
    busy = false;
  }
}

function fill() {
  if (!story) return;
  const { filter, words } = story.after(deeds);
  filter.free();
  const room = isFull() ? 0 : MOST_DEEDS - deeds.length;
  say($("see-error"), room < FILL ? t("see.full") : "");
  let n = 0;
  const all = [...syllables()];
  for (let i = 7 * deeds.length; n < Math.min(FILL, room); i += 331) {
    const word = all[i % all.length];
    if (words.has(word)) continue;
    words.set(word, 1);
    deeds.push({ deed: ADD, word });
    n++;
  }
  finish();
}

// ---- Drawing ----

export function update() {
  if (!story || $("see").hidden) return; // it will be shown
  $("see-many").hidden = !story.counts;
  $("see-probes-box").hidden = !story.tests;
  say($("see-remove"), t(story.removes ? "see.remove" : "see.force"));
  say($("see-about"), t(!story.adds ? "see.about.static" : !story.tests ? "see.about.other"
    : story.counts ? "see.about.count" : story.open ? "see.about.open"
    : "see.about.block", { x: story.bits / story.block, y: story.block, k: story.probes }));
  const view = story.look(deeds, shown), steps = stepsOf(view);
  step = Math.min(step, steps.last);
  const final = step >= steps.last;
  const set = view.after.filter(Boolean).length;
  board.draw(story, view, step, t("see.bits", { x: set, y: view.after.length }),
    { lit: looked ? story.bitsOf(looked) : [] });
  caption($("see-say"), story, view, step);
  drawGauge(set, view);
  drawProbes(view, Math.max(0, Math.min(step - 1, steps.probes)));
  drawWords(final ? view.wordsAfter : view.words, final ? view.lost : view.lostBefore);
  say($("see-bit"), looked ? t("see.looked", { x: quoted(looked), y: story.bitsOf(looked).join(t("comma")) })
    : t("see.hover"));
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

function drawGauge(count, view) {
  const all = view.after.length, fill = count / all;
  $("see-filled").replaceChildren(
    make("b", {}, t("see.of", { x: count, y: all })), ` = ${rateText(fill)}`,
    make("meter", { min: 0, max: 1, low: 0.55, high: 0.75, optimum: 0.2, value: fill,
      "aria-label": t("see.filled") }));
  const parts = [make("b", {}, count ? rateText(view.rate) : "0 %")];
  if (count && story.tests && story.open)
    parts.push(" ≈ ", general(fill, 2), make("sup", {}, String(story.probes)), ` ${t("see.power")}`);
  $("see-rate").replaceChildren(...parts);
}

const setBy = (words, bit) => [...words.keys()].filter((word) => story.bitsOf(word).includes(bit));

function drawProbes(view, probed) {
  const rows = (view.bits ?? []).map((bit, i) => {
    const [was, is] = [view.before[bit], view.after[bit]];
    const changes = view.now.deed !== ASK && was !== is;
    const by = setBy(view.words, bit).map(quoted).join(t("comma"));
    return make("tr", { class: i < probed ? "" : "later", "data-bit": bit },
      make("td", {}, String(i + 1)), make("td", {}, String(bit)),
      make("td", {}, changes ? `${was} → ${is}` : String(was)),
      make("td", {}, was ? by || t("see.nobody") : "–"));
  });
  $("probe-table").tBodies[0].replaceChildren(...rows);
}

function drawWords(words, lost) {
  const all = [...words].map(([word, n]) => make("button", { type: "button", "data-word": word,
    class: ["word", lost.has(word) && "lost", word === looked && "chosen"].filter(Boolean).join(" "),
    "aria-pressed": String(word === looked) },
    quoted(word) + (n > 1 ? ` ×${n}` : ""),
    ...(lost.has(word) ? [make("small", {}, " " + t("see.lost"))] : [])));
  $("words").replaceChildren(...(all.length ? all : [t("see.nowords")]));
}

// A bit under the pointer, or touched.
function readBit(event) {
  const cell = event.target.closest?.("[data-bit]");
  if (!cell || !story) return;
  const bit = Number(cell.dataset.bit), view = story.look(deeds, shown);
  const by = setBy(view.wordsAfter, bit).map(quoted).join(t("comma"));
  say($("see-bit"), t(by ? "see.bit.by" : view.after[bit] ? "see.bit.nobody" : "see.bit.zero",
    { x: bit, y: view.after[bit], z: by }));
}

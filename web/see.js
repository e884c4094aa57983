// See: a small filter, drawn bit by bit. What was done to it is a list of
// deeds; the filter is made anew from those before the one that is shown. Where
// the probes of a word are is not computed here: the library adds the word to
// an empty filter of the same shape, and the bits that are set then are they.
import { $, make, quoted, say } from "./dom.js";
import { get, set } from "./state.js";
import { t } from "./text.js";

const shapes = {
  flat: { bits: 256, probes: 4, block: 256 },
  line: { bits: 1024, probes: 3, block: 512 },
  counting: { bits: 512, probes: 3, block: 512 },
};
const ADD = "+", MANY = "*", REMOVE = "-", ASK = "?";
const TIMES = 15; // what MANY stands for: as far as a counter counts
const MOST_DEEDS = 300;
const LONGEST = 200; // characters of a word
const usual = "+rose,+iris,+tulip,+lily,+poppy,?daisy";

let calyx = null;
let kind = "flat";
let deeds = []; // {deed, word}
let shown = 0; // which of them is shown, and up to which of its steps
let step = 0;
let busy = false;
const patterns = new Map(); // word -> its bits, in the order they are probed

export function start() {
  if (Object.hasOwn(shapes, get("see"))) kind = get("see");
  $("see-kind").value = kind;
  deeds = parse(get("do", usual));
  shown = deeds.length - 1;
  $("see-kind").onchange = () => {
    kind = $("see-kind").value;
    patterns.clear();
    deeds = deeds.filter(({ deed }) => deed !== REMOVE || kind === "counting");
    finish();
  };
  $("see-form").onsubmit = (event) => {
    event.preventDefault();
    act(ASK);
  };
  $("see-add").onclick = () => act(ADD);
  $("see-remove").onclick = () => act(REMOVE);
  $("see-many").onclick = () => act(MANY);
  $("see-find").onclick = find;
  $("see-clear").onclick = () => {
    deeds = [];
    finish();
  };
  $("see-next").onclick = () => move(1);
  $("see-back").onclick = () => move(-1);
  $("see-first").onclick = () => jump(-1);
  $("see-last").onclick = () => jump(1);
}

function parse(text) {
  const all = [];
  for (const each of text.split(",").slice(0, MOST_DEEDS)) {
    if (![ADD, MANY, REMOVE, ASK].includes(each[0])) continue;
    try {
      const word = decodeURIComponent(each.slice(1));
      if (word && word.length <= LONGEST) all.push({ deed: each[0], word });
    } catch {
      // half a character, from a link that was cut
    }
  }
  return all;
}

function keep() {
  const text = deeds.map(({ deed, word }) =>
    deed + encodeURIComponent(word.toWellFormed?.() ?? word)).join(",");
  set("see", kind === "flat" ? "" : kind);
  set("do", text === usual ? "" : text || ASK);
}

export function ready(library) {
  calyx = library;
  finish();
}

function finish() {
  shown = deeds.length - 1;
  step = Infinity;
  keep();
  update();
}

function act(deed) {
  const word = $("word").value;
  const bad = !word ? t("see.none") : word.length > LONGEST ? t("see.long")
    : deeds.length >= MOST_DEEDS ? t("see.full") : "";
  say($("see-error"), bad);
  if (bad || !calyx) return;
  deeds.push({ deed, word });
  finish();
}

// ---- The filter ----

const empty = (shape, probes = shape.probes) => calyx.make({ kind,
  capacity: 20, bits: shape.bits, probes });

const bodyOf = (filter) => filter.getBits(0, filter.describe().bytes);
const isSet = (body, bit) => body[bit >> 3] >> (bit & 7) & 1;

// The counter of a bit, 0 to 15: planes behind the lines, as doc/FORMAT.md
// tells. In kinds that do not count it is the bit.
function counter(body, bit) {
  if (!isSet(body, bit)) return 0;
  if (kind !== "counting") return 1;
  const { bits } = shapes[kind];
  let more = 0;
  for (let plane = 0; plane < 4; plane++)
    more |= isSet(body, bit + bits * (plane + 1)) << plane;
  return Math.min(more + 1, TIMES);
}

function setBits(filter) {
  const body = bodyOf(filter), all = [];
  for (let bit = 0; bit < shapes[kind].bits; bit++)
    if (isSet(body, bit)) all.push(bit);
  filter.free();
  return all;
}

function pattern(word) {
  if (patterns.has(word)) return patterns.get(word);
  const shape = shapes[kind];
  const bitsFor = (probes) => {
    const filter = empty(shape, probes);
    filter.add(word);
    return setBits(filter);
  };
  let bits = [];
  if (kind !== "flat") bits = bitsFor(shape.probes);
  else // probes follow each other, so one more probe is one more bit, or an old one
    for (let probes = 1; probes <= shape.probes; probes++)
      bits.push(bitsFor(probes).find((bit) => !bits.includes(bit)) ?? bits.at(-1));
  patterns.set(word, bits);
  return bits;
}

function perform(filter, { deed, word }) {
  if (deed === ADD) filter.add(word);
  if (deed === MANY) for (let i = 0; i < TIMES; i++) filter.add(word);
  if (deed === REMOVE) return filter.remove(word);
}

// The filter before the shown deed, the words in it, and how it is after.
function look() {
  const filter = empty(shapes[kind]);
  const words = new Map(); // word -> how often it was added
  const note = (done, { deed, word }) => {
    const n = words.get(word) ?? 0;
    if (deed === ADD) words.set(word, n + 1);
    if (deed === MANY) words.set(word, n + TIMES);
    if (deed === REMOVE && done && n > 1) words.set(word, n - 1);
    if (deed === REMOVE && done && n <= 1) words.delete(word);
  };
  for (const each of deeds.slice(0, shown)) note(perform(filter, each), each);
  const now = deeds[shown];
  const view = { now, before: bodyOf(filter), words: new Map(words) };
  if (now) {
    view.hash = filter.hash(now.word);
    view.had = filter.has(now.word);
    view.bits = pattern(now.word);
    view.done = perform(filter, now);
    note(view.done, now);
  }
  view.after = bodyOf(filter);
  view.wordsAfter = words;
  filter.free();
  return view;
}

// Steps: the hash, the block, each probe up to the first zero if that decides,
// the answer.
function stepsOf(view) {
  if (!view.now) return { probes: 0, last: 0 };
  const zero = view.bits.findIndex((bit) => !isSet(view.before, bit));
  const adds = view.now.deed === ADD || view.now.deed === MANY;
  const probes = !adds && zero >= 0 ? zero + 1 : view.bits.length;
  return { zero: adds ? -1 : zero, probes, last: probes + 2 };
}

function move(by) {
  const { last } = stepsOf(look());
  step = Math.min(step, last) + by;
  if (step > last && shown < deeds.length - 1) shown++, step = 0;
  else if (step < 0 && shown > 0) shown--, step = Infinity;
  step = Math.max(0, step);
  update();
}

function jump(by) {
  shown = Math.max(0, Math.min(deeds.length - 1, shown + by));
  step = Infinity;
  update();
}

// ---- A false positive ----

// Words that can be spoken: three pairs of a consonant and a vowel.
function* strangers() {
  const pairs = [..."bdfghklmnprstvz"].flatMap((c) => [..."aeiou"].map((v) => c + v));
  for (const a of pairs) for (const b of pairs) for (const c of pairs) yield c + a + b;
}

async function find() {
  if (busy || !calyx) return;
  busy = true;
  try {
    const { wordsAfter: words } = (shown = deeds.length - 1, look());
    say($("see-error"), words.size ? t("see.finding") : t("see.empty"));
    if (!words.size) return;
    const filter = empty(shapes[kind]);
    for (const each of deeds) perform(filter, each);
    let tries = 0, found = "";
    for (const word of strangers()) {
      if (++tries % 20000 === 0) await new Promise((go) => setTimeout(go));
      if (!filter.has(word) || words.has(word)) continue;
      found = word;
      break;
    }
    filter.free();
    say($("see-error"), found ? "" : t("see.notfound", { x: tries }));
    if (!found) return;
    $("word").value = found;
    act(ASK);
  } finally {
    busy = false;
  }
}

// ---- Drawing ----

export function update() {
  if (!calyx || $("see").hidden) return; // it will be shown
  const counts = kind === "counting";
  $("see-remove").hidden = $("see-many").hidden = !counts;
  say($("see-about"), t("see.about." + kind));
  const view = look(), steps = stepsOf(view);
  step = Math.min(step, steps.last);
  const probed = Math.max(0, Math.min(step - 1, steps.probes));
  const final = step >= steps.last;
  drawBits(view, steps, probed, final);
  drawProbes(view, steps, probed);
  drawWords(final ? view.wordsAfter : view.words);
  say($("see-where"), view.now
    ? t("see.where", { x: shown + 1, y: deeds.length, z: step, n: steps.last }) : "");
  $("see-back").disabled = $("see-first").disabled = !view.now || (shown === 0 && step === 0);
  $("see-next").disabled = $("see-last").disabled =
    !view.now || (shown === deeds.length - 1 && final);
  narrate(view, steps, probed, final);
}

const deedNames = { [ADD]: "see.add", [MANY]: "see.many", [REMOVE]: "see.remove", [ASK]: "see.ask" };

function narrate(view, steps, probed, final) {
  const out = $("see-say");
  out.dataset.verdict = "";
  if (!view.now) return out.replaceChildren(t("see.start"));
  const name = `${t(deedNames[view.now.deed])} “${quoted(view.now.word)}”: `;
  const hash = "0x" + view.hash.toString(16).padStart(16, "0");
  if (final) {
    const [verdict, text] = judge(view, steps);
    out.dataset.verdict = verdict;
    const look = { no: "no", maybe: "yes", false: "no" }[verdict] ?? "";
    return out.replaceChildren(name, make("span", { class: look }, text));
  }
  if (step === 0)
    return out.replaceChildren(name, t("see.hash"), " ", make("span", { class: "hash" }, hash));
  const { block } = shapes[kind];
  if (step === 1)
    return out.replaceChildren(name, kind === "flat" ? t("see.noblock")
      : t("see.block", { x: Math.floor(view.bits[0] / block) }));
  const bit = view.bits[probed - 1];
  out.replaceChildren(name, t("see.probe", { x: probed, y: bit,
    z: isSet(view.before, bit) ? t("see.one") : t("see.zero") }));
}

// What came of it: a word for tests and styles, and a text.
function judge(view, steps) {
  const { deed, word } = view.now;
  if (deed === ADD || deed === MANY) {
    const full = view.bits.some((bit) => counter(view.after, bit) === TIMES);
    if (kind === "counting" && full) return ["full", t("see.saturated")];
    return view.had ? ["again", t("see.again")] : ["added", t("see.added")];
  }
  if (steps.zero >= 0)
    return ["no", t(deed === REMOVE ? "see.notthere" : "see.no", { x: view.bits[steps.zero] })];
  if (deed === REMOVE)
    return view.words.has(word) ? ["removed", t("see.removed")] : ["wrong", t("see.wrong")];
  return view.words.has(word) ? ["maybe", t("see.maybe")] : ["false", t("see.false")];
}

function drawBits(view, steps, probed, final) {
  const { bits, block } = shapes[kind];
  const adds = view.now && view.now.deed !== ASK;
  const probes = view.bits?.slice(0, probed) ?? [];
  const blocks = [];
  let lit = 0;
  for (let from = 0; from < bits; from += block) {
    const here = view.now && step >= 1 && kind !== "flat" &&
      Math.floor(view.bits[0] / block) * block === from;
    const cells = [];
    for (let bit = from; bit < from + block; bit++) {
      const passed = adds && (final || probes.includes(bit));
      const n = counter(passed ? view.after : view.before, bit);
      const fresh = passed && n > counter(view.before, bit);
      const zero = view.now?.deed !== ADD && steps.zero >= 0 &&
        probed > steps.zero && bit === view.bits[steps.zero];
      const names = ["bit", n && "set", n === TIMES && "full", fresh && "new",
        probes.includes(bit) && "probe", zero && "zero"].filter(Boolean);
      lit += n > 0;
      const cell = make("span", { class: names.join(" "), "data-bit": bit });
      if (kind === "counting" && n) cell.textContent = n;
      cells.push(cell);
    }
    blocks.push(make("div", { class: here ? "block here" : "block" }, ...cells));
  }
  $("bits").replaceChildren(...blocks);
  $("bits").setAttribute("aria-label", t("see.bits", { x: lit, y: bits }));
}

function drawProbes(view, steps, probed) {
  const litBy = (bit) => [...view.words.keys()]
    .filter((word) => pattern(word).includes(bit)).map(quoted).join(", ");
  const rows = (view.bits ?? []).map((bit, i) => make("tr",
    { class: i < probed ? "" : "later" },
    make("td", {}, String(i + 1)), make("td", {}, String(bit)),
    make("td", {}, String(counter(view.before, bit))),
    make("td", {}, isSet(view.before, bit) ? litBy(bit) || t("see.nobody") : "–")));
  $("probes").tBodies[0].replaceChildren(...rows);
}

function drawWords(words) {
  const all = [...words].map(([word, n]) =>
    make("span", { class: "word" }, quoted(word) + (n > 1 ? ` ×${n}` : "")));
  $("words").replaceChildren(...(all.length ? all : [t("see.nowords")]));
}

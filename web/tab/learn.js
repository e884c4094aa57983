// Learn: a story in cards, each with its own address, which other pages can
// embed with ?embed=1. Every card is drawn from a real filter.
import { Board } from "../board.js";
import { caption } from "../caption.js";
import { Flow } from "../flow.js";
import { $, make, say, still } from "../dom.js";
import { rateText } from "../number.js";
import { get, link, set } from "../state.js";
import { ADD, ASK, REMOVE, Story, probesOf, spokenWord, stepsOf, write } from "../story.js";
import { t } from "../text/text.js";

const PACE = 700; // ms a step
const SIZES = [64, 128, 256, 512]; // of the slider for m

// `shape` chooses a kind by what it can do; `deeds` gets the words of the story:
// a to d are added, x is absent, and f is a false positive. `from` is the first
// deed that is played.
const cards = [
  { name: "what", deeds: () => [] },
  { name: "add", deeds: ({ a, b }) => [add(a), add(b)], from: 0 },
  { name: "no", deeds: ({ a, b, x }) => [add(a), add(b), ask(x)] },
  { name: "maybe", deeds: ({ a, b }) => [add(a), add(b), ask(b)] },
  { name: "false", deeds: ({ a, b, c, d, f }) => [add(a), add(b), add(c), add(d), ask(f)] },
  { name: "size", sliders: true },
  { name: "delete", deeds: ({ a, b, c, d, s }) => [add(a), add(b), add(c), add(d), add(s), remove(s)] },
  { name: "count", shape: "count", deeds: ({ pair }) => [add(pair[0]), add(pair[1]), remove(pair[0]), ask(pair[1])], from: 1 },
  { name: "line", shape: "line", deeds: ({ a, b, c }) => [add(a), add(b), add(c)], from: 0 },
  { name: "store", flow: true },
  { name: "use" },
];
const add = (word) => ({ deed: ADD, word });
const ask = (word) => ({ deed: ASK, word });
const remove = (word) => ({ deed: REMOVE, word });

let calyx = null, board = null, flow = null;
let card = 0, scene = null; // {story, deeds, from, card}
let shown = 0, step = 0, timer = 0, turn = 0;

export function start() {
  board ??= new Board($("card-board"));
  flow ??= new Flow($("card-flow"), t);
  const wanted = Number(get("card", "1"));
  card = Number.isInteger(wanted) ? Math.min(Math.max(wanted, 1), cards.length) - 1 : 0;
  scene = null;
  pause();
  $("card-back").onclick = () => go(card - 1);
  $("card-next").onclick = () => go(card + 1);
  $("card-play").onclick = () => {
    if (cards[card].flow) flow.toggle();
    else if (timer) pause();
    else play();
    drawPlay();
  };
  for (const id of ["card-n", "card-m", "card-k"]) $(id).oninput = slide;
  $("learn").onkeydown = (event) => {
    if (event.target.type === "range") return;
    const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (by) go(card + by);
  };
}

export function ready(library) {
  calyx = library;
  flow.ready(calyx);
  update();
}

function go(to) {
  if (to < 0 || to >= cards.length) return;
  card = to;
  scene = null;
  set("card", to ? String(to + 1) : "");
  update();
}

export const number = () => card + 1; // of the card that is shown

export const embedCode = () => {
  const url = new URL(link({ part: "learn", card: String(card + 1), embed: "1", theme: "" }));
  return `<iframe src="${url.href.replaceAll("&", "&amp;")}" title="${t("learn." + cards[card].name)}" ` +
    `width="720" height="640" loading="lazy"></iframe>`;
};

// ---- Scenes ----

// Ask for abilities, never for names: a kind that counts; the default kind,
// whose keys lie in one block.
function storyOf(shape) {
  if (shape === "count") {
    for (const kind of calyx.addable()) {
      if (!calyx.can(kind, "count") || !calyx.can(kind, "remove")) continue;
      const story = new Story(calyx, { kind, bits: calyx.leastBits(kind), probes: 3 });
      if (story.counts) return story;
      story.free();
    }
  }
  if (shape === "line") {
    const kind = calyx.addable()[0];
    return new Story(calyx, { kind, bits: Math.max(64, 2 * calyx.leastBits(kind)), probes: 4 });
  }
  return new Story(calyx, { kind: calyx.textbook(), bits: 64, probes: 3 });
}

async function stage() {
  const mine = ++turn;
  const { deeds, shape, sliders, from } = cards[card];
  const language = t("flowers"); // of the words
  if (scene?.language === language) return scene;
  scene?.story.free();
  scene = null;
  if (sliders) return (scene = { card, language, ...filled() });
  const story = storyOf(shape);
  const all = deeds ? deeds(await words(story)) : [];
  if (mine !== turn) return null;
  scene = { card, language, story, deeds: all, from: from ?? all.length - 1 };
  shown = all.length - 1;
  step = Infinity;
  if (all.length && !still() && !$("learn").hidden) {
    shown = scene.from;
    step = 0;
    play();
  }
  return scene;
}

async function words(story) {
  const flowers = t("flowers").split(" ");
  const [a, b, c, d] = flowers, others = flowers.slice(4);
  const added = [a, b, c, d].map(add);
  const { filter } = story.after(added);
  const x = others.find((word) => !filter.has(word));
  filter.free();
  const f = cards[card].name === "false" // else a search for nothing
    ? (await story.falsePositive(added, others)).found : "";
  // A word whose removal by force takes another with it.
  const shares = (one, all) => all.some((other) => other !== one &&
    story.bitsOf(one).some((bit) => story.bitsOf(other).includes(bit)));
  const s = others.find((word) => shares(word, [a, b, c, d])) ?? others[0];
  const pair = flowers.flatMap((one, i) => flowers.slice(i + 1).map((other) => [one, other]))
    .find(([one, other]) => shares(one, [other])) ?? [a, b];
  return { a, b, c, d, x, f, s, pair };
}

// ---- Sliders: n, m and k ----

function filled() {
  const n = Number($("card-n").value), bits = SIZES[Number($("card-m").value)];
  const kind = calyx.textbook();
  const probes = probesOf(calyx, kind, bits, [Number($("card-k").value)])[0] ?? 1;
  const story = new Story(calyx, { kind, bits, probes });
  const deeds = Array.from({ length: n }, (_, i) => add(spokenWord(331 * i)));
  return { story, deeds, from: 0 };
}

function slide() {
  scene = null;
  update();
}

function drawFilled({ story, deeds }) {
  const view = story.look(deeds, deeds.length - 1);
  const count = view.after.filter(Boolean).length, n = deeds.length;
  board.draw(story, { ...view, now: undefined, before: view.after }, 0,
    t("see.bits", { x: count, y: story.bits }));
  say($("card-n-out"), String(n));
  say($("card-m-out"), String(story.bits));
  say($("card-k-out"), String(story.probes));
  const best = n ? Math.max(1, Math.round(story.bits / n * Math.LN2)) : 0;
  const p = n ? (1 - Math.exp(-story.probes * n / story.bits)) ** story.probes : 0;
  $("card-board").classList.add("ended");
  $("card-say").dataset.verdict = "";
  $("card-say").replaceChildren(
    t("learn.filled", { x: rateText(count / story.bits), k: story.probes }),
    make("b", {}, rateText(n ? view.rate : 0)), t("learn.formula", { x: rateText(p) }),
    n ? " " + t("learn.best", { x: best }) : "");
}

// ---- Playing ----

function play() {
  pause();
  if (!scene?.deeds.length) return;
  const { last } = stepsOf(scene.story.look(scene.deeds, shown));
  if (step >= last && shown === scene.deeds.length - 1) {
    shown = scene.from;
    step = 0;
  }
  timer = setInterval(() => {
    if ($("learn").hidden) return pause();
    const { last: end } = stepsOf(scene.story.look(scene.deeds, shown));
    if (step < end) step++;
    else if (shown < scene.deeds.length - 1) shown++, step = 0;
    else pause();
    draw();
  }, PACE);
  drawPlay();
}

function pause() {
  clearInterval(timer);
  timer = 0;
}

// ---- Drawing ----

export async function update() {
  if ($("learn").hidden) {
    pause();
    flow?.stop();
    return;
  }
  const { name, sliders, flow: flows } = cards[card];
  say($("card-number"), t("learn.number", { x: card + 1, y: cards.length }));
  say($("card-title"), t("learn." + name));
  document.title = `${t("learn." + name)} · ${t("title.learn")}`;
  $("card-text").replaceChildren(...t(`learn.${name}.text`).split("\n").map((line) =>
    (line.startsWith("- ") ? make("li", {}, ...bold(line.slice(2))) : make("p", {}, ...bold(line)))));
  $("card-sliders").hidden = !sliders;
  $("card-board").classList.toggle("plain", !!sliders);
  $("card-see").hidden = true; // until there is something to open
  $("card-flow").hidden = !flows;
  $("card-board").hidden = !!flows || name === "use";
  $("card-board").classList.remove("ended");
  $("card-say").hidden = name === "use";
  $("card-list").replaceChildren(...cards.map((each, i) => make("li", {}, make("a", {
    href: `?part=learn&card=${i + 1}`, "aria-label": `${i + 1}: ${t("learn." + each.name)}`, title: t("learn." + each.name),
    ...(i === card && { "aria-current": "step" }) }, String(i + 1)))));
  $("card-full").href = link({ embed: "", theme: "" });
  $("card-back").disabled = card === 0;
  $("card-next").disabled = card === cards.length - 1;
  if (!calyx) return;
  if (!flows) flow.stop();
  else return flow.update($("card-say")), drawPlay();
  pause();
  if (await stage()) draw();
}

// **words** between stars are bold.
const bold = (text) => text.split("**").map((part, i) => (i % 2 ? make("b", {}, part) : part));

function drawPlay() {
  const { flow: flows, sliders } = cards[card];
  const plays = flows ? flow.runs : !!timer;
  $("card-play").hidden = sliders || (!flows && !scene?.deeds.length);
  $("card-play").className = plays ? "round pause" : "round play";
  $("card-play").setAttribute("aria-label", t(plays ? "pause" : "play"));
}

function draw() {
  if (!scene || scene.card !== card) return;
  drawPlay();
  const { story, deeds } = scene;
  $("card-see").hidden = !deeds.length;
  $("card-see").href = "?" + new URLSearchParams({ part: "see", see: story.shape.kind,
    sm: story.bits, sk: story.probes, do: write(deeds) });
  if (cards[card].sliders) return drawFilled(scene);
  const view = story.look(deeds, shown), { last } = stepsOf(view);
  step = Math.min(step, last);
  $("card-board").classList.toggle("ended", shown === deeds.length - 1 && step === last);
  const count = view.after.filter(Boolean).length;
  board.draw(story, view, step, t("see.bits", { x: count, y: story.bits }));
  caption($("card-say"), story, view, step);
}

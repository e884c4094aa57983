// The first screen: a filter of 64 bits that plays add, look up and a false
// positive by itself, once, in about ten seconds.
import { Board } from "../board.js";
import { caption } from "../caption.js";
import { $, still } from "../dom.js";
import { ADD, ASK, Story, stepsOf } from "../story.js";
import { t } from "../text/text.js";

const BITS = 64, PROBES = 3, PACE = 400; // ms a step
const THERE = 2; // words that are in the filter before it plays

let story = null, board = null, deeds = [], timer = 0;
let shown = 0, step = 0;
let spoken = ""; // the flowers of which the words are

export function start() {
  board ??= new Board($("hero-board"));
  board.fit({ columns: 16, blocks: [[...Array(BITS).keys()]] });
  $("hero-play").onclick = () => (timer ? pause() : play());
  pause();
}

export async function ready(calyx) {
  story = new Story(calyx, { kind: calyx.textbook(), bits: BITS, probes: PROBES });
  await prepare();
  rewind();
  if (still()) finish();
  else if (document.body.dataset.part === "plan") play();
}

// The words are flowers in the language of the page.
async function prepare() {
  spoken = t("flowers");
  const flowers = spoken.split(" ");
  const added = flowers.slice(0, 4).map((word) => ({ deed: ADD, word }));
  const others = flowers.slice(4);
  const { filter } = story.after(added);
  const absent = others.find((word) => !filter.has(word)) ?? others[0];
  filter.free();
  const { found } = await story.falsePositive(added, others);
  deeds = [...added, ...[absent, added[0].word, found].map((word) => ({ deed: ASK, word }))];
}

function rewind() {
  shown = THERE;
  step = 0;
}

function finish() {
  shown = deeds.length - 1;
  step = Infinity;
  update();
}

function play() {
  if (!deeds.length) return;
  if (shown === deeds.length - 1 && step >= stepsOf(story.look(deeds, shown)).last) rewind();
  timer = setInterval(next, PACE);
  update();
}

function pause() {
  clearInterval(timer);
  timer = 0;
  button();
}

function next() {
  if (document.body.dataset.part !== "plan") return pause();
  const { last } = stepsOf(story.look(deeds, shown));
  if (step < last) step++;
  else if (shown < deeds.length - 1) shown++, step = 1;
  else pause();
  update();
}

const button = () => {
  $("hero-play").setAttribute("aria-label", t(timer ? "pause" : "play"));
  $("hero-play").dataset.ta = `aria-label ${timer ? "pause" : "play"}`;
  $("hero-play").className = timer ? "round pause" : "round play";
};

export async function update() {
  if (!story || !deeds.length) return;
  button();
  if (spoken !== t("flowers")) {
    await prepare();
    return finish();
  }
  const view = story.look(deeds, shown);
  board.draw(story, view, step, t("hero.bits", { x: view.before.filter(Boolean).length, y: BITS }));
  caption($("hero-say"), story, view, step);
}

// What is to be said about a step of a story, in words. Used by the first
// screen, See and Learn.
import { make, quoted } from "./dom.js";
import { hex, leading } from "./board.js";
import { ADD, ALLOW, ASK, MANY, REMOVE, adding, stepsOf, sumOf, verdictOf } from "./story.js";
import { rateText } from "./number.js";
import { t } from "./text/text.js";

const names = { [ADD]: "see.add", [MANY]: "see.many", [REMOVE]: "see.remove", [ASK]: "see.ask", [ALLOW]: "see.allow" };

// Writes into `out`; its data-verdict is the outcome, or empty before the end.
export function caption(out, story, view, step) {
  const { text, verdict } = captionOf(story, view, step);
  out.dataset.verdict = verdict;
  if (!view.now) return out.replaceChildren(text);
  const deed = make("b", {}, `${t(names[view.now.deed])} “${quoted(view.now.word)}”`);
  out.replaceChildren(deed, t("colon"), make("span", { class: verdict && "v-" + verdict }, text));
}

function captionOf(story, view, step) {
  if (!view.now) return { text: t("see.start"), verdict: "" };
  const steps = stepsOf(view);
  if (step >= steps.last) {
    const verdict = verdictOf(view);
    return { verdict, text: outcome(story, view, steps, verdict) };
  }
  if (step === 0) return { text: story.given ? t("see.given", { x: view.bits.join(t("comma")) }) : t("see.hash"), verdict: "" };
  if (step === 1) return { text: place(story, view), verdict: "" };
  return { text: probe(story, view, step - 2), verdict: "" };
}

function place(story, view) {
  if (story.form === "sums") return sumsPlace(story, view);
  if (story.form === "codes") {
    if (view.now.deed === REMOVE && !story.removes) return t("see.anew");
    const { line, run, remainder } = story.codeOf(view.now.word);
    return t("see.code", { x: line, y: hex(remainder, 2), z: run });
  }
  const digits = leading(story, view);
  if (story.open)
    return digits ? t("see.place", placeOf(story, view, digits)) : t("see.open");
  return t("see.block", { x: story.blockOf(view.now.word), y: story.block });
}

// The first digits of a hash as a share of all that they can be: that share of the
// row is the place.
function placeOf(story, view, digits) {
  const first = hex(view.hash, 16).slice(0, digits), all = 16 ** digits;
  return { x: "0x" + first, e: "0x" + hex(all, 1), p: rateText(parseInt(first, 16) / all), y: view.bits[0], m: story.bits };
}

function sumsPlace(story, view) {
  if (view.now.deed === REMOVE) return t("see.anew");
  if (view.bumped) return t("see.bumped");
  const n = view.tests[0].bits.length, { width } = story.groupsOf(view.part);
  return t(adding(view.now) ? "see.sums.add" : "see.sums", { x: n, y: 3 * width, n: view.tests.length });
}

function probe(story, view, number) {
  const test = view.tests[number];
  if (story.form === "sums") {
    const sum = sumOf(test, view.cells), ones = test.bits.filter((bit) => view.cells[bit]).length;
    return t(sum === test.sum ? "see.sum.right" : "see.sum.wrong", { x: number + 1, y: ones, z: sum, n: test.sum });
  }
  const [bit] = test.bits, [n, then] = changeOf(view, number);
  if (view.now.deed === ASK) return t(n ? "see.one" : "see.zero", { x: bit });
  if (meets(view, number)) return t("see.twice", { x: bit, y: then });
  if (n !== then) return t("see.change", { x: bit, y: n, z: then });
  return t(adding(view.now) ? "see.already" : n ? "see.one" : "see.zero", { x: bit, y: ownersOf(story, view.words, bit, view.before) });
}

// Did an earlier hash of this deed choose the same bit?
export const meets = (view, number) =>
  view.now.deed !== ASK && view.tests.slice(0, number).some(({ bits }) => bits[0] === view.tests[number].bits[0]);

// What the bit of a test is before its step, and after it.
export function changeOf(view, number) {
  const [bit] = view.tests[number].bits, then = view.after[bit];
  return [view.now.deed === ASK || !meets(view, number) ? view.before[bit] : then, view.now.deed === ASK ? view.before[bit] : then];
}

// The words that have this cell, as quoted.
export const ownersOf = (story, words, at, cells) =>
  [...words.keys()].filter((word) => story.cellsOf(word, cells).includes(at)).map(quoted).join(t("comma"));

// Outcomes that depend on how the kind answers.
const own = ["no", "maybe", "false", "lost", "added", "again", "notthere", "listed"];

function outcome(story, view, steps, verdict) {
  if (verdict === "again" && story.form === "codes" && !story.repeats) return t("see.codes.known");
  const bits = new Set(view.bits).size;
  if (verdict === "added" && story.form === "bits" && bits < view.bits.length)
    return t("see.is.added.fewer", { k: view.bits.length, n: bits });
  const lost = [...view.lost].filter((word) => !view.lostBefore.has(word)).map(quoted);
  const from = story.form !== "bits" && own.includes(verdict) ? `see.${story.form}.` : "see.is.";
  return t(from + verdict, { x: story.form === "bits" ? view.bits[steps.zero] ?? "" : steps.zero + 1, k: view.bits.length,
    n: view.tests.length, y: lost.join(t("comma")) }) + (view.spilled ? t("see.codes.spilled") : "");
}

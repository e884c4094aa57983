// What is to be said about a step of a story, in words. Used by the first
// screen, See and Learn.
import { make, quoted } from "./dom.js";
import { leading } from "./board.js";
import { ADD, ASK, MANY, REMOVE, stepsOf, verdictOf } from "./story.js";
import { t } from "./text/text.js";

const names = { [ADD]: "see.add", [MANY]: "see.many", [REMOVE]: "see.remove", [ASK]: "see.ask" };

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
  if (step === 0) return { text: t("see.hash"), verdict: "" };
  if (step === 1) return { text: place(story, view), verdict: "" };
  return { text: probe(view, view.bits[step - 2]), verdict: "" };
}

function place(story, view) {
  if (!story.tests) return t("see.other.place");
  const digits = leading(story, view);
  const hex = view.hash.toString(16).padStart(16, "0").slice(0, digits);
  if (story.open)
    return digits ? t("see.place", { x: "0x" + hex, y: view.bits[0], m: story.bits })
      : t("see.open");
  return t("see.block", { x: story.blockOf(view.now.word), y: story.block });
}

function probe(view, bit) {
  const n = view.before[bit], then = view.after[bit];
  if (view.now.deed === ASK || n === then) return t(n ? "see.one" : "see.zero", { x: bit });
  return t("see.change", { x: bit, y: n, z: then });
}

function outcome(story, view, steps, verdict) {
  const lost = [...view.lost].filter((word) => !view.lostBefore.has(word)).map(quoted);
  const own = !story.tests && ["no", "maybe", "false", "lost", "added", "again", "notthere"].includes(verdict);
  return t((own ? "see.other." : "see.is.") + verdict, { x: view.bits[steps.zero] ?? "", k: view.bits.length,
    y: lost.join(t("comma")) });
}

// Where the page starts: tabs, language, theme, and the parts. The parts wait
// for the library; the page itself does not.
import { start } from "calyx/library";
import { redraw } from "./chart.js";
import { $, say } from "./dom.js";
import { load } from "./load.js";
import { get, link, onBack, set, turn, undo } from "./state.js";
import { follow, language, missing, speak, t } from "./text/text.js";
import * as number from "./number.js";
import * as inspect from "./tab/inspect.js";
import * as learn from "./tab/learn.js";
import * as plan from "./tab/plan.js";
import * as see from "./tab/see.js";
import * as trial from "./tab/try.js";
import { use } from "./work.js";

const parts = { learn, plan, see, try: trial, inspect };
const names = Object.keys(parts);
const all = Object.values(parts);
// A link to a plan may leave its part out.
const current = () => (names.includes(get("part")) ? get("part") : plan.given() ? "plan" : names[0]);

function show(name) {
  for (const each of names) {
    const on = each === name;
    $(each).hidden = !on && !(each === "plan" && name === "learn"); // the scroll ends in the calculator
    $("tab-" + each).setAttribute("aria-selected", on);
    $("tab-" + each).tabIndex = on ? 0 : -1;
  }
  document.body.dataset.part = name;
  document.title = t("title." + name);
  redraw(); // what was hidden had no width
  for (const part of all) part.update();
}

// Show another part; Back returns to this one.
function change(name, values = {}) {
  if (name !== current() || Object.keys(values).length) turn();
  set("part", name === names[0] && !plan.given() ? "" : name);
  for (const [key, value] of Object.entries(values)) set(key, value);
  if (Object.keys(values).length) parts[name].start();
  show(name);
  scrollTo({ top: 0, behavior: "instant" });
  if (name === "learn") learn.reveal();
}

for (const name of names) {
  const tab = $("tab-" + name);
  tab.onclick = () => change(name);
  tab.onkeydown = (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    const to = step ? names.indexOf(name) + step
      : { Home: 0, End: names.length - 1 }[event.key];
    if (to === undefined) return;
    const next = names[(to + names.length) % names.length];
    change(next);
    $("tab-" + next).focus();
    event.preventDefault();
  };
}

// Links within the page change the part without loading it again.
document.addEventListener("click", (event) => {
  const anchor = event.target.closest?.("a[href^='?part=']");
  if (!anchor || event.ctrlKey || event.metaKey || event.shiftKey || anchor.target) return;
  const { part, ...values } = Object.fromEntries(new URLSearchParams(anchor.getAttribute("href")));
  event.preventDefault();
  change(part, values);
});

// In a field with a text in it, Ctrl+Z is the browser's.
addEventListener("keydown", (event) => {
  if (event.key !== "z" || !(event.ctrlKey || event.metaKey) || event.shiftKey) return;
  if (event.target.matches("textarea, input:not([type=radio])") && event.target.value) return;
  if (parts[current()].undo?.() || undo()) event.preventDefault();
});

async function turned() {
  await follow();
  for (const part of all) part.start();
  show(current());
  if (current() === "learn") learn.reveal();
}
onBack(() => (calyxPage.turned = turned()));

$("language").onclick = async () => {
  await speak(language === "zh" ? "en" : "zh");
  show(current());
};

$("theme").onclick = () => theme.choose(
  document.documentElement.dataset.theme === "dark" ? "light" : "dark");
const nameTheme = () => {
  const other = document.documentElement.dataset.theme === "dark" ? "theme.light" : "theme.dark";
  $("theme").dataset.ta = "aria-label " + other;
  $("theme").setAttribute("aria-label", t(other));
};
addEventListener("theme", nameTheme);

// Copies a text, and says so on the button for a moment.
async function copy(button, text, from) {
  try {
    await navigator.clipboard.writeText(text);
    button.classList.add("done");
    if (button.dataset.t) say(button, t("copied"));
    setTimeout(() => {
      button.classList.remove("done");
      if (button.dataset.t) say(button, t(button.dataset.t));
    }, 1500);
  } catch {
    if (from) getSelection().selectAllChildren(from); // then a key will copy it
    else prompt(t("link"), text);
  }
}

document.addEventListener("click", (event) => {
  const button = event.target.closest?.("[data-copy]");
  if (button) copy(button, $(button.dataset.copy).textContent, $(button.dataset.copy));
});
$("link").onclick = () => copy($("link"), shared());

// A link with a preview of its own: share.mjs makes the page that it goes to.
function shared() {
  const part = current(), url = new URL(link({ theme: "" }));
  const name = (part === "learn" ? `learn-${learn.passage()}` : part) + (language === "zh" ? "-zh" : "");
  url.pathname = url.pathname.replace(/[^/]*$/, `share/${name}.html`);
  return url.href;
}
$("card-embed").onclick = () => copy($("card-embed"), learn.embedCode());

$("see-embed").onclick = () => copy($("see-embed"), see.embedCode());

inspect.onDrop(() => change("inspect"));
const embed = get("embed"); // "1", or "figure": without the passage's text
document.documentElement.classList.toggle("embed", ["1", "figure"].includes(embed));
document.documentElement.classList.toggle("figure", embed === "figure");
if (embed && parent !== window) // who embeds it may make room for it
  new ResizeObserver(() => parent.postMessage({ calyx: "height", height: Math.ceil($("main").getBoundingClientRect().height) }, "*")).observe($("main"));
await follow();
nameTheme();
for (const part of all) part.start();
show(current());
if (current() === "learn") learn.reveal();

if ("serviceWorker" in navigator)
  navigator.serviceWorker.register("offline.js").catch(() => {});

try {
  const module = await load();
  use(module);
  const calyx = await start(module);
  say($("version"), `Calyx ${calyx.version}, ${calyx.kernels[0]}`);
  for (const part of all) part.ready(calyx);
  document.documentElement.dataset.ready = "";
} catch (error) {
  $("trouble").hidden = false;
  say($("trouble"), t("wasm.failed", { x: error.message }));
}

globalThis.calyxPage = { missing, load, start, number }; // for the tests

// Where the page starts: tabs, language, theme, and the four parts. The parts
// wait for the library; the page itself does not.
import { best, compile, start } from "./calyx.js";
import { redraw } from "./chart.js";
import { $, say } from "./dom.js";
import { get, set } from "./state.js";
import { language, missing, speak, t, translate } from "./text.js";
import * as plan from "./plan.js";
import * as inspect from "./inspect.js";
import * as see from "./see.js";
import * as trial from "./try.js";
import { use } from "./work.js";

const parts = { plan, see, try: trial, inspect };
const names = ["plan", "see", "try", "inspect"];

function show(name) {
  for (const each of names) {
    const on = each === name;
    $(each).hidden = !on;
    $("tab-" + each).setAttribute("aria-selected", on);
    $("tab-" + each).tabIndex = on ? 0 : -1;
  }
  set("part", name === "plan" ? "" : name);
  redraw(); // what was hidden had no width
  parts[name].update();
}

for (const name of names) {
  const tab = $("tab-" + name);
  tab.onclick = () => show(name);
  tab.onkeydown = (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    const to = step ? names.indexOf(name) + step
      : { Home: 0, End: names.length - 1 }[event.key];
    if (to === undefined) return;
    const next = names[(to + names.length) % names.length];
    show(next);
    $("tab-" + next).focus();
    event.preventDefault();
  };
}

$("language").onclick = () => {
  speak(language === "zh" ? "en" : "zh");
  for (const part of Object.values(parts)) part.update?.();
};

$("theme").value = theme.chosen;
$("theme").onchange = (event) => {
  theme.choose(event.target.value);
  set("theme", event.target.value);
};
addEventListener("theme", () => {
  for (const part of Object.values(parts)) part.update?.();
});

for (const button of document.querySelectorAll("[data-copy]"))
  button.onclick = async () => {
    const from = $(button.dataset.copy);
    try {
      await navigator.clipboard.writeText(from.textContent);
      say(button, t("copied"));
      setTimeout(() => say(button, t("copy")), 1500);
    } catch {
      getSelection().selectAllChildren(from); // then a key will copy it
    }
  };

translate();
for (const part of Object.values(parts)) part.start?.();
show(names.includes(get("part")) ? get("part") : "plan");

if ("serviceWorker" in navigator)
  navigator.serviceWorker.register("offline.js?build=" + best()).catch(() => {});

try {
  const module = await compile(best());
  use(module);
  const calyx = await start(module);
  say($("version"), `Calyx ${calyx.version}, ${calyx.kernels[0]}`);
  for (const part of Object.values(parts)) part.ready?.(calyx);
  document.documentElement.dataset.ready = "";
} catch (error) {
  $("trouble").hidden = false;
  say($("trouble"), t("wasm.failed", { x: error.message }));
}

globalThis.calyxPage = { missing, best, compile, start }; // for the tests

// The words of the page, in the language that the link, the switch or the
// browser asks for. A test wants every key in both languages.
import { get, set } from "../state.js";

// A reader loads one of them.
const texts = { en: () => import("./en.js").then(({ en }) => ({ ...english, ...en })),
  zh: () => import("./zh.js").then(({ zh }) => zh) };
const english = {}; // what index.html says
const attributeOf = (element) => element.dataset.ta.split(" ");

for (const element of document.querySelectorAll("[data-t]"))
  english[element.dataset.t] ??= element.textContent;
for (const element of document.querySelectorAll("[data-ta]")) {
  const [name, key] = attributeOf(element);
  english[key] ??= element.getAttribute(name);
}

// Passages are markup of ours, with handles and formulas inside: never what was typed.
for (const element of document.querySelectorAll("[data-r]"))
  english[element.dataset.r] ??= element.innerHTML;

export let language = "en";
let words = null;

// As the address asks, or the browser.
export async function follow() {
  const wanted = get("lang") ||
    (navigator.languages ?? [navigator.language]).find((l) => /^(zh|en)/i.test(l));
  const next = /^zh/i.test(wanted ?? "") ? "zh" : "en";
  words = await texts[next]();
  language = next;
  translate();
}

export function t(key, values = {}) {
  const text = words[key];
  if (text === undefined) console.error(`no text for ${key} in ${language}`);
  return (text ?? key).replace(/\{(\w+)\}/g, (_, name) => values[name] ?? "")
    .replaceAll(" %", "\u00a0%").replace(/(\d) (?=\d{3})/g, "$1\u202f");
}

// A text that there may not be.
export const knownAs = (key) => (key in words ? t(key) : "");

// Keys that one language has and the other lacks.
export async function missing() {
  const [en, zh] = [await texts.en(), await texts.zh()];
  return [
    ...Object.keys(en).filter((key) => !(key in zh)).map((key) => "zh: " + key),
    ...Object.keys(zh).filter((key) => !(key in en)).map((key) => "en: " + key),
  ];
}

export function translate() {
  document.documentElement.lang = language === "zh" ? "zh-Hans" : "en";
  for (const element of document.querySelectorAll("[data-t]"))
    element.textContent = t(element.dataset.t);
  for (const element of document.querySelectorAll("[data-r]"))
    element.innerHTML = words[element.dataset.r].replace(/\[(\w)\]/g, '<span class="handle" data-handle="$1"></span>');
  for (const element of document.querySelectorAll("[data-ta]")) {
    const [name, key] = attributeOf(element);
    element.setAttribute(name, t(key));
  }
  const other = document.getElementById("language");
  other.textContent = language === "zh" ? "English" : "中文";
  other.lang = language === "zh" ? "en" : "zh";
  other.setAttribute("aria-label",
    language === "zh" ? "English: switch to English" : "中文：切换到中文");
}

export function speak(to) {
  set("lang", to);
  return follow();
}

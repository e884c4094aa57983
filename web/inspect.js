// Inspect: what is in a file, and is it whole? The worker reads it.
import { $, data, make, quoted, say } from "./dom.js";
import { countText, general, rateText, sizeText } from "./number.js";
import { t } from "./text.js";
import { ask } from "./work.js";

const MOST_ASKED = 1000; // keys at a time

let calyx = null;
let name = "", result = null, answers = null;

export function start() {
  const drop = $("drop");
  $("file").onchange = () => $("file").files[0] && read($("file").files[0]);
  drop.ondragover = (event) => {
    event.preventDefault();
    drop.classList.add("over");
  };
  drop.ondragleave = () => drop.classList.remove("over");
  drop.ondrop = (event) => {
    event.preventDefault();
    drop.classList.remove("over");
    if (event.dataTransfer.files[0]) read(event.dataTransfer.files[0]);
  };
  // A file that misses the field must not replace the page.
  for (const type of ["dragover", "drop"])
    addEventListener(type, (event) => event.preventDefault());
  $("ask-form").onsubmit = (event) => {
    event.preventDefault();
    question();
  };
}

export function ready(library) {
  calyx = library;
}

async function read(file) {
  name = file.name;
  result = answers = null;
  update();
  say($("inspect-say"), t("inspect.reading", { x: quoted(name) }));
  $("inspect-progress").value = 0;
  $("inspect-progress").hidden = false;
  try {
    result = await ask("open", { file }, ({ share }) => {
      $("inspect-progress").value = share;
    });
  } catch (error) {
    result = { damage: [{ what: "read", values: { x: error.message } }] };
  }
  $("inspect-progress").hidden = true;
  update();
}

async function question() {
  const lines = $("ask").value.split(/\r?\n/);
  if (lines.at(-1) === "") lines.pop();
  const words = lines.slice(0, MOST_ASKED);
  say($("ask-say"), !words.length ? t("see.none")
    : lines.length > MOST_ASKED ? t("inspect.many", { x: MOST_ASKED }) : "");
  if (!words.length) return;
  try {
    const found = await ask("ask", { words });
    answers = words.map((word, i) => [word, found[i]]);
  } catch (error) {
    say($("ask-say"), t("not.so", { x: error.message }));
  }
  drawAnswers();
}

// ---- Drawing ----

export function update() {
  $("inspect-result").hidden = !result;
  if (!result) return say($("inspect-say"), "");
  const good = !result.damage.length;
  $("inspect-say").dataset.verdict = !good ? "damaged" : result.sealed ? "good" : "open";
  say($("inspect-say"), t(!good ? "inspect.damaged"
    : result.sealed ? "inspect.good" : "inspect.open", { x: quoted(name) }));
  $("damage").replaceChildren(...result.damage.map(({ what, values }) =>
    make("li", { "data-damage": what }, t("damage." + what,
      Object.fromEntries(Object.entries(values).map(([key, value]) =>
        [key, typeof value === "number" ? countText(value) : value]))))));
  const known = !!result.kind;
  for (const id of ["facts", "map-box", "file-parts", "sections"])
    (id === "facts" || id === "map-box" ? $(id) : $(id).parentElement).hidden = !known;
  for (const heading of $("inspect-result").querySelectorAll(":scope > h3"))
    heading.hidden = !known;
  $("ask-box").hidden = !good || !result.asks;
  $("secret").hidden = !result.secret;
  if (!known) return;
  drawFacts();
  drawTables();
  drawMap();
  drawAnswers();
}

function drawFacts() {
  const r = result, facts = [];
  const fact = (key, ...value) =>
    facts.push(make("dt", {}, t("fact." + key)), make("dd", { "data-fact": key }, ...value));
  fact("kind", r.kind);
  fact("keys", data(r.keys, countText(r.keys)));
  fact("capacity", data(r.capacity, countText(r.capacity)));
  fact("distinct", data(r.distinct, t("fact.about", { x: countText(r.distinct) })));
  fact("rate", data(r.rate, rateText(r.rate)));
  fact("rate_promised", data(r.ratePromised, rateText(r.ratePromised)));
  fact("bytes", data(r.bytes, sizeText(r.bytes)));
  fact("bits", data(r.bits, countText(r.bits)));
  fact("fill", data(r.fill, rateText(r.fill)));
  fact("probes", data(r.probes, String(r.probes)));
  fact("parts", data(r.parts.length, String(r.parts.length)));
  fact("growth", data(r.growth, r.growth ? general(r.growth) : t("fact.fixed")));
  fact("strict", t(r.strict ? "fact.yes" : "fact.no"));
  fact("hash", r.hash);
  fact("seed", r.seed);
  if (r.comment) fact("comment", r.comment);
  $("facts").replaceChildren(...facts);
}

function drawTables() {
  const cell = (...children) => make("td", {}, ...children);
  $("file-parts").tBodies[0].replaceChildren(...result.parts.map((p, i) =>
    make("tr", {}, cell(String(i)), cell(countText(p.items)), cell(countText(p.capacity)),
      cell(sizeText(p.bytes)), cell(String(p.probes)), cell(rateText(p.set / p.bits)))));
  $("sections").tBodies[0].replaceChildren(...result.sections.map((s) =>
    make("tr", { "data-section": s.name + (s.number ?? "") },
      make("th", { scope: "row" }, t("section." + s.name, { x: s.number ?? "" })),
      cell(countText(s.at)), cell(countText(s.bytes)),
      make("td", { "data-sum": s.sum, class: { good: "yes", bad: "no", missing: "no" }[s.sum] ?? "" },
        t("sum." + s.sum)))));
}

// Each cell a piece of the body: the greener, the fuller.
function drawMap() {
  const canvas = $("map"), context = canvas.getContext("2d");
  const n = result.map.length, columns = Math.min(64, n), rows = Math.ceil(n / columns);
  canvas.width = columns * 16;
  canvas.height = rows * 16;
  const style = getComputedStyle(document.documentElement);
  context.fillStyle = style.getPropertyValue("--bit");
  context.fillRect(0, 0, canvas.width, canvas.height);
  context.fillStyle = style.getPropertyValue("--leaf");
  result.map.forEach((fill, i) => {
    context.globalAlpha = Math.min(1, fill / 0.6); // half full is as it should be
    context.fillRect(i % columns * 16, Math.floor(i / columns) * 16, 15, 15);
  });
  context.globalAlpha = 1;
  const low = result.map.reduce((a, b) => Math.min(a, b), 1);
  const high = result.map.reduce((a, b) => Math.max(a, b), 0);
  const text = t("inspect.map.note", { x: countText(n), y: rateText(low), z: rateText(high) });
  say($("map-note"), text);
  canvas.setAttribute("aria-label", text);
}

function drawAnswers() {
  $("answers").hidden = !answers;
  $("answers").tBodies[0].replaceChildren(...(answers ?? []).map(([word, found]) =>
    make("tr", {}, make("td", {}, quoted(word)),
      make("td", { class: found ? "yes" : "no", "data-found": String(found) },
        t(found ? "inspect.maybe" : "inspect.not")))));
}

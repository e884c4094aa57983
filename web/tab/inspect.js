// Inspect: what is in a file, and is it whole? The worker reads it.
import { $, data, make, quoted, say, svg } from "../dom.js";
import { countText, general, rateText, sizeText } from "../number.js";
import { get, set } from "../state.js";
import { t } from "../text/text.js";
import { drop, request } from "../work.js";

const MOST_LOOKUPS = 1000; // keys at a time
const EXAMPLE = 400000; // keys, in a filter that was made for a quarter of them

let calyx = null, show = () => {};
let name = "", result = null, answers = null, others = 0; // files that were dropped with it
let linked = ""; // a URL in a link, of which nothing was read yet
let later = null; // what was chosen before the library was there

export function start() {
  $("file").onchange = () => {
    read($("file").files);
    $("file").value = ""; // the same file may be chosen again
  };
  $("url-form").onsubmit = (event) => {
    event.preventDefault();
    readUrl($("url").value.trim());
  };
  $("ask-form").onsubmit = (event) => {
    event.preventDefault();
    lookUp();
  };
  $("example").onclick = () => calyx && read([example()]);
  $("broken").onclick = () => calyx && read([example(true)]);
  $("inspect-stop").onclick = stop;
  if (get("part") === "inspect" && get("url") && get("url") !== $("url").value) ask(get("url"));
}

// A link may name a URL. Nothing is requested before a click.
function ask(url) {
  $("url").value = linked = url;
  result = null;
  update();
}

// A file may be dropped anywhere; `opens` shows this part.
export function onDrop(opens) {
  show = opens;
  addEventListener("dragover", (event) => {
    event.preventDefault();
    document.body.classList.add("drag");
  });
  addEventListener("dragleave", (event) => {
    if (!event.relatedTarget) document.body.classList.remove("drag");
  });
  addEventListener("drop", (event) => {
    event.preventDefault(); // a file must not replace the page
    document.body.classList.remove("drag");
    const files = event.dataTransfer?.files ?? [];
    if (!files.length) return;
    show();
    read(files);
  });
}

// A filter that has grown, with the words of See; or the same with a byte changed.
function example(damaged = false) {
  const words = t("flowers").split(" ");
  const kind = calyx.kinds.find((each) => calyx.can(each, "grow"));
  const filter = calyx.make({ kind, capacity: EXAMPLE / 4, fpr: 0.01, growth: 2 });
  for (const word of words.slice(0, 5)) filter.add(word);
  filter.addNumbers(0, EXAMPLE - 5);
  const bytes = filter.encode();
  filter.free();
  if (damaged) bytes[bytes.length >> 1] ^= 0x10;
  $("ask").value = words.slice(3, 8).join("\n");
  return new File([bytes], damaged ? "damaged.calyx" : "example.calyx");
}

export function ready(library) {
  calyx = library;
  if (later) open(...later);
}

function read([file, ...more]) {
  if (!file) return;
  others = more.length;
  set("url", "");
  open(file.name, { file });
}

function parsed(text) {
  try {
    return new URL(text);
  } catch {
    return null;
  }
}

function readUrl(text) {
  const url = parsed(text);
  others = 0;
  set("url", text);
  if (/^https?:$/.test(url?.protocol)) return open(url.pathname.split("/").pop() || url.host, { url: url.href });
  name = quoted(text);
  linked = "";
  answers = null;
  result = { damage: [{ what: "remote.url", values: {} }] };
  update();
}

// Stops lookups, or else the reading of the file.
function stop() {
  const what = result ? "lookup" : "open";
  request("stop", { what });
  drop(what);
  busy(false);
  update();
}

function busy(is) {
  $("inspect-progress").hidden = $("inspect-stop").hidden = !is;
}

async function open(its, values) {
  linked = "";
  if (!calyx) return void (later = [its, values]);
  name = its;
  result = answers = null;
  update();
  say($("inspect-say"), t("inspect.reading", { x: quoted(name) }));
  $("inspect-progress").value = 0;
  busy(true);
  try {
    result = await request("open", values, ({ share }) => {
      $("inspect-progress").value = share;
    });
  } catch (error) {
    result = { damage: [{ what: "read", values: { x: error.message } }] };
  }
  busy(false);
  update();
}

async function lookUp() {
  const lines = $("ask").value.split(/\r?\n/);
  if (lines.at(-1) === "") lines.pop();
  const words = lines.slice(0, MOST_LOOKUPS);
  say($("ask-say"), !words.length ? t("see.none")
    : lines.length > MOST_LOOKUPS ? t("inspect.many", { x: MOST_LOOKUPS }) : "");
  if (!words.length) return;
  $("inspect-progress").removeAttribute("value"); // nobody knows how long
  busy(true);
  try {
    const { found, remote } = await request("lookup", { words });
    answers = words.map((word, i) => [word, found[i]]);
    result.remote = remote;
    sayVerdict();
  } catch (error) {
    answers = null;
    say($("ask-say"), error.what ? t("damage.remote." + error.what, counts(error.about))
      : t("not.so", { x: error.message }));
  }
  busy(false);
  drawAnswers();
}

// ---- Drawing ----

export function update() {
  $("inspect-result").hidden = !result;
  if (!result) {
    delete $("inspect-say").dataset.verdict;
    return say($("inspect-say"), linked && t("inspect.link", { x: parsed(linked)?.host || quoted(linked) }));
  }
  const good = !result.damage.length, known = !!result.kind;
  sayVerdict();
  $("damage").replaceChildren(...result.damage.map(({ what, values }) =>
    make("li", { "data-damage": what }, t("damage." + what, counts(values)))));
  for (const part of $("inspect-result").children)
    if (part.id !== "damage") part.hidden = !known;
  $("ask-box").hidden = !good || !result.asks;
  $("secret").hidden = !result.secret;
  $("unread").hidden = !good || result.asks || result.secret;
  if (!known) return;
  $("map-box").hidden = !result.map;
  drawFacts();
  drawTables();
  if (result.map) drawMap();
  drawAnswers();
}

// Numbers as people write them.
const counts = (values) => Object.fromEntries(Object.entries(values).map(([key, value]) =>
  [key, typeof value === "number" ? countText(value) : value]));

function sayVerdict() {
  const good = !result.damage.length, { remote } = result;
  const verdict = !good ? "damaged" : remote ? "remote" : result.sealed ? "good" : "open";
  const [first] = result.damage, unreached = first?.what.startsWith("remote.");
  const foreign = first?.what.startsWith("known.") || first?.values.x?.startsWith?.("not a calyx filter"); // the library says so
  $("inspect-say").dataset.verdict = verdict;
  say($("inspect-say"), t("inspect." + (good || result.kind ? verdict : unreached ? "unreached" : foreign ? "foreign" : "damaged"),
    { x: quoted(name), ...(remote && { y: sizeText(remote.bytes), z: countText(remote.requests) }) }) +
    (others ? " " + t("inspect.others", { x: others }) : ""));
}

function drawFacts() {
  const r = result;
  const fact = (key, ...value) =>
    [make("dt", {}, t("fact." + key)), make("dd", { "data-fact": key }, ...value)];
  const byBits = (key, value, text) => (value === undefined ? [] : fact(key, data(value, text())));
  const groups = {
    holds: [fact("kind", r.kind), fact("keys", data(r.keys, countText(r.keys))),
      fact("capacity", data(r.capacity, countText(r.capacity))),
      byBits("distinct", r.distinct, () => t("fact.about", { x: countText(r.distinct) })),
      byBits("rate", r.rate, () => rateText(r.rate)),
      fact("rate_promised", data(r.ratePromised, rateText(r.ratePromised)))],
    size: [fact("bytes", data(r.bytes, sizeText(r.bytes))),
      fact("bits", data(r.bits, countText(r.bits))),
      byBits("fill", r.fill, () => rateText(r.fill)),
      fact("probes", data(r.probes, String(r.probes))),
      fact("parts", data(r.parts.length, String(r.parts.length))),
      fact("growth", data(r.growth, r.growth ? t("fact.times", { x: general(r.growth) }) : t("fact.fixed")))],
    made: [fact("hash", r.hash), fact("seed", r.seed), fact("strict", t(r.strict ? "fact.yes" : "fact.no")),
      ...(r.allowed ? [fact("allowed", data(r.allowed, countText(r.allowed)))] : []),
      ...(r.comment ? [fact("comment", r.comment)] : [])],
  };
  $("facts").replaceChildren(...Object.entries(groups).map(([key, all]) =>
    make("div", {}, make("h3", {}, t("facts." + key)), make("dl", { class: "facts" }, ...all.flat()))));
}

function drawTables() {
  const cell = (...children) => make("td", {}, ...children);
  $("file-parts").tBodies[0].replaceChildren(...result.parts.map((p, i) =>
    make("tr", {}, cell(String(i)), cell(countText(p.items)), cell(countText(p.capacity)),
      cell(sizeText(p.bytes)), cell(String(p.probes)), cell(p.set === undefined ? "" : rateText(p.set / p.bits)))));
  const style = { good: "v-maybe", bad: "v-lost", missing: "v-lost" };
  $("sections").tBodies[0].replaceChildren(...result.sections.map((s) =>
    make("tr", { "data-section": s.name + (s.number ?? "") },
      make("th", { scope: "row" }, t("section." + s.name, { x: s.number ?? "" })),
      cell(countText(s.at)), cell(countText(s.bytes)),
      make("td", { "data-sum": s.sum, class: style[s.sum] ?? "" }, t("sum." + s.sum)))));
}

// Each cell a piece of the body: the greener, the fuller; red is damaged.
function drawMap() {
  const map = result.map, n = map.length;
  const columns = Math.min(64, n), rows = Math.ceil(n / columns);
  $("map").setAttribute("viewBox", `0 0 ${10 * columns} ${10 * rows}`);
  $("map").replaceChildren(...map.map(({ fill, bad }, i) => svg("rect", {
    class: bad ? "bad" : "", x: 10 * (i % columns) + 0.5, y: 10 * Math.floor(i / columns) + 0.5,
    width: 9, height: 9, ...(!bad && { "fill-opacity": (0.06 + 0.94 * Math.min(1, fill / 0.6)).toFixed(2) }) })));
  const fills = map.map(({ fill }) => fill), wrong = map.filter(({ bad }) => bad).length;
  const low = fills.reduce((a, b) => Math.min(a, b), 1), high = fills.reduce((a, b) => Math.max(a, b), 0);
  const text = t("inspect.map.note", { x: countText(n), y: rateText(low), z: rateText(high) }) +
    (wrong ? " " + t("inspect.map.bad", { x: wrong }) : "");
  say($("map-note"), text);
  $("map").setAttribute("aria-label", text);
}

function drawAnswers() {
  $("answers").hidden = !answers;
  $("answers").tBodies[0].replaceChildren(...(answers ?? []).map(([word, found]) =>
    make("tr", {}, make("td", {}, quoted(word)),
      make("td", { class: found ? "v-maybe" : "v-no", "data-found": String(found) },
        t(found ? "inspect.maybe" : "inspect.not")))));
}

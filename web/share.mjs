// Pictures and small pages for link previews, and a page for each passage of Learn: `node share.mjs SITE MODULES [URL]`
// makes SITE/share/NAME.png and NAME.html for each part, passage and language of the
// page in SITE, by looking at it in Chromium. Programs that show a preview of a
// link run no scripts, and see the same page whatever follows the "?": so a link
// to be shared goes to one of these pages, which has a picture and words of its
// own and sends people on. Previews want whole addresses: URL is where SITE
// will be.
import { copyFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { extname, join } from "node:path";
import { fileURLToPath } from "node:url";

const [site, modules, base = ""] = process.argv.slice(2);
const { chromium } = createRequire(join(modules, "package.json"))("playwright-core");
const program = ["chromium-headless-shell", "chromium", "chromium-browser"]
  .map((name) => "/usr/bin/" + name).find(existsSync);
if (!program) {
  console.error("web/build: no chromium here; 'dev/install-packages web' installs it");
  process.exit(1);
}
const HOME = "http://localhost/", SIZE = { width: 1200, height: 630 };
const WAIT = Number(process.env.CALYX_WAIT) || 300000; // ms; so a build that hangs fails
const types = { ".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml" };
const looks = readFileSync(fileURLToPath(new URL("picture.css", import.meta.url)), "utf8");

// Brings a part into a state worth looking at. Buttons are not in the picture.
const press = (page, id) => page.evaluate((each) => document.getElementById(each).click(), id);
const prepare = {
  plan: (page) => page.locator("#kind-cards .kind").first().waitFor({ state: "attached" }),
  async see(page) {
    for (let i = 0; i < 2; i++) await press(page, "see-fill");
    await press(page, "see-find");
    await page.waitForSelector('#see-say[data-verdict="false"]');
  },
  try: (page) => page.waitForSelector('[data-fact="try.measured"]', { state: "attached" }),
  async inspect(page) {
    await press(page, "broken");
    await page.waitForSelector("#inspect-say[data-verdict=damaged]");
  },
  async learn(page, at) {
    await page.evaluate((href) => [...document.querySelectorAll("#contents a")].find((a) => a.getAttribute("href").endsWith(href))?.click(), "at=" + at);
    await page.waitForFunction((name) => document.body.dataset.at === name && (document.querySelector("#stage-board .set, #stage-flow .tile") ||
      document.querySelector(".cell")), at);
  },
};

const escape = (text) => text.replace(/[&<>"]/g, (c) => `&#${c.charCodeAt(0)};`);
const address = (path) => (base ? new URL(path, base).href : path);

const stub = ({ name, lang, query, title, text }) => `<!doctype html>
<html lang="${lang}" data-to="${escape(query)}">
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; script-src 'self'">
<title>${escape(title)}</title>
<meta name="description" content="${escape(text)}">
<meta property="og:type" content="website">
<meta property="og:title" content="${escape(title)}">
<meta property="og:description" content="${escape(text)}">
<meta property="og:image" content="${address(base ? `share/${name}.png` : `${name}.png`)}">
<meta property="og:image:width" content="${SIZE.width}">
<meta property="og:image:height" content="${SIZE.height}">
<meta name="twitter:card" content="summary_large_image">
<script src="go.js"></script>
`;

// A page for one passage, with its text and a still picture; a script puts the live figure
// there. It is what search engines find, and what other pages link to.
const single = ({ at, lang, path, up, title, text, heading, paragraphs, said, before, after, words: w }) => {
  const link = (to, rel) => (to ? `<a rel="${rel}" href="../${to.at}/">${escape(to.title)}</a>` : "<span></span>");
  const query = escape(`${up}?part=learn&at=${at}${lang === "en" ? "&lang=en" : "&lang=zh"}`);
  return `<!doctype html>
<html lang="${lang}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; frame-src 'self'; base-uri 'none'; form-action 'none'">
<title>${escape(title)}</title>
<meta name="description" content="${escape(text)}">
<link rel="canonical" href="${base ? address(path) : "./"}">
<link rel="alternate" hreflang="en" href="${up}learn/${at}/">
<link rel="alternate" hreflang="zh" href="${up}zh/learn/${at}/">
<meta property="og:type" content="article">
<meta property="og:title" content="${escape(title)}">
<meta property="og:description" content="${escape(text)}">
<meta property="og:image" content="${base ? address(picturePath(at, lang)) : up + picturePath(at, lang)}">
<meta name="color-scheme" content="light dark">
<link rel="icon" href="${up}icon.svg" type="image/svg+xml">
<link rel="stylesheet" href="${up}style.css">
<link rel="stylesheet" href="${up}share/single.css">
<script src="${up}theme.js"></script>
<script src="${up}share/live.js" defer></script>
</head>
<body class="single">
<header><a class="brand" href="${up}${lang === "en" ? "" : "?lang=zh"}"><img src="${up}icon.svg" alt="" width="28" height="28">Calyx</a></header>
<main>
<h1>${escape(heading)}</h1>
${paragraphs.map((each) => `<p>${each}</p>`).join("\n")}
<figure id="live" data-src="${query}&amp;embed=figure" data-title="${escape(heading)}"><img src="${up}${picturePath(at, lang)}" alt="${escape(said)}" width="1200" height="630"></figure>
<nav>${link(before, "prev")}<a href="${query}">${escape(w.all)}</a>${link(after, "next")}</nav>
</main>
</body>
</html>
`;
};

const picturePath = (at, lang) => `share/learn-${at}${lang === "en" ? "" : "-zh"}.png`;

// Of the passage that is shown. Numbers that could be dragged are plain there.
const passageWords = () => {
  const all = [...document.querySelectorAll(".passage")], now = document.querySelector(".passage.now"), i = all.indexOf(now);
  const of = (passage) => passage && { at: passage.dataset.scene, title: passage.querySelector("h2").textContent };
  const copy = now.cloneNode(true);
  for (const handle of copy.querySelectorAll("[data-handle]")) {
    const plain = document.createElement("b");
    plain.textContent = handle.textContent;
    handle.replaceWith(plain);
  }
  return { at: now.dataset.scene, heading: copy.querySelector("h2").textContent, paragraphs: [...copy.querySelectorAll("p")].map((p) => p.innerHTML),
    said: document.getElementById("stage-say").textContent, before: of(all[i - 1]), after: of(all[i + 1]),
    words: { all: document.querySelector("#p-start h2").textContent } };
};

// What the page says of what it shows.
const words = () => ({
  lang: document.documentElement.lang, title: document.title,
  text: document.querySelector(document.body.dataset.part === "learn" ? ".passage.now h2 + p"
    : `#${document.body.dataset.part} > h2 + p`).textContent,
});

async function picture(page, part, at, suffix) {
  const name = (at ? `${part}-${at}` : part) + suffix;
  const query = "?" + new URLSearchParams({ part, ...(at && { at }), ...(suffix && { lang: "zh" }) });
  await prepare[part](page, at);
  await page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve))));
  await page.screenshot({ path: join(site, "share", name + ".png"), animations: "disabled" });
  const said = await page.evaluate(words);
  writeFileSync(join(site, "share", name + ".html"), stub({ name, query, ...said }));
  if (part !== "learn") return;
  const path = `${suffix ? "zh/" : ""}learn/${at}/`;
  mkdirSync(join(site, path), { recursive: true });
  writeFileSync(join(site, path, "index.html"), single({ ...said, ...await page.evaluate(passageWords), path,
    lang: suffix ? "zh" : "en", up: suffix ? "../../../" : "../../" }));
}

// Letters of the page that are drawn as the box of a letter that no font has: then a
// font is missing here, and pictures of it would be worthless.
const boxes = () => {
  const size = 24, canvas = new OffscreenCanvas(size, size), context = canvas.getContext("2d", { willReadFrequently: true });
  context.font = `${size - 4}px ${getComputedStyle(document.body).fontFamily}`;
  const drawn = (letter) => {
    context.clearRect(0, 0, size, size);
    context.fillText(letter, 2, size - 4);
    return context.getImageData(0, 0, size, size).data.join();
  };
  const box = drawn("\u{10fffd}");
  return [...new Set(document.body.textContent)].filter((letter) => letter > "\u2e80" && drawn(letter) === box).join("");
};

mkdirSync(join(site, "share"), { recursive: true });
writeFileSync(join(site, "share", "go.js"),
  'location.replace("../" + (location.search || document.documentElement.dataset.to));\n');
copyFileSync(fileURLToPath(new URL("single.css", import.meta.url)), join(site, "share", "single.css"));
writeFileSync(join(site, "share", "live.js"), `{
  const figure = document.getElementById("live"), frame = document.createElement("iframe");
  frame.src = figure.dataset.src;
  frame.title = figure.dataset.title;
  addEventListener("message", ({ source, data }) => {
    if (source === frame.contentWindow && data?.calyx === "height") frame.style.height = data.height + "px";
  });
  figure.replaceChildren(frame);
}
`);
const browser = await chromium.launch({ executablePath: program, timeout: WAIT,
  args: ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"] });
const context = await browser.newContext({ viewport: SIZE, bypassCSP: true, reducedMotion: "reduce",
  colorScheme: "light", locale: "en-US", serviceWorkers: "block" });
context.setDefaultTimeout(WAIT);
await context.route(HOME + "**", (route) => {
  const file = join(site, new URL(route.request().url()).pathname.slice(1) || "index.html");
  return route.fulfill({ path: file, contentType: types[extname(file)] ?? "application/octet-stream" });
});
const page = await context.newPage();
for (const suffix of ["", "-zh"]) {
  await page.goto(HOME + (suffix ? "?lang=zh" : "?lang=en"));
  await page.waitForSelector("html[data-ready]");
  const missing = await page.evaluate(boxes);
  if (missing) {
    console.error(`web/build: no font here has ${missing}; 'dev/install-packages web' installs one`);
    process.exit(1);
  }
  await page.addStyleTag({ content: looks });
  for (const part of ["plan", "see", "try", "inspect", "learn"]) {
    await press(page, "tab-" + part);
    const passages = part === "learn" ? await page.locator(".passage").evaluateAll((all) => all.map((e) => e.dataset.scene)) : [""];
    for (const at of passages) await picture(page, part, at, suffix);
  }
}
await browser.close();

// Pictures and small pages for link previews: `node share.mjs SITE MODULES [URL]`
// makes SITE/share/NAME.png and NAME.html for each part, card and language of the
// page in SITE, by looking at it in Chromium. Programs that show a preview of a
// link run no scripts, and see the same page whatever follows the "?": so a link
// to be shared goes to one of these pages, which has a picture and words of its
// own and sends people on. Previews want whole addresses: URL is where SITE
// will be.
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
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
const WAIT = 300000; // ms; so a build that hangs fails
const types = { ".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml" };
const looks = readFileSync(fileURLToPath(new URL("picture.css", import.meta.url)), "utf8");

// Brings a part into a state worth looking at. Buttons are not in the picture.
const press = (page, id) => page.evaluate((each) => document.getElementById(each).click(), id);
const prepare = {
  plan: (page) => page.waitForSelector('#hero-say[data-verdict="false"]'),
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
  async learn(page, card) { // with a story, until it has ended
    if (card > 1) await press(page, "card-next");
    await page.waitForSelector("#card-board.ended, #card-flow:not([hidden]), #card-say[hidden]", { state: "attached" });
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

// What the page says of what it shows.
const words = () => ({
  lang: document.documentElement.lang, title: document.title,
  text: document.querySelector(document.body.dataset.part === "plan" ? ".lead"
    : `#${document.body.dataset.part} :is(h2 + p, #card-text > *)`).textContent,
});

async function picture(page, part, card, suffix) {
  const name = (card ? `${part}-${card}` : part) + suffix;
  const query = "?" + new URLSearchParams({ part, ...(card && { card }), ...(suffix && { lang: "zh" }) });
  await prepare[part](page, card);
  await page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve))));
  await page.screenshot({ path: join(site, "share", name + ".png"), animations: "disabled" });
  writeFileSync(join(site, "share", name + ".html"), stub({ name, query, ...await page.evaluate(words) }));
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
    const cards = part === "learn" ? await page.locator("#card-list li").count() : 0;
    for (let card = Math.min(1, cards); card <= cards; card++) await picture(page, part, card, suffix);
  }
}
await browser.close();

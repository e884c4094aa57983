// What the tests of the page share: a static server on a free port, Debian's
// Chromium, and the calyx command to compare with. Of Chromium the headless shell,
// if it is there: the same engine without the browser around it, in half the time.
// A page that writes an error to its console, or lets one escape, fails the tests.
// One browser serves all files, which run.mjs brings together, as to start one takes
// longer than most; and a page that was closed is opened again, as a new one takes 0.3
// seconds of the processor more.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { appendFileSync, existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { extname, join, normalize } from "node:path";
import { after, before } from "node:test";

const wanted = (name) => {
  const value = process.env[name];
  if (!value) throw new Error(`${name} is not set; run by ctest -R web`);
  return value;
};
export const built = wanted("CALYX_WEB"); // where web/build put it
const command = wanted("CALYX");
export const modules = createRequire(join(built, "npm", "package.json"));

export const folder = mkdtempSync(join(tmpdir(), "calyx-web-"));
process.on("exit", () => rmSync(folder, { recursive: true, force: true }));

export const calyx = (...args) =>
  execFileSync(command, args, { encoding: "utf8", cwd: folder,
    stdio: ["ignore", "pipe", "pipe"] });
export const calyxJson = (...args) => JSON.parse(calyx(...args, "--json"));

// What `make check` prints at its end.
export const figure = (text) => appendFileSync(join(built, "figures.txt"), text + "\n");

// ---- A server ----

const types = { ".html": "text/html", ".js": "text/javascript",
  ".css": "text/css", ".svg": "image/svg+xml", ".gz": "application/gzip",
  ".png": "image/png", ".webmanifest": "application/manifest+json" };

// What `held` names is answered once its promise resolves, to see what a page does
// meanwhile.
export async function serve(held = {}) {
  const server = createServer(async (request, answer) => {
    const path = normalize(new URL(request.url, "http://x").pathname);
    const file = join(built, "site", path.endsWith("/") ? path + "index.html" : path);
    await held[path];
    if (!existsSync(file)) return answer.writeHead(404).end();
    answer.writeHead(200, { "content-type": types[extname(file)] });
    answer.end(readFileSync(file));
  });
  await new Promise((listens) => server.listen(0, "127.0.0.1", listens));
  servers.push(server);
  return `http://127.0.0.1:${server.address().port}/`;
}

// ---- A browser ----

const WAIT = Number(process.env.CALYX_WAIT) || 300000; // ms; so a test that hangs fails
const usual = { locale: "en-US", colorScheme: "light", serviceWorkers: "block",
  reducedMotion: "reduce", viewport: { width: 1280, height: 900 } };
const servers = [], trouble = [], idle = [];
let browser, shared, at;

before(async () => {
  const { chromium } = modules("playwright-core");
  const program = ["chromium-headless-shell", "chromium", "chromium-browser"]
    .map((name) => "/usr/bin/" + name).find(existsSync);
  assert.ok(program, "no chromium here; 'dev/install-packages web' installs it");
  browser = await chromium.launch({ executablePath: program, timeout: WAIT,
    args: ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"] });
  at = await serve();
  shared = await browser.newContext(usual);
  shared.setDefaultTimeout(WAIT);
});

after(async () => {
  await browser?.close();
  for (const server of servers) {
    server.closeAllConnections();
    server.close();
  }
  assert.deepEqual(trouble, [], "the page complained");
});

// A page that is on its way. With `options`, the options of a browser context, it has
// one of its own, and else shares what a browser keeps.
export async function go(address, options) {
  const page = (!options && idle.pop()) || await newPage(options);
  await page.goto(new URL(address, at).href, { waitUntil: "domcontentloaded" });
  return page;
}

async function newPage(options) {
  const inside = options ? await browser.newContext({ ...usual, ...options }) : shared;
  inside.setDefaultTimeout(WAIT);
  const page = await inside.newPage();
  page.on("pageerror", (error) => trouble.push(String(error)));
  page.on("console", (message) => {
    if (["error", "warning"].includes(message.type()) && !page.mayComplain &&
      !message.text().includes("blocked by Playwright")) trouble.push(message.text());
  });
  return page;
}

// A page that is ready.
export async function open(query = "", options = undefined) {
  const page = await go(query, options);
  await ready(page);
  return page;
}

// Another address, in the same tab.
export async function visit(page, query) {
  await page.goto(new URL(query, page.url()).href);
  await ready(page);
}

// The same without loading the page again, as Back does; a load takes 0.3 seconds of
// the processor.
export const turnTo = (page, query) => page.evaluate((address) => {
  history.pushState(null, "", address);
  dispatchEvent(new PopStateEvent("popstate"));
  return calyxPage.turned;
}, new URL(query, page.url()).href);

export const ready = (page) => page.waitForSelector("html[data-ready]");

export async function close(page) {
  if (page.context() !== shared) return page.context().close();
  await page.goto("about:blank");
  page.mayComplain = false;
  idle.push(page);
}

// The kinds that the page's library has, and what each can.
export const kinds = (page) => page.evaluate(async () => {
  const calyx = await calyxPage.start(await calyxPage.load());
  return calyx.kinds.map((kind) => ({ kind, can: calyx.abilities(kind) }));
});

// Type or paste n times the letter, over what is there. Chromium would take
// longer to receive ten million letters than to make them.
export const paste = (page, field, letter, n = 1e7) =>
  page.locator(field).evaluate((input, text) => {
    input.select();
    document.execCommand("insertText", false, text[0].repeat(text[1]));
  }, [letter, n]);

// The exact numbers in a row: the numbers of its <data>.
export const numbers = (row) => row.locator("data").evaluateAll((all) =>
  all.map((each) => Number(each.value)));

// Looks words up in Inspect; returns those that the page finds.
export async function lookUp(page, words) {
  await page.evaluate(() => document.getElementById("answers").tBodies[0].replaceChildren());
  await page.fill("#ask", words.join("\n"));
  await page.click("#ask-form button");
  await page.waitForSelector(`#answers tbody tr:nth-child(${words.length})`);
  return page.locator("#answers tbody tr").evaluateAll((rows) => rows
    .filter((row) => row.cells[1].dataset.found === "true").map((row) => row.cells[0].textContent));
}

// As near as the 12 digits of the command's JSON show.
export function same(found, wanted, what) {
  const near = Math.abs(found - wanted) <= 1e-11 * Math.abs(wanted);
  assert.ok(near, `${what}: the page says ${found}, the command ${wanted}`);
}

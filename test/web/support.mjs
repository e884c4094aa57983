// What the tests of the page share: a static server on a free port, Debian's
// Chromium, and the calyx command to compare with. A page that writes an error
// to its console, or lets one escape, fails the test that opened it.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
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

// ---- A server ----

const types = { ".html": "text/html", ".js": "text/javascript",
  ".css": "text/css", ".svg": "image/svg+xml", ".gz": "application/gzip" };

// Answers slowly for what `delay` names, to see what a page does meanwhile.
export function serve(delay = {}) {
  const server = createServer((request, answer) => {
    const path = normalize(new URL(request.url, "http://x").pathname);
    const file = join(built, "site", path.endsWith("/") ? "index.html" : path);
    setTimeout(() => {
      if (!existsSync(file)) return answer.writeHead(404).end();
      answer.writeHead(200, { "content-type": types[extname(file)] });
      answer.end(readFileSync(file));
    }, delay[path] ?? 0);
  });
  return new Promise((resolve) => server.listen(0, "127.0.0.1", () =>
    resolve({ at: `http://127.0.0.1:${server.address().port}/`,
      stop: () => { server.closeAllConnections(); server.close(); } })));
}

// ---- A browser ----

let browser, server;
const trouble = [];

before(async () => {
  const { chromium } = modules("playwright-core");
  const program = ["/usr/bin/chromium", "/usr/bin/chromium-browser"].find(existsSync);
  assert.ok(program, "no chromium here; 'dev/install-packages web' installs it");
  browser = await chromium.launch({ executablePath: program,
    args: ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"] });
  server = await serve();
});

after(async () => {
  await browser?.close();
  server?.stop();
  assert.deepEqual(trouble, [], "the page complained");
});

export async function context(options = {}) {
  return browser.newContext({ locale: "en-US", colorScheme: "light",
    viewport: { width: 1280, height: 900 }, ...options });
}

// A page that is ready. `options` are a browser context's.
export async function open(query = "", options = {}, base = server.at) {
  const inside = await context(options);
  const page = await inside.newPage();
  watch(page);
  await page.goto(base + query);
  await ready(page);
  return page;
}

// Another address, in the same tab.
export async function visit(page, query) {
  await page.goto(new URL(query, page.url()).href);
  await ready(page);
}

export function watch(page) {
  page.on("pageerror", (error) => trouble.push(String(error)));
  page.on("console", (message) => {
    if (["error", "warning"].includes(message.type()))
      trouble.push(message.text());
  });
}

export const at = () => server.at;
export const ready = (page) => page.waitForSelector("html[data-ready]");
export const close = (page) => page.context().close();

// The exact numbers in a row: those of its <data>.
export const numbers = (row) => row.locator("data").evaluateAll((all) =>
  all.map((each) => Number(each.value)));

// As near as the 12 digits of the command's JSON tell.
export function same(found, wanted, what) {
  const near = Math.abs(found - wanted) <= 1e-11 * Math.abs(wanted);
  assert.ok(near, `${what}: the page says ${found}, the command ${wanted}`);
}

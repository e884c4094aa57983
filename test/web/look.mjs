// How the page looks and who can use it: languages, themes, keyboard, screen
// readers, phones, slow and no network. Screenshots are left beside the page.
import assert from "node:assert/strict";
import { mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { built, close, go, modules, open, ready, serve, visit } from "./support.mjs";

const golden = fileURLToPath(new URL("../golden/line-grown.calyx", import.meta.url));
const secret = fileURLToPath(new URL("../golden/line-siphash.calyx", import.meta.url));
const axe = readFileSync(modules.resolve("axe-core/axe.min.js"), "utf8");
const shots = join(built, "screenshots");
mkdirSync(shots, { recursive: true });

// Bring a part into a state worth looking at.
const parts = {
  plan: (page) => page.locator("#chart-grow canvas").waitFor(),
  see: (page) => page.locator("#bits .bit").first().waitFor(),
  async try(page) {
    await page.fill("#try-keys", "20k"); // a million look the same
    await page.click("#try-run");
    await page.locator('[data-fact="try.measured"]').waitFor();
  },
  async inspect(page) {
    await page.setInputFiles("#file", golden);
    await page.waitForSelector("#inspect-say[data-verdict=good]");
  },
};

for (const theme of ["light", "dark"])
  for (const width of [390, 1280])
    test(`${theme}, ${width} pixels: readable for all, and nothing overflows`, async () => {
      const page = await open("", { colorScheme: theme, viewport: { width, height: 844 } });
      await page.evaluate(axe);
      const rules = { resultTypes: ["violations"] };
      if (theme === "dark") rules.runOnly = ["color-contrast"]; // the rest has no color
      for (const [part, prepare] of Object.entries(parts)) {
        await page.click("#tab-" + part);
        await prepare(page);
        assert.equal(await page.getAttribute("html", "data-theme"), theme);
        const { violations } = await page.evaluate((rules) => axe.run(rules), rules);
        assert.deepEqual(violations.map((v) => `${v.id}: ${v.nodes[0].html}`), [], part);
        assert.ok(await page.evaluate(() =>
          document.documentElement.scrollWidth <= innerWidth), part + " overflows");
        await page.screenshot({ path: join(shots, `${part}-${width}-${theme}.png`), fullPage: true });
      }
      await close(page);
    });

// Texts that begin in English, where Chinese is spoken. What is left in Latin
// letters are names, units and things to type.
const english = (page) => page.evaluate(() => {
  const texts = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node; (node = walker.nextNode()); )
    if (!node.parentElement.closest("pre, script, noscript, [hidden], option, .hash, .u-legend, #words, #probes, [data-fact=comment]"))
      texts.push(node.textContent.trim());
  return texts.filter((text) => /^[^\u4e00-\u9fff]*[a-z]{3,} [a-z]{2,}/i.test(text));
});

test("what the library complains of, in English, has a Chinese frame", async () => {
  const page = await open("?lang=zh&n=5000&p=1e-9");
  const described = async (selector) => {
    await page.waitForFunction((at) =>
      /[a-z]{3,} [a-z]{2,}/.test(document.querySelector(at).textContent), selector);
    assert.deepEqual(await english(page), [], selector);
  };
  await described("#kinds tr[data-kind=line]"); // cannot promise as much
  await page.click("#tab-try");
  await page.fill("#try-rate", "1e-12");
  await page.click("#try-run");
  await described("#try-error");
  await page.click("#tab-inspect");
  await page.setInputFiles("#file", { name: "foreign", mimeType: "", buffer: Buffer.from("%PDF-1.7") });
  await described("#damage");
  await page.setInputFiles("#file", secret);
  await described("#secret");
  await close(page);
});

test("both languages are complete, by the switch, the link and the browser", async () => {
  const page = await open("", { locale: "zh-CN" });
  assert.deepEqual(await page.evaluate(() => calyxPage.missing()), []);
  assert.equal(await page.getAttribute("html", "lang"), "zh-Hans");
  for (const [part, prepare] of Object.entries(parts)) {
    await page.click("#tab-" + part);
    await prepare(page);
    assert.deepEqual(await english(page), [], part);
  }
  await page.screenshot({ path: join(shots, "inspect-1280-zh.png") });
  await page.click("#language");
  assert.equal(await page.getAttribute("html", "lang"), "en");
  assert.equal(await page.textContent("#tab-plan"), "Plan");
  await page.waitForURL(/lang=en/);
  await page.reload();
  await ready(page);
  assert.equal(await page.textContent("#tab-plan"), "Plan");
  await visit(page, "?lang=zh");
  assert.equal(await page.textContent("#tab-plan"), "规划");
  await close(page);
});

test("the theme can be switched, and stays", async () => {
  const page = await open("", {});
  await page.selectOption("#theme", "dark");
  assert.equal(await page.getAttribute("html", "data-theme"), "dark");
  await page.waitForURL(/theme=dark/);
  await visit(page, "?");
  assert.equal(await page.getAttribute("html", "data-theme"), "dark");
  await close(page);
});

test("all of it can be reached by keys", async () => {
  const page = await open();
  await page.keyboard.press("Tab");
  assert.equal(await page.evaluate(() => document.activeElement.className), "skip");
  await page.focus("#tab-plan");
  await page.keyboard.press("ArrowRight");
  assert.ok(await page.isVisible("#see"));
  await page.keyboard.press("End");
  assert.ok(await page.isVisible("#inspect"));
  await page.keyboard.press("ArrowRight");
  assert.ok(await page.isVisible("#plan"));
  await page.focus("#tab-plan");
  await page.keyboard.press("ArrowRight");
  await page.focus("#word");
  await page.keyboard.type("rose");
  await page.keyboard.press("Enter");
  assert.equal(await page.getAttribute("#see-say", "data-verdict"), "maybe");
  await close(page);
});

test("it paints before the library is there", async () => {
  let release;
  const slow = await serve({ "/calyx-simd.wasm.gz": new Promise((keep) => release = keep) });
  const page = await go(slow);
  await page.waitForFunction(() => performance.getEntriesByName("first-contentful-paint").length);
  assert.ok(await page.isVisible("#keys"));
  assert.equal(await page.getAttribute("html", "data-ready"), null);
  await page.fill("#keys", "5M"); // and what was typed meanwhile counts
  release();
  await ready(page);
  assert.match(await page.textContent("#run-build"), /-n 5000000 /);
  await close(page);
});

test("once loaded, it works without network, and after a reload too", async () => {
  const page = await open("", { serviceWorkers: "allow" });
  await page.evaluate(() => navigator.serviceWorker.ready);
  await page.waitForFunction(async () =>
    (await (await caches.open("calyx")).keys()).length >= 9);
  await page.context().setOffline(true);
  await page.fill("#keys", "7M");
  assert.match(await page.textContent("#run-build"), /-n 7000000 /);
  await page.waitForURL(/n=7M/);
  await page.reload();
  await ready(page);
  assert.match(await page.textContent("#run-build"), /-n 7000000 /);
  await page.click("#tab-try");
  await parts.try(page); // the worker, too
  await close(page);
});

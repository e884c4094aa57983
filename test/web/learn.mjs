// Learn and the first screen: stories on real filters, which play by themselves
// unless the reader wants less motion; cards can be linked and embedded.
import assert from "node:assert/strict";
import { test } from "node:test";
import { close, open, visit } from "./support.mjs";

const said = (page) => page.getAttribute("#card-say", "data-verdict");

// How each card ends, where it has a story.
const ends = { 2: "added", 3: "no", 4: "maybe", 5: "false", 7: "killed", 8: "maybe", 9: "added" };

for (const lang of ["en", "zh"])
  test(`${lang}: every card shows what it speaks of`, async () => {
    const page = await open(`?part=learn&lang=${lang}`);
    const cards = await page.locator("#card-list a").count();
    assert.ok(cards >= 8 && cards <= 12);
    for (let card = 1; card <= cards; card++) {
      assert.equal(await page.textContent("#card-list [aria-current]"), String(card));
      const title = await page.textContent("#card-title");
      assert.ok((await page.title()).startsWith(title));
      if (ends[card]) {
        await page.waitForFunction((wanted) =>
          document.getElementById("card-say").dataset.verdict === wanted, ends[card]);
        assert.ok(await page.locator("#card-board .bit.set").count() > 0);
      }
      if (card < cards) await page.click("#card-next");
    }
    assert.ok(await page.isDisabled("#card-next"));
    await page.waitForURL(new RegExp(`card=${cards}`));
    await close(page);
  });

test("a card with sliders computes fill and rate from n, m and k", async () => {
  const page = await open("?part=learn&card=6");
  const set = () => page.locator("#card-board .bit.set").count();
  const slide = (id, value) => page.locator(id).evaluate((e, v) => {
    e.value = v;
    e.dispatchEvent(new Event("input"));
  }, String(value));
  await slide("#card-n", 10);
  await page.waitForFunction(() => document.getElementById("card-n-out").textContent === "10");
  const few = await set();
  await slide("#card-n", 50);
  await page.waitForFunction(() => document.getElementById("card-n-out").textContent === "50");
  assert.ok(await set() > 2 * few);
  await slide("#card-n", 0);
  await page.waitForFunction(() => !document.querySelector("#card-board .bit.set"));
  assert.match(await page.textContent("#card-say"), /probability of 0\s%/);
  await close(page);
});

test("in front of a database, the filter stops what is absent", async () => {
  const page = await open("?part=learn&card=10");
  const tiles = () => page.locator("#card-flow .tile b").evaluateAll((all) => all.map((e) => Number(e.textContent)));
  const [all, stopped, found, vain] = await tiles();
  assert.equal(all, stopped + found + vain);
  assert.ok(stopped > 0.6 * all && vain < 0.1 * all, `${all} ${stopped} ${found} ${vain}`);
  await page.uncheck("#flow-on");
  const [all2, stopped2, found2, vain2] = await tiles();
  assert.equal(stopped2, 0);
  assert.equal(all2, found2 + vain2);
  await close(page);
});

test("an embedded card has neither frame nor menu, and its code is a link to it", async () => {
  const page = await open("?part=learn&card=5&embed=1", { permissions: ["clipboard-read", "clipboard-write"] });
  for (const hidden of ["header", "footer", ".hero", ".card-tools"])
    assert.ok(await page.locator(hidden).isHidden(), hidden);
  assert.ok(await page.isVisible("#card-title"));
  await visit(page, "?part=learn&card=5");
  await page.click("#card-embed");
  const code = await page.evaluate(() => navigator.clipboard.readText());
  assert.match(code, /^<iframe src="http:[^"]*part=learn&amp;card=5&amp;embed=1" title="A false positive"/);
  await close(page);
});

test("a card opens in See with the same words and verdict", async () => {
  const page = await open("?part=learn&card=5");
  await page.waitForSelector('#card-say[data-verdict="false"]');
  await page.click("#card-see");
  await page.waitForSelector('#see-say[data-verdict="false"]');
  assert.equal(await page.locator("#bits .bit").count(), 64);
  await page.goBack();
  await page.waitForSelector('#card-say[data-verdict="false"]');
  assert.ok(await page.isVisible("#learn"));
  await close(page);
});

test("the first screen plays to a false positive by itself, and can be paused", async () => {
  const page = await open("", { reducedMotion: "no-preference" });
  await page.waitForSelector("#hero-play.pause");
  await page.click("#hero-play");
  const [before, label] = await page.evaluate(() => [document.getElementById("hero-say").textContent,
    document.getElementById("hero-play").getAttribute("aria-label")]);
  assert.equal(label, "Play");
  await page.waitForTimeout(1000); // two steps
  assert.equal(await page.textContent("#hero-say"), before);
  await page.click("#hero-play");
  await page.waitForSelector('#hero-say[data-verdict="false"]');
  await page.waitForSelector("#hero-play.play");
  await close(page);
});

test("whoever wants less motion sees the end of the story at once", async () => {
  const page = await open();
  await page.waitForSelector('#hero-say[data-verdict="false"]');
  assert.equal(await page.getAttribute("#hero-play", "aria-label"), "Play");
  await close(page);
});

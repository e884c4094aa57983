// Learn: one filter that passages change and that the reader changes. What is said is
// compared with the bits that are drawn, and those with the library.
import assert from "node:assert/strict";
import { test } from "node:test";
import { close, figure, go, open, ready, turnTo, visit } from "./support.mjs";

const verdict = (page) => page.getAttribute("#stage-verdict", "data-verdict");
const said = (page) => page.textContent("#stage-say");
const names = (page) => page.locator(".passage").evaluateAll((all) => all.map((e) => e.dataset.scene));
const at = (page, name, lang = "en") => turnTo(page, `?at=${name}&lang=${lang}`);
const now = (page, name) => page.waitForSelector(`body[data-at="${name}"] #p-${name}.now`);

// How each passage ends, where it is about a word.
const ends = { bits: "added", no: "no", maybe: "maybe", "false-positive": "false", removal: "lost", counters: "maybe",
  codes: "added", "allow-list": "listed" };

// In the page. What is said of a bit or of a word, and what is; null if a caption says
// neither, or if bits were cleared by force, which the library does not do.
async function replay(text) {
  const calyx = await (globalThis.replayed ??= calyxPage.start(await calyxPage.load()));
  const query = new URL(document.getElementById("to-see").href).searchParams;
  const deeds = query.get("do").split(",").map((deed) => [deed[0], decodeURIComponent(deed.slice(1))]);
  const [, word] = text.match(/“(.+?)”/), asks = /^(?:Look up|查询)/.test(text), adds = /^(?:Add|添加) /.test(text);
  const verdict = document.getElementById("stage-verdict").dataset.verdict; // once listed, it was queried before
  const at = deeds[verdict === "listed" ? "findLastIndex" : "findIndex"](([deed, other]) => other === word && (asks ? deed === "?" : adds && deed === "+"));
  const kind = query.get("see"), removes = calyx.can(kind, "remove");
  if (at < 0 || (!removes && deeds.slice(0, at).some(([deed]) => deed === "-"))) return null;
  const filter = calyx.make({ kind, capacity: 20, bits: Number(query.get("sm")), probes: Number(query.get("sk")) });
  const perform = ([deed, each]) => ({ "+": () => filter.add(each), "-": () => filter.remove(each), "!": () => filter.allow(each), "?": () => {} })[deed]();
  deeds.slice(0, at).forEach(perform);
  const bitOf = (bit) => filter.counters()[bit], found = filter.has(word), added = deeds.slice(0, at).some(([deed, each]) => deed === "+" && each === word);
  const bit = text.match(/(?:: bit |：第 )(\d+)/)?.[1], was = bit && bitOf(bit);
  perform(deeds[at]);
  const is = bit && bitOf(bit);
  filter.free();
  const changed = text.match(/(?:goes from|由) (\d) (?:to|变为) (\d)/);
  if (changed) return { said: [Number(changed[1]), Number(changed[2])], is: [was, is] };
  const value = text.match(/: bit \d+ is (\d)/)?.[1] ?? text.match(/：第 \d+ 位(?:已经)?是 (\d)/)?.[1];
  if (value && !verdict) return { said: Number(value), is };
  if (asks && verdict) return { said: verdict === "listed" ? "no" : verdict, is: found ? (added ? "maybe" : "false") : added ? "lost" : "no" };
  return null;
}

for (const lang of ["en", "zh"])
  test(`${lang}: every passage shows what it speaks of, and says at each step what the bits are`, async () => {
    const page = await open(`?lang=${lang}`), all = await names(page);
    assert.equal(all.length, 14);
    for (const name of all) {
      await at(page, name, lang);
      await now(page, name);
      if (name !== "start") assert.ok((await page.title()).startsWith(await page.textContent(`#p-${name} h2`)));
      if (!ends[name]) continue;
      await page.waitForSelector(`#stage-verdict[data-verdict="${ends[name]}"]`);
      let steps = 0;
      await compare(page);
      for (; await page.isEnabled("#step-back") && steps < 14; steps++) {
        await page.click("#step-back");
        await compare(page);
      }
      assert.ok(steps > 2, name);
    }
    await close(page);
  });

// What is said at a step, the cell that it names, and a filter of the library with which
// the page has nothing to do: what was done, by the link to See, is done to it again.
async function compare(page) {
  const text = await said(page), truth = await page.evaluate(replay, text);
  if (truth) assert.deepEqual(truth.said, truth.is, text);
  const named = text.match(/: bit (\d+) (?:goes from \d to (\d)|is (\d))/) ??
    text.match(/：第 (\d+) 位(?:由 \d 变为 (\d)|(?:已经)?是 (\d))/);
  if (!named) return;
  const cell = page.locator(`#stage-board [data-bit="${named[1]}"]`), value = named[2] ?? named[3];
  const shown = await cell.evaluate((e) => e.textContent || (e.classList.contains("set") ? "1" : "0"));
  assert.equal(shown, value, text);
}

test("typing looks a word up at each letter, Enter adds it, undo takes it back", async () => {
  const page = await open(), set = () => page.locator("#stage-board .bit.set").count(), before = await set();
  await page.fill("#entry", "rose");
  assert.equal(await verdict(page), "maybe");
  assert.equal(await page.textContent("#stage-verdict"), "maybe");
  await page.fill("#entry", "rosebud");
  assert.equal(await verdict(page), "no");
  assert.equal(await page.locator("#stage-board .bit.zero").count(), 1);
  assert.equal(await set(), before);
  await page.press("#entry", "Enter");
  await page.waitForSelector('#chips [data-word="rosebud"]');
  assert.ok(await set() > before && await set() <= before + 3);
  await page.waitForURL(/fw=rosebud/);
  await page.fill("#entry", "rosebud");
  assert.equal(await verdict(page), "maybe");
  assert.ok(await page.isDisabled("#entry-add")); // it is there
  await page.fill("#entry", "");
  await page.press("#entry", "Control+z");
  await page.waitForFunction(() => !document.querySelector('#chips [data-word="rosebud"]'));
  assert.equal(await set(), before);
  await close(page);
});

test("a cell has the colours of the words that set it", async () => {
  const page = await open("?at=false-positive");
  await now(page, "false-positive");
  await page.waitForSelector('#stage-verdict[data-verdict="false"]');
  for (const word of await page.locator("#chips .chip").evaluateAll((all) => all.map((e) => [e.dataset.word, e.className.match(/c(\d)/)[1]]))) {
    await page.fill("#entry", word[0]);
    const cells = await page.locator("#stage-board .bit.probe").evaluateAll((all) => all.map((e) => e.style.background));
    assert.ok(cells.length > 0 && cells.every((colour) => colour.includes(`--w${word[1]}`)), `${word}: ${cells}`);
  }
  await close(page);
});

test("n, m, k and p are handles: by keys and by dragging; all numbers follow the library", async () => {
  const page = await open("?at=fill");
  await now(page, "fill");
  const handle = (name) => page.locator(`.handles [data-handle=${name}]`), value = async (name) => Number((await handle(name).getAttribute("aria-valuenow")));
  const figures = async () => (await said(page)).match(/^(\d+) words set (\d+) of (\d+) bits\. .*to the power of (\d+) = ([\d.]+|1 in [\d\s]+)/).slice(1).map(Number);
  const wanted = async () => { // by the library, not by the page
    const [n, m, k] = [await value("n"), await value("m"), await value("k")];
    return page.evaluate(async ([n, m, k]) => {
      const calyx = await calyxPage.start(await calyxPage.load());
      return calyx.rateAt(calyx.textbook(), m, k, n);
    }, [n, m, k]);
  };
  assert.deepEqual([await value("n"), await value("m"), await value("k")], [12, 128, 3]);
  for (const [name, key] of [["n", "ArrowRight"], ["k", "ArrowUp"], ["m", "ArrowLeft"], ["n", "PageUp"]]) {
    const before = await value(name);
    await handle(name).press(key);
    assert.equal(Math.sign(await value(name) - before), key === "ArrowLeft" ? -1 : 1);
    await page.waitForFunction((n) => document.getElementById("stage-say").textContent.startsWith(n + " words"), await value("n"));
    const [n, set, m, k] = await figures();
    assert.deepEqual([n, m, k], [await value("n"), await value("m"), await value("k")]);
    assert.equal(set, await page.locator("#stage-board .bit.set").count());
    assert.ok(Math.abs(await value("p") / await wanted() - 1) < 1e-9);
  }
  const before = await value("n");
  await handle("n").hover({ position: { x: 4, y: 4 } }); // waits until it stands still
  const box = await handle("n").boundingBox();
  await page.mouse.down();
  await page.mouse.move(box.x + 4 + 45, box.y + 4);
  await page.mouse.up();
  await page.waitForFunction((n) => document.querySelector(".handles [data-handle=n]").ariaValueNow === String(n), before + 5);
  const m = await value("m");
  await handle("p").press("Home"); // the least rate takes the largest row
  assert.ok(await value("m") > m);
  const all = { fn: before + 5, fm: await value("m") };
  await page.waitForURL((url) => Object.entries(all).every(([name, number]) => url.searchParams.get(name) === String(number)));
  await page.reload();
  await ready(page);
  assert.equal(await value("n"), before + 5);
  await close(page);
});

test("the best k is the lowest place of the curve beside the grid", async () => {
  const page = await open("?at=best-k");
  await now(page, "best-k");
  await page.locator("#stage-curve svg").waitFor();
  const rates = [];
  for (let k = 1; k <= 12; k++) {
    rates.push(Number(await page.locator(".handles [data-handle=p]").getAttribute("aria-valuenow")));
    if (k === 1) {
      await page.locator(".handles [data-handle=k]").press("Home");
      rates[0] = Number(await page.locator(".handles [data-handle=p]").getAttribute("aria-valuenow"));
    }
    if (k < 12) await page.locator(".handles [data-handle=k]").press("ArrowRight");
  }
  rates.shift();
  const least = rates.indexOf(Math.min(...rates)) + 2;
  const [, named] = (await page.textContent("#stage-curve .mark-label")).match(/k = (\d+)/);
  assert.ok(Math.abs(Number(named) - least) <= 1, `${named}, ${least}: ${rates}`);
  await close(page);
});

test("a textbook lookup reads seven lines, a blocked one reads one", async () => {
  const page = await open("?at=cache-lines");
  await now(page, "cache-lines");
  const read = () => page.locator("#stage-lines .memories").evaluateAll((all) => all.map((e) => e.querySelectorAll(".read").length));
  for (const word of ["rose", "a", "water", "梅花"]) {
    await page.fill("#entry", word);
    const [many, one] = await read();
    assert.ok(many > 4 && many <= 7 && one === 1, `${word}: ${many}, ${one}`);
    assert.match(await page.textContent("#stage-lines"), new RegExp(`${many} × 80 ns = ${80 * many} ns`));
  }
  await close(page);
});

for (const lang of ["en", "zh"])
  test(`${lang}: the three equations can be solved, and say so only then`, async () => {
    const page = await open(`?at=ribbon&lang=${lang}`);
    await now(page, "ribbon");
    const holds = () => page.locator(".equation").evaluateAll((all) => all.map((e) => e.dataset.right === "true"));
    const right = lang === "en" ? /^All equations hold/ : /^方程都成立/;
    const owned = await page.locator(".cell").evaluateAll((all) => all.map((e) => [...e.querySelectorAll(".owners i")].map((i) => Number(i.className[1]))));
    for (let i = 0; i < 3; i++) { // a cell that only this equation has, or those it shares
      if ((await holds())[i]) continue;
      const cell = owned.findIndex((all) => all.length === 1 && all[0] === i);
      await page.click(`[data-cell="${cell >= 0 ? cell : owned.findIndex((all) => all.includes(i) && all.every((j) => j >= i))}"]`);
    }
    assert.deepEqual(await holds(), [true, true, true]);
    assert.match(await page.textContent(".equations-say"), right);
    await page.click(`[data-cell="${owned.findIndex((all) => all.length > 0)}"]`);
    assert.doesNotMatch(await page.textContent(".equations-say"), right);
    await close(page);
  });

test("a table of codes doubles, and still finds every word", async () => {
  const page = await open("?at=codes");
  await now(page, "codes");
  const buckets = () => page.locator("#stage-board .block").count(), before = await buckets();
  await page.click("#double");
  await page.waitForFunction((n) => document.querySelectorAll("#stage-board .block").length === 2 * n, before);
  for (const word of await page.locator("#chips .chip").allTextContents()) {
    await page.fill("#entry", word);
    assert.equal(await verdict(page), "maybe", word);
  }
  await close(page);
});

test("in front of a database, the filter stops what is absent", async () => {
  const page = await open("?at=database");
  await now(page, "database");
  const tiles = () => page.locator("#stage-flow .tile b").evaluateAll((all) => all.map((e) => Number(e.textContent)));
  const [all, stopped, found, vain] = await tiles();
  assert.equal(all, stopped + found + vain);
  assert.ok(stopped > 0.6 * all && vain < 0.1 * all, `${all} ${stopped} ${found} ${vain}`);
  await page.uncheck("#flow-on");
  const [all2, stopped2, found2, vain2] = await tiles();
  assert.equal(stopped2, 0);
  assert.equal(all2, found2 + vain2);
  await close(page);
});

test("scrolling turns the figure, and the address and Back follow", async () => {
  const page = await open();
  await page.evaluate(() => document.getElementById("p-removal").scrollIntoView({ block: "center" }));
  await page.waitForSelector('#stage-verdict[data-verdict="lost"]');
  await page.waitForURL(/at=removal/);
  await page.click('#contents a[href*="at=no"]');
  await page.waitForSelector('#stage-verdict[data-verdict="no"]');
  await page.waitForURL(/at=no/);
  await page.goBack();
  await page.waitForSelector('#stage-verdict[data-verdict="lost"]');
  assert.ok(await page.locator("#p-removal").evaluate((e) => {
    const { top, bottom } = e.getBoundingClientRect();
    return top < innerHeight && bottom > 0;
  }));
  await close(page);
});

test("an embedded figure has neither frame nor menu, reports its height, and its code is a link to it", async () => {
  const page = await open("?at=false-positive", { permissions: ["clipboard-read", "clipboard-write"] });
  await now(page, "false-positive");
  await page.click("#card-embed");
  const code = await page.evaluate(() => navigator.clipboard.readText());
  assert.match(code, /^<iframe src="http:[^"]*part=learn[^"]*" title="Maybe, and wrong"/);
  assert.match(code, /at=false-positive/);
  await visit(page, "?at=false-positive&embed=1");
  for (const hidden of ["header", "footer", ".stage-tools", "#p-no", "#plan", "#contents"])
    assert.ok(await page.locator(hidden).isHidden(), hidden);
  assert.ok(await page.isVisible("#p-false-positive") && await page.isVisible("#stage-board"));
  const address = page.url();
  await page.goto(new URL("/app.webmanifest", address).href); // a page of another's, without a policy
  await page.evaluate((src) => {
    globalThis.heights = [];
    addEventListener("message", ({ data }) => data?.calyx === "height" && heights.push(data.height));
    document.body.replaceChildren(Object.assign(document.createElement("iframe"), { src }));
  }, address);
  await page.waitForFunction(() => heights.some((height) => height > 300 && height < 2000));
  await close(page);
});

test("a figure opens in See with the same words and verdict", async () => {
  const page = await open("?at=false-positive");
  await now(page, "false-positive");
  await page.waitForSelector('#stage-verdict[data-verdict="false"]');
  await page.click("#to-see");
  await page.waitForSelector('#see-say[data-verdict="false"]');
  assert.equal(await page.locator("#bits .bit").count(), 128);
  await page.goBack();
  await page.waitForSelector('#stage-verdict[data-verdict="false"]');
  await close(page);
});

// Shifts that no key or pointer caused, also while one scrolls through all of it.
for (const width of [360, 768, 1280])
  test(`${width} pixels: nothing moves by itself`, async () => {
    const page = await go("", { viewport: { width, height: 740 }, reducedMotion: "no-preference" });
    await page.addInitScript(() => new MutationObserver((_, observer) => {
      if (!document.documentElement.hasAttribute("data-ready")) return;
      self.readyAt = performance.now();
      observer.disconnect();
    }).observe(document, { attributes: true, subtree: true }));
    if (process.env.CALYX_LONG) // as on a phone
      await (await page.context().newCDPSession(page)).send("Emulation.setCPUThrottlingRate", { rate: 4 });
    await visit(page, "?part=learn");
    const shift = () => page.evaluate(() => new Promise((keep) => new PerformanceObserver((list) =>
      keep(list.getEntries().filter((e) => !e.hadRecentInput).reduce((sum, e) => sum + e.value, 0))).observe({ type: "layout-shift", buffered: true }) ?? setTimeout(() => keep(0), 50)));
    for (const name of await names(page)) {
      await page.evaluate((id) => document.getElementById("p-" + id).scrollIntoView({ block: "center" }), name);
      await now(page, name).catch(() => {});
    }
    const sum = await shift();
    assert.ok(sum < 0.1, String(sum));
    figure(`${width} pixels: layout shift ${sum.toFixed(3)} (good: under 0.1), ready after ${
      Math.round(await page.evaluate(() => readyAt))} ms`);
    await close(page);
  });

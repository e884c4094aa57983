// Try: a million keys in the browser, with the page alive meanwhile.
import assert from "node:assert/strict";
import { test } from "node:test";
import { calyxJson, close, folder, kinds, numbers, open, same } from "./support.mjs";

const fact = async (page, name) =>
  (await numbers(page.locator(`#try-facts [data-fact="try.${name}"]`)))[0];
const run = async (page) => {
  await page.waitForSelector("#try-run:enabled"); // a first run starts by itself
  await page.evaluate(() => document.getElementById("try-facts").replaceChildren());
  await page.click("#try-run");
  await page.locator('[data-fact="try.measured"]').waitFor();
};

test("a million keys: none is lost, the rate is the expected one", async () => {
  const page = await open("?part=try");
  await page.locator('[data-fact="try.measured"]').waitFor(); // by itself
  const [line] = calyxJson("plan", "-n", "1M", "-p", "1%").kinds;
  assert.equal(await fact(page, "keys"), 1000000);
  assert.equal(await fact(page, "lost"), 0);
  same(await fact(page, "memory"), line.bytes, "memory");
  same(await fact(page, "expected"), line.rate, "rate");
  // a million absent keys: six times the deviation, odds of 1 in 10^9
  const slack = 6 * Math.sqrt(line.rate / 1e6);
  assert.ok(Math.abs(await fact(page, "measured") - line.rate) < slack);
  assert.ok(await fact(page, "add") > 0 && await fact(page, "lookup") > 0);
  for (const id of ["try", "time"])
    assert.match(await page.getAttribute(`#chart-${id} svg`, "aria-label"), /\d/);
  assert.match(await page.textContent("#try-value"), /^[\d.]+\s%$/);
  const [file] = await Promise.all([page.waitForEvent("download"), page.click("#try-save")]);
  await file.saveAs(folder + "/numbers.calyx");
  const [info] = calyxJson("info", "numbers.calyx");
  assert.deepEqual([info.kind, info.capacity, info.bytes], ["line", 1000000, line.bytes]);
  await close(page);
});

test("every kind runs, and the choice is in the address", async () => {
  const page = await open("?part=try&tn=1000");
  const names = await page.locator("#try-kind option").allTextContents();
  assert.deepEqual(names, (await kinds(page)).map((k) => k.kind));
  for (const kind of names) {
    await page.selectOption("#try-kind", kind);
    await page.fill("#try-keys", "20k");
    await run(page);
    assert.equal(await fact(page, "lost"), 0);
  }
  await page.selectOption("#try-kind", "counting");
  await page.waitForURL(/tk=counting/);
  await page.reload();
  await page.waitForSelector("html[data-ready]");
  assert.equal(await page.inputValue("#try-kind"), "counting");
  assert.equal(await page.inputValue("#try-keys"), "20k");
  await close(page);
});

// What stops it is a click: the page stays alive meanwhile.
test("a run can be stopped long before its end, and another started", async () => {
  const page = await open("?part=try&tn=20M");
  assert.ok(await page.isEnabled("#try-run"), "as many do not run by themselves");
  await page.click("#try-run");
  await page.locator('[data-fact="try.keys"]').waitFor();
  await page.click("#try-stop");
  assert.ok(await page.isEnabled("#try-run"));
  assert.ok(await fact(page, "keys") < 20e6);
  await page.fill("#try-keys", "10k");
  await run(page);
  assert.equal(await fact(page, "keys"), 10000);
  await close(page);
});

test("what cannot be run is reported", async () => {
  const page = await open("?part=try&tk=nonsense&tn=2000");
  for (const [keys, rate] of [["", "1%"], ["-5", "1%"], ["1e400", "1%"], ["1e12", "1%"],
    ["🌹", "1%"], ["1M", "2"], ["1M", "NaN"]]) {
    await page.fill("#try-keys", keys);
    await page.fill("#try-rate", rate);
    await page.waitForSelector("#try-run:enabled");
    await page.click("#try-run");
    assert.match(await page.locator("#try-error").textContent(), /expected/, keys + rate);
  }
  await page.fill("#try-keys", "1M");
  await page.fill("#try-rate", "1e-12"); // fine, but not for this kind
  await page.click("#try-run");
  await page.waitForFunction(() => /rates down to/.test(document.getElementById("try-error").textContent));
  await close(page);
});

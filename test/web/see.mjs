// See: a small filter drawn bit by bit, by the library's own bits.
import assert from "node:assert/strict";
import { test } from "node:test";
import { close, open, paste, ready } from "./support.mjs";

const verdict = (page) => page.getAttribute("#see-say", "data-verdict");
const word = async (page, text, button) => {
  await page.fill("#word", text);
  await page.click(button);
};
const probes = (page) => page.locator("#probes tbody tr").evaluateAll((rows) =>
  rows.map((row) => [...row.cells].map((cell) => cell.textContent)));
const lit = (page) => page.locator("#bits .set").count();

for (const kind of ["flat", "line", "counting"])
  test(`${kind}: a word that was added is found, another certainly not`, async () => {
    const page = await open(`?part=see&see=${kind}&do=%3F`);
    assert.equal(await lit(page), 0);
    await word(page, "rose", "#see-add");
    assert.equal(await verdict(page), "added");
    const bits = (await probes(page)).map((row) => Number(row[1]));
    assert.equal(await lit(page), new Set(bits).size);
    await word(page, "rose", "#see-ask");
    assert.equal(await verdict(page), "maybe");
    assert.ok((await probes(page)).every((row) => row[3] === "rose"));
    await word(page, "tulip", "#see-ask");
    assert.equal(await verdict(page), "no");
    assert.equal(await page.locator("#bits .zero").count(), 1);
    const first = (await probes(page)).find((row) => row[2] === "0")[1];
    assert.equal(await page.locator("#bits .zero").getAttribute("data-bit"), first);
    await close(page);
  });

test("the hash is the one of doc/FORMAT.md", async () => {
  const page = await open("?part=see&do=%3Frose");
  await page.click("#see-first");
  for (let i = 0; i < 10; i++)
    if (await page.isEnabled("#see-back")) await page.click("#see-back");
  assert.match(await page.locator("#see-say").textContent(), /0xd6ea2b8b8a72aca7/);
  await close(page);
});

test("a false positive is found, with the words that set its bits", async () => {
  for (const kind of ["flat", "line", "counting"]) {
    const page = await open(`?part=see&see=${kind}&do=%2Ba,%2Bb,%2Bc,%2Bd,%2Be,%2Bf,%2Bg,%2Bh,%2Bi,%2Bj,%2Bk,%2Bl`);
    await page.click("#see-find");
    await page.waitForFunction(() =>
      document.getElementById("see-say").dataset.verdict === "false");
    for (const row of await probes(page)) {
      assert.notEqual(row[2], "0");
      assert.match(row[3], /^[a-l](, [a-l])*$/);
    }
    await close(page);
  }
});

test("an empty filter has no false positive to find", async () => {
  const page = await open("?part=see&do=%3F");
  await page.click("#see-find");
  assert.match(await page.locator("#see-error").textContent(), /Add a word first/);
  await close(page);
});

test("steps go back and forward through every word", async () => {
  const page = await open("?part=see&do=%2Brose,%3Frose");
  const seen = [];
  const where = () => page.locator("#see-where").textContent();
  const end = await where();
  while (await page.isEnabled("#see-back")) {
    seen.push(await where());
    await page.click("#see-back");
  }
  seen.push(await where());
  assert.equal(seen.length, 2 * (1 + 1 + 4 + 1)); // hash, block, probes, answer
  assert.equal(new Set(seen).size, seen.length);
  assert.equal(await lit(page), 0); // before the first word
  for (let i = 1; i < seen.length; i++) await page.click("#see-next");
  assert.equal(await where(), end);
  assert.ok(await page.isDisabled("#see-next"));
  await close(page);
});

test("counters count, go down, and stay at 15", async () => {
  const page = await open("?part=see&see=counting&do=%3F");
  const counters = async () => (await page.locator("#bits .set").allTextContents()).map(Number);
  await word(page, "rose", "#see-add");
  await word(page, "rose", "#see-add");
  assert.ok((await counters()).every((n) => n === 2));
  await word(page, "rose", "#see-remove");
  assert.equal(await verdict(page), "removed");
  assert.ok((await counters()).every((n) => n === 1));
  await word(page, "rose", "#see-remove");
  assert.equal(await lit(page), 0);
  await word(page, "rose", "#see-remove");
  assert.equal(await verdict(page), "no");
  await word(page, "rose", "#see-many");
  assert.equal(await verdict(page), "full");
  assert.equal(await page.locator("#bits .full").count(), 3);
  await word(page, "rose", "#see-remove");
  assert.ok((await counters()).every((n) => n === 15));
  await close(page);
});

test("words survive a reload, whatever is in them", async () => {
  const page = await open("?part=see&do=%3F");
  for (const text of ["a,b", "玫瑰", "🌹", "50%", "<img src=x onerror=alert(1)>", "-x"])
    await word(page, text, "#see-add");
  await page.waitForURL(/-x/);
  const before = await page.locator("#words").textContent();
  assert.match(before, /🌹/);
  await page.reload();
  await ready(page);
  assert.equal(await page.locator("#words").textContent(), before);
  assert.equal(await page.locator("#see img").count(), 0);
  await close(page);
});

test("nothing that is typed breaks it", async () => {
  const page = await open("?part=see&do=%2B%E0%A4%A,%2B,x,%2Bok&see=constructor");
  assert.equal(await page.locator("#words").textContent(), "ok");
  await word(page, "", "#see-add");
  assert.match(await page.locator("#see-error").textContent(), /Type a word/);
  await page.focus("#word");
  await paste(page, "#word", "x"); // the field takes 200
  assert.equal((await page.inputValue("#word")).length, 200);
  await page.click("#see-add");
  assert.equal(await verdict(page), "added");
  await page.locator("#word").evaluate((e) => { e.value = "x".repeat(1e5); });
  await page.click("#see-add");
  assert.match(await page.locator("#see-error").textContent(), /200 characters/);
  await page.fill("#word", "");
  await page.locator("#word").evaluate((e) => { e.value = "\ud800"; }); // half a pair
  await page.click("#see-add");
  assert.equal(await verdict(page), "added");
  await close(page);
});

// Inspect by URL: a filter on another site is read by ranges, or the page says why
// not.
import assert from "node:assert/strict";
import { statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { seen, serveRanges, version } from "./range_server.mjs";
import { calyx, close, folder, kinds, lookUp, open, visit } from "./support.mjs";

const place = (name) => join(folder, name);

const at = await serveRanges();

async function inspectUrl(page, url) {
  await page.evaluate(() => { delete document.getElementById("inspect-say").dataset.verdict; });
  await page.fill("#url", url);
  await page.click("#url-form button");
  await page.waitForSelector("#inspect-say[data-verdict]");
  return page.evaluate(() => ({
    verdict: document.getElementById("inspect-say").dataset.verdict,
    text: document.getElementById("inspect-say").textContent,
    damage: [...document.querySelectorAll("#damage li")].map((li) => li.dataset.damage),
    reason: document.getElementById("damage").textContent,
  }));
}

const words = [...Array.from({ length: 30 }, (_, i) => `absent ${i}`),
  ...Array.from({ length: 20 }, (_, i) => `key ${i}`)];
writeFileSync(place("remote-keys"), Array.from({ length: 3000 }, (_, i) => `key ${i}\n`).join(""));
writeFileSync(place("remote-words"), words.join("\n") + "\n");

function build(name, ...options) {
  calyx("build", ...options, "--force", "-o", place(name), "remote-keys");
  return calyx("check", "-f", place(name), "remote-words").trimEnd().split("\n");
}

// ---- Answers -------------------------------------------------------------------

test("a filter of 96 MB on another site answers 50 keys from under 30 kB", async () => {
  const wanted = build("large.calyx", "-n", "80M", "-p", "1%");
  assert.ok(statSync(place("large.calyx")).size > 90e6);
  const page = await open("?part=inspect");
  Object.assign(seen, { requests: 0, bytes: 0, others: 0 });
  const { verdict, damage } = await inspectUrl(page, at + "plain/large.calyx");
  assert.deepEqual([verdict, damage], ["remote", []]);
  assert.equal(await page.locator("[data-fact=keys]").textContent(), "3\u202f000");
  assert.ok(await page.isHidden("#map-box"));
  assert.equal(await page.locator("[data-fact=fill]").count(), 0);
  assert.deepEqual(await lookUp(page, words), wanted);
  assert.ok(seen.requests <= 53 && seen.bytes <= 30000, JSON.stringify(seen));
  assert.equal(seen.others, 0, "no preflight");
  assert.match(await page.locator("#inspect-say").textContent(), /Read so far: 1\d\.\d.kB, in 53 requests/);
  await close(page);
});

test("every kind answers by URL like calyx check, or is not asked", async () => {
  const page = await open("?part=inspect");
  for (const { kind, can } of await kinds(page))
    for (const shape of [["-n", "300K", "-p", "10%"], ["-n", "3000", "-p", "30%"], ["-n", "500", "-p", "30%", "--growth", "2"]]) {
      if (shape.includes("--growth") && !can.includes("grow")) continue;
      const wanted = build(`${kind}.calyx`, "--kind", kind, ...shape);
      const { verdict } = await inspectUrl(page, at + `by-date/${kind}.calyx`);
      assert.equal(verdict, "remote", kind);
      if (await page.isHidden("#ask-box")) continue;
      assert.deepEqual(await lookUp(page, words), wanted, `${kind} ${shape}`);
    }
  await close(page);
});

test("a file that changes on the server answers no lookup", async () => {
  build("changing.calyx", "-n", "300K", "-p", "1%");
  const page = await open("?part=inspect");
  for (const [mode, change] of [["plain", () => { version.tag = '"two"'; }],
    ["by-date", () => build("changing.calyx", "-n", "300K", "-p", "1%", "--seed", "7")]]) {
    assert.equal((await inspectUrl(page, at + mode + "/changing.calyx")).verdict, "remote");
    await lookUp(page, ["key 1"]);
    change(); // with one ETag or date for both, the slots differ
    await page.fill("#ask", "key 2\nkey 3");
    await page.click("#ask-form button");
    await page.waitForFunction(() => document.getElementById("ask-say").textContent);
    assert.match(await page.locator("#ask-say").textContent(), /has changed on the server/);
    assert.ok(await page.isHidden("#answers"));
  }
  await close(page);
});

// ---- Reasons -------------------------------------------------------------------

test("a server that does not allow it, has no ranges or answers otherwise is named", async () => {
  build("small.calyx", "-n", "3000", "-p", "1%");
  writeFileSync(place("text.calyx"), "no filter");
  const page = await open("?part=inspect");
  page.mayComplain = true; // the browser writes refused requests to the console
  for (const [what, url, reason] of [
    ["remote.reach", "no-cors/small.calyx", /Access-Control-Allow-Origin: \*/],
    ["remote.ranges", "no-ranges/small.calyx", /200 instead of 206/],
    ["remote.status", "plain/none.calyx", /status 404/],
    ["remote.version", "hidden/small.calyx", /Access-Control-Expose-Headers/],
    ["remote.version", "no-version/small.calyx", /neither ETag nor Last-Modified/],
    ["remote.range", "other-range/small.calyx", /other bytes than 0 to 12.287/],
    ["remote.range", "short/small.calyx", /other bytes/],
    ["remote.range", "long/small.calyx", /other bytes/],
    ["head", "plain/text.calyx", /not a calyx filter/],
  ]) {
    const found = await inspectUrl(page, at + url);
    assert.deepEqual([found.verdict, ...found.damage], ["damaged", what], url);
    assert.match(found.reason, reason, url);
    assert.ok(await page.isHidden("#ask-box"));
  }
  const found = await inspectUrl(page, "http://127.0.0.1:1/x.calyx");
  assert.deepEqual(found.damage, ["remote.reach"]);
  await close(page);
});

test("the reasons are there in Chinese, too", async () => {
  const page = await open("?part=inspect&lang=zh");
  page.mayComplain = true;
  const { text, reason } = await inspectUrl(page, at + "no-cors/small.calyx");
  assert.match(text, /无法读取/);
  assert.match(reason, /跨域|不允许本页读取/);
  await close(page);
});

test("what is no URL of a web server is refused", async () => {
  const page = await open("?part=inspect");
  for (const text of ["", "flowers.calyx", "ftp://example.com/x", "javascript:alert(1)"]) {
    await page.fill("#url", text);
    await page.click("#url-form button");
    assert.match(await page.locator("#damage").textContent(), /begins with https:\/\//);
    assert.equal(await page.getAttribute("#inspect-say", "data-verdict"), "damaged");
    assert.ok(await page.isHidden("#facts"), "not the facts of the filter before");
    assert.equal((await inspectUrl(page, at + "plain/small.calyx")).verdict, "remote");
  }
  await close(page);
});

test("a link that names a URL asks first, and what was opened is in the link", async () => {
  const url = at + "plain/small.calyx", page = await open("?part=inspect&url=" + encodeURIComponent(url));
  const before = seen.requests;
  assert.match(await page.textContent("#inspect-say"), /asks the page to read a file from 127[^]*Nothing was sent/);
  await page.click("#language");
  await page.waitForFunction(() => document.getElementById("inspect-say").textContent.includes("没有发出任何请求"));
  await page.click("#language");
  await page.waitForSelector("html[lang=en]");
  assert.equal(seen.requests, before);
  await page.click("#url-form button");
  await page.waitForSelector("#inspect-say[data-verdict=remote]");
  assert.ok(seen.requests > before);
  await visit(page, "?part=inspect");
  await inspectUrl(page, url);
  await page.waitForURL((now) => now.searchParams.get("url") === url);
  await page.click("#example");
  await page.waitForURL((now) => !now.searchParams.has("url"));
  await close(page);
});

test("Stop ends what a server does not answer, and the page goes on", async () => {
  const page = await open("?part=inspect");
  page.mayComplain = true; // of requests that were stopped
  await page.fill("#url", at + "hang/small.calyx");
  await page.click("#url-form button");
  await waitFor(() => seen.hanging === 1);
  await page.click("#inspect-stop");
  await waitFor(() => seen.hanging === 0); // the request has ended, too
  assert.ok(await page.isHidden("#inspect-stop"));
  assert.equal((await inspectUrl(page, at + "then-hang/small.calyx")).verdict, "remote");
  await page.fill("#ask", "key 1");
  seen.hangs = true;
  await page.click("#ask-form button");
  await waitFor(() => seen.hanging === 1);
  await page.click("#inspect-stop");
  await waitFor(() => seen.hanging === 0);
  seen.hangs = false;
  assert.equal(await page.getAttribute("#inspect-say", "data-verdict"), "remote");
  assert.deepEqual(await lookUp(page, ["key 1"]), ["key 1"]);
  await close(page);
});

async function waitFor(holds) {
  while (!holds()) await new Promise((go) => setTimeout(go, 10));
}

test("the page that works offline leaves ranges of other sites alone", async () => {
  const page = await open("?part=inspect", { serviceWorkers: "allow" });
  await page.evaluate(() => navigator.serviceWorker.ready);
  await page.waitForFunction(() => navigator.serviceWorker.controller);
  assert.equal((await inspectUrl(page, at + "plain/large.calyx")).verdict, "remote");
  assert.deepEqual(await lookUp(page, ["key 1"]), ["key 1"]);
  await close(page);
});

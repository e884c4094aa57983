// See: a small filter drawn bit by bit, by the library's own bits. The browser
// asks for less motion, so that steps are not played but shown at their end.
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { test } from "node:test";
import { calyx, calyxJson, close, folder, kinds, open, paste, ready, turnTo } from "./support.mjs";

const verdict = (page) => page.getAttribute("#see-say", "data-verdict");
const word = async (page, text, button) => {
  await page.fill("#word", text);
  await page.click(button);
};
const probes = (page) => page.locator("#probe-table tbody tr").evaluateAll((rows) =>
  rows.map((row) => [...row.cells].map((cell) => cell.textContent)));
const lit = (page) => page.locator("#bits .set").count();

// Kinds whose lookups test bits, sums of bits, or codes.
async function kindsOf(page, form) {
  const found = [];
  for (const each of await kinds(page)) {
    await page.selectOption("#see-kind", each.kind);
    if (await page.getAttribute("#bits", "data-form") === form) found.push(each);
  }
  return found;
}
const bitKinds = (page) => kindsOf(page, "bits");

test("every kind: what was added is found, and what was removed is gone", async () => {
  const page = await open("?part=see&do=%3F");
  for (const { kind, can } of await kinds(page)) {
    await page.selectOption("#see-kind", kind);
    await page.click("#see-clear");
    await word(page, "rose", "#see-add");
    await word(page, "iris", "#see-add");
    assert.equal(await verdict(page), "added", kind);
    assert.ok(await lit(page) > 0, kind);
    await word(page, "rose", "#see-ask");
    assert.equal(await verdict(page), "maybe", kind);
    if (!can.includes("remove") && !can.includes("static")) continue;
    await word(page, "rose", "#see-remove");
    assert.equal(await verdict(page), "removed", kind);
    assert.equal(await page.locator("#words").textContent(), "iris", kind);
    await word(page, "iris", "#see-ask");
    assert.equal(await verdict(page), "maybe", kind);
  }
  await close(page);
});

test("every kind of bits: a word that was added is found, another certainly not", async () => {
  const page = await open("?part=see&do=%3F");
  for (const { kind } of await bitKinds(page)) {
    await page.selectOption("#see-kind", kind);
    await page.click("#see-clear");
    assert.equal(await lit(page), 0);
    await word(page, "rose", "#see-add");
    assert.equal(await verdict(page), "added", kind);
    const bits = (await probes(page)).map((row) => Number(row[1]));
    assert.equal(await lit(page), new Set(bits).size, kind);
    const changed = (await probes(page)).filter((row) => row[2] === "0 → 1"); // each bit once
    assert.deepEqual(changed.map((row) => Number(row[1])), [...new Set(bits)], kind);
    await word(page, "rose", "#see-ask");
    assert.equal(await verdict(page), "maybe");
    assert.ok((await probes(page)).every((row) => row[3] === "rose"));
    await word(page, "tulip", "#see-ask");
    assert.equal(await verdict(page), "no");
    assert.equal(await page.locator("#bits .bit.zero").count(), 1);
    const first = (await probes(page)).find((row) => row[2] === "0")[1];
    assert.equal(await page.locator("#bits .bit.zero").getAttribute("data-bit"), first);
  }
  await close(page);
});

test("the bits of a word are as in doc/FORMAT.md, also where two probes meet", async () => {
  const page = await open("?part=see&see=flat&do=%2Bviolet");
  assert.deepEqual((await probes(page)).map((row) => row[1]), ["99", "5", "99", "81"]);
  await close(page);
});

test("what is said of each step is what the library does at it, also where hashes or words meet", async () => {
  const deeds = "rose iris tulip violet lily poppy daisy aster lotus peony".split(" ").map((each) => "%2B" + each).join();
  const page = await open(`?part=see&see=flat&sm=64&sk=8&do=${deeds},%3Frose,%3Fanise`);
  const seen = new Set();
  while (await page.isEnabled("#see-back")) {
    await page.click("#see-back");
    const named = (await page.textContent("#see-say")).match(/: bit (\d+) (?:goes from (\d) to (\d)|is (\d)( already)?(: two hashes)?)/);
    if (!named) continue;
    const [, bit, from, to, is, already, twice] = named;
    const at = page.locator(`#bits [data-bit="${bit}"]`), set = async () => /\bset\b/.test(await at.getAttribute("class"));
    assert.equal(await set(), (to ?? is) === "1");
    await page.click("#see-back"); // and the step before
    const step = await page.textContent("#see-where");
    assert.equal(await set(), (from ?? is) === "1", `${named[0]}, ${step}`);
    await page.click("#see-next");
    const rows = (await probes(page)).filter((row) => row[1] === bit);
    assert.equal(!!twice, rows.length > 1 && rows.findLastIndex((row) => row[2] !== "0 → 1") >= 0 && !from && !!already && /two/.test(named[0]));
    seen.add(from ? "change" : twice ? "twice" : already ? "already" : "is");
  }
  assert.deepEqual([...seen].sort(), ["already", "change", "is", "twice"]);
  await close(page);
});

test("the hash is the one of doc/FORMAT.md, and its first digits are the first bit", async () => {
  const page = await open("?part=see&see=flat&do=%3Frose");
  await page.click("#see-first");
  assert.match(await page.locator("#bits .hash").textContent(), /0xd6ea2b8b8a72aca7/);
  await page.click("#see-next");
  assert.equal(await page.locator("#bits mark").textContent(), "d6");
  assert.match(await page.textContent("#see-say"), new RegExp(`0xd6 of 0x100, are 83.6\\s% of the way: bit ${0xd6} of 256`));
  assert.equal((await probes(page))[0][1], String(0xd6));
  await close(page);
});

test("a false positive is found, with the words that set its bits", async () => {
  const page = await open("?part=see&do=%2Ba,%2Bb,%2Bc,%2Bd,%2Be,%2Bf,%2Bg,%2Bh,%2Bi,%2Bj,%2Bk,%2Bl");
  for (const { kind } of await bitKinds(page)) {
    await page.selectOption("#see-kind", kind);
    for (const id of ["#see-size", "#see-probes"]) await page.selectOption(id, { index: 0 });
    await page.click("#see-find");
    await page.waitForFunction(() =>
      document.getElementById("see-say").dataset.verdict === "false" ||
      /None/.test(document.getElementById("see-error").textContent));
    assert.equal(await verdict(page), "false", kind);
    for (const row of await probes(page)) {
      assert.notEqual(row[2], "0");
      assert.match(row[3], /^[a-l](, [a-l])*$/);
    }
  }
  await close(page);
});

test("an empty filter has no false positive to find", async () => {
  const page = await open("?part=see&do=%3F");
  await page.click("#see-find");
  assert.match(await page.locator("#see-error").textContent(), /Add a word first/);
  await close(page);
});

test("steps go back and forward through every word, or play by themselves", async () => {
  const page = await open("?part=see&see=flat&do=%2Brose,%3Frose");
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
  await page.click("#see-first");
  await page.evaluate(() => { // time to read is not what this is about
    const old = setTimeout;
    globalThis.setTimeout = (use, ms, ...rest) => old(use, ms >= 600 ? 0 : ms, ...rest);
  });
  await page.click("#see-play");
  await page.waitForFunction((text) => document.getElementById("see-where").textContent === text, end);
  await close(page);
});

test("removing by force from a filter that cannot remove loses other words, and says so", async () => {
  const page = await open("?part=see&see=flat&sm=64&sk=4&do=%2Brose,%2Biris,%2Btulip,%2Blily,%2Bpoppy,%2Bdaisy");
  assert.equal(await page.textContent("#see-remove"), "Remove anyway");
  const lost = () => page.locator("#words .lost").evaluateAll((all) => all.map((e) => e.dataset.word));
  assert.deepEqual(await lost(), []);
  for (const each of ["rose", "iris"]) await word(page, each, "#see-remove");
  const gone = await lost();
  assert.ok(gone.length > 0, "two removals hurt somebody in 64 bits");
  await word(page, gone[0], "#see-ask");
  assert.equal(await verdict(page), "lost");
  assert.match(await page.textContent("#see-say"), /false negative/i);
  await close(page);
});

test("removing a false positive from a counting filter is reported as a loss of other words", async () => {
  const page = await open("?part=see&see=counting&do=%2Ba,%2Bb,%2Bc,%2Bd,%2Be,%2Bf,%2Bg,%2Bh,%2Bi,%2Bj,%2Bk,%2Bl");
  await page.click("#see-find");
  await page.waitForFunction(() => document.getElementById("see-say").dataset.verdict === "false");
  const found = (await page.textContent("#bits .bubble"));
  await word(page, found, "#see-remove");
  assert.match(await verdict(page), /^wrong/);
  const lost = await page.locator("#words .lost").evaluateAll((all) => all.map((e) => e.dataset.word));
  for (const each of lost) {
    await word(page, each, "#see-ask");
    assert.equal(await verdict(page), "lost");
  }
  await close(page);
});

test("a filter of equations: all of a word that was added hold, and one of an absent word does not", async () => {
  const page = await open("?part=see");
  const equations = () => page.locator("#probe-table tbody tr").evaluateAll((rows) => rows.map((row) => ({
    bits: row.cells[1].textContent.split("+").map(Number), sum: Number(row.cells[2].textContent),
    wanted: Number.parseInt(row.cells[3].textContent), right: row.cells[3].dataset.right === "true" })));
  const all = await kindsOf(page, "sums");
  assert.ok(all.length > 0);
  for (const { kind } of all) {
    await page.selectOption("#see-kind", kind);
    assert.ok(await page.locator("#words .word").count() >= 20, kind);
    const answers = new Set();
    const added = await page.locator("#words .word").allTextContents();
    for (const each of [...added.slice(0, 4), "a", "b", "c", "d"]) {
      await word(page, each, "#see-ask");
      const found = await equations();
      assert.ok(found.length > 1);
      for (const { bits, sum, wanted, right } of found) {
        assert.equal(bits.reduce((a, b) => (a + b) % 2), sum);
        assert.equal(sum === wanted, right);
      }
      const yes = ["maybe", "false"].includes(await verdict(page));
      assert.equal(found.every(({ right }) => right), yes, each);
      answers.add(await verdict(page));
    }
    assert.ok(answers.has("maybe") && answers.has("no") && !answers.has("lost"), [...answers].join());
    await word(page, "nowhere", "#see-ask");
    await page.click("#see-back");
    assert.match(await page.textContent("#see-say"), /^Look up “nowhere”: equation \d+: \d+ of its bits are 1/);
    const [{ bits }] = await equations();
    assert.equal(await page.locator("#bits .probe").count(), bits.length);
  }
  await close(page);
});

test("a filter of many layers of equations finds every word", async () => {
  const words = Array.from({ length: 250 }, (_, i) => "w" + i); // two layers
  const page = await open("?part=see&see=ribbon&do=" + words.map((each) => "%2B" + each).join());
  assert.equal(await page.locator("#words .word").count(), 250);
  assert.equal(await page.locator("#words .lost").count(), 0);
  for (const n of [0, 120, 249]) {
    await word(page, await page.locator("#words .word").nth(n).textContent(), "#see-ask");
    assert.equal(await verdict(page), "maybe");
    assert.equal(await page.locator("#probe-table [data-right=false]").count(), 0);
  }
  await close(page);
});

test("a filter of codes: a word leaves a remainder in its run, and takes it away", async () => {
  const page = await open("?part=see&do=%3F");
  const codes = () => page.locator("#bits .set").evaluateAll((all) => all.map((e) => [Number(e.dataset.bit), e.textContent]));
  const all = await kindsOf(page, "codes");
  assert.ok(all.length > 0);
  for (const { kind, can } of all) {
    await page.selectOption("#see-kind", kind);
    await page.click("#see-clear");
    await word(page, "rose", "#see-add");
    let rest = 0xd6ea2b8b8a72aca7n; // what the hash chooses one after the other: doc/FORMAT.md
    const chosen = (n) => {
      const product = rest * BigInt(n);
      rest = product & 0xffffffffffffffffn;
      return Number(product >> 64n);
    };
    const lines = await page.locator("#bits .block").count(), slots = await page.locator("#bits .bit").count() / lines;
    const line = chosen(lines), run = chosen(20) + 1, remainder = chosen(32).toString(16).padStart(2, "0");
    assert.deepEqual(await codes(), [[line * slots, remainder]]);
    await page.locator("#bits .set").hover();
    assert.equal(await page.textContent("#see-bit"), `slot 0, in run ${run}, has ${remainder}, the remainder of rose`);
    await page.click("#see-first");
    await page.click("#see-next");
    assert.match(await page.textContent("#see-say"), new RegExp(`line ${line}, run ${run} of 20 in it, and the remainder ${remainder},`));
    assert.equal(await page.locator("#bits .block.here").count(), lines > 1 ? 1 : 0);
    await word(page, "iris", "#see-add");
    await word(page, "rose", "#see-ask");
    assert.equal(await page.locator("#bits .probe").textContent(), remainder);
    const repeats = can.includes("count");
    await word(page, "rose", "#see-add");
    assert.equal((await codes()).length, repeats ? 3 : 2);
    assert.match(await page.textContent("#see-say"), repeats ? /once more/ : /not stored again/);
    if (repeats) { // a run has 7 slots
      for (let i = 2; i < 8; i++) await word(page, "rose", "#see-add");
      assert.equal((await codes()).length, 1 + 7);
      for (let i = 0; i < 7; i++) await word(page, "rose", "#see-remove");
    }
    for (const each of ["rose", "iris"]) await word(page, each, "#see-remove");
    assert.deepEqual(await codes(), []);
  }
  await close(page);
});

test("bits, sums and codes: a false positive that is put on the allow list is answered with no, until it is added", async () => {
  const page = await open("?part=see");
  for (const form of ["bits", "sums", "codes"]) {
    const [{ kind }] = await kindsOf(page, form);
    await page.selectOption("#see-kind", kind);
    for (const id of ["#see-size", "#see-probes"])
      if (await page.isVisible(id)) await page.selectOption(id, { index: 0 });
    await page.click("#see-clear");
    for (let i = form === "codes" ? 1 : 0; i < 3; i++) await page.click("#see-fill"); // a line has no room for 60
    await page.click("#see-find");
    await page.waitForFunction(() => document.getElementById("see-say").dataset.verdict === "false");
    const found = await page.textContent("#bits .bubble");
    await word(page, found, "#see-allow");
    assert.equal(await verdict(page), "allowed", kind);
    await word(page, found, "#see-ask");
    assert.equal(await verdict(page), "listed", kind);
    assert.equal(await page.locator("#probe-table [data-right=false]").count(), 0);
    assert.equal(await page.textContent("#allowed"), found);
    await word(page, "neverseen", "#see-ask");
    if (await verdict(page) === "no") {
      await word(page, "neverseen", "#see-allow");
      assert.equal(await verdict(page), "needless", kind);
      await word(page, "neverseen", "#see-ask");
      assert.equal(await verdict(page), "no", kind); // not by the list
    }
    const [file] = await Promise.all([page.waitForEvent("download"), page.click("#see-save")]);
    await file.saveAs(folder + "/allowed.calyx");
    assert.equal(calyxJson("info", "allowed.calyx")[0].allowed, await page.locator("#allowed .word").count(), kind);
    await word(page, found, "#see-add"); // and the list lets go of it
    await word(page, found, "#see-ask");
    assert.equal(await verdict(page), "maybe", kind);
    assert.ok(!(await page.textContent("#allowed")).includes(found));
    await word(page, found, "#see-allow");
    assert.equal(await verdict(page), "kept", kind);
  }
  await close(page);
});

test("nothing plays by itself; what is played stays as long as one reads it", async () => {
  const page = await open("?part=see&see=flat", { reducedMotion: "no-preference" });
  assert.equal(await page.getAttribute("#see-play", "aria-label"), "Play");
  assert.equal(await verdict(page), "no");
  const waits = page.evaluate(() => new Promise((keep) => { // ms asked for, and letters said, of each step
    const all = [], old = setTimeout;
    globalThis.setTimeout = (use, ms, ...rest) => {
      if (ms >= 600) all.push([ms, document.getElementById("see-say").textContent.length]);
      if (document.getElementById("see-say").dataset.verdict) keep(all);
      return old(use, ms >= 600 ? 0 : ms, ...rest);
    };
    document.getElementById("see-play").click();
  }));
  for (const [ms, letters] of await waits) assert.ok(ms >= 60 * letters, `${ms} ms for ${letters} letters`);
  assert.ok((await waits).length > 2);
  await page.waitForSelector('#see-play[aria-label="Play"]');
  await close(page);
});

test("the pictures of articles: positions are given by hand, and each has a link and an embed", async () => {
  const page = await open("?part=see&see=by-hand&sm=8&do=" + encodeURIComponent("+x→0.4.7,+y→1.4.6,?z→0.1.4"));
  const bits = () => page.locator("#bits .set").evaluateAll((all) => all.map((e) => Number(e.dataset.bit)));
  assert.equal(await page.locator("#bits .bit").count(), 8);
  assert.deepEqual(await bits(), [0, 1, 4, 6, 7]);
  assert.equal(await verdict(page), "false");
  await word(page, "w -> 2, 4", "#see-ask");
  assert.equal(await verdict(page), "no");
  assert.deepEqual((await probes(page)).map((row) => row[1]), ["2", "4"]);
  await word(page, "w 2 3", "#see-add");
  assert.match(await page.textContent("#see-error"), /from 0 to 7/);
  await word(page, "w: 2 8", "#see-add"); // there are 8
  assert.match(await page.textContent("#see-error"), /from 0 to 7/);
  await word(page, "x: 0 4 7", "#see-remove"); // takes bit 4 from y
  assert.equal(await verdict(page), "killed");
  assert.deepEqual(await bits(), [1, 6]);
  await turnTo(page, "?part=see&see=by-hand&sm=16&embed=1&do=" + encodeURIComponent("+hu→2.5.9,+Jemmy→5.11.14,?test→2.5.14"));
  assert.equal(await verdict(page), "false");
  assert.equal(await page.locator("#bits .bit").count(), 16);
  assert.match(await page.textContent("#see-say"), /test/);
  await close(page);
});

test("small filters are real ones, and a link that asks for what cannot be says what it shows", async () => {
  const page = await open("?part=see&see=flat&sm=8&sk=3&do=%2Bx");
  for (const m of [8, 16, 32]) {
    await page.selectOption("#see-size", String(m));
    assert.equal(await page.locator("#bits .bit").count(), m);
    assert.equal(await verdict(page), "added");
  }
  assert.equal(await page.textContent("#see-error"), "");
  await turnTo(page, "?part=see&see=flat&sm=99999&sk=3");
  assert.match(await page.textContent("#see-error"), /m = 99999.*m = 256 is shown/);
  await turnTo(page, "?part=see&see=line&sm=8&sk=4");
  assert.match(await page.textContent("#see-error"), /m = 8; this kind cannot have that, so m = 1024 is shown/);
  await close(page);
});

test("in every kind a false positive is found at once, after more words where there are few; removing it from codes changes nothing", async () => {
  const page = await open("?part=see");
  for (const { kind } of await kinds(page)) {
    await turnTo(page, "?part=see&see=" + kind);
    const before = await page.locator("#words .word").count();
    await page.click("#see-find");
    await page.waitForSelector('#see-say[data-verdict="false"]');
    const added = await page.locator("#words .word").count() - before;
    assert.equal(await page.textContent("#see-error"), added ? `So few words make false positives rare, so ${added} more were added first. ` +
      "Ctrl+Z takes them back." : "", kind);
    if (kind !== "distinct") continue; // whose codes belong to more than one word
    await word(page, await page.textContent("#bits .bubble"), "#see-remove");
    assert.equal(await verdict(page), "notthere");
    assert.match(await page.textContent("#see-say"), /Nothing changed/);
  }
  await close(page);
});

test("Ctrl+Z takes back what was done, one by one: words, Start over, another kind", async () => {
  const page = await open("?part=see");
  const words = () => page.locator("#words .word").count(), undo = () => page.locator("#see-find").press("Control+z");
  await word(page, "anemone", "#see-add");
  await page.click("#see-fill");
  await page.click("#see-clear");
  assert.equal(await words(), 0);
  for (const wanted of [26, 6, 5]) {
    await undo();
    assert.equal(await words(), wanted);
  }
  await page.selectOption("#see-kind", "line");
  await page.waitForURL(/see=line/);
  await undo();
  await page.waitForFunction(() => document.getElementById("see-kind").value !== "line");
  await page.fill("#word", "typed"); // which is the browser's to undo
  await page.locator("#word").press("Control+z");
  assert.equal(await words(), 5);
  await close(page);
});

test("on a phone the bits come first, and stay where they are", async () => {
  const page = await open("?part=see", { viewport: { width: 360, height: 740 } });
  const top = () => page.locator("#bits .bit").first().evaluate((bit) => bit.getBoundingClientRect().top);
  const before = await top();
  assert.ok(before < 300, String(before));
  await word(page, "anemone", "#see-add");
  assert.equal(await top(), before);
  assert.ok((await page.locator("#see-say").boundingBox()).y < (await page.locator("#word").boundingBox()).y);
  await close(page);
});

test("Start over can be undone by Back", async () => {
  const page = await open("?part=see&see=flat");
  await page.click("#see-fill");
  await page.waitForURL(/do=/);
  const before = await page.locator("#words").textContent();
  await page.click("#see-clear");
  assert.equal(await lit(page), 0);
  await page.goBack();
  await page.waitForFunction((words) => document.getElementById("words").textContent === words, before);
  await close(page);
});

test("counters count, go down, and stay at 15", async () => {
  const page = await open("?part=see&see=counting&sk=3&do=%3F");
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
  assert.equal(await verdict(page), "notthere");
  await word(page, "rose", "#see-many");
  assert.equal(await verdict(page), "full");
  assert.equal(await page.locator("#bits .full").count(), 3);
  await word(page, "rose", "#see-remove");
  assert.ok((await counters()).every((n) => n === 15));
  await close(page);
});

test("a counting filter starts with two words that share a counter", async () => {
  const page = await open("?part=see&see=counting");
  assert.ok((await page.locator("#bits .set").allTextContents()).includes("2"));
  await close(page);
});

test("m and k can be chosen, fill and rate follow, and twenty words are added at once", async () => {
  const page = await open("?part=see&see=flat");
  const filled = async () => Number((await page.textContent("#see-filled")).match(/^\d+/)[0]);
  const before = await filled();
  await page.click("#see-fill");
  assert.equal(await page.locator("#words .word").count(), 25);
  assert.ok(await filled() > before + 20);
  assert.equal(await filled(), await lit(page));
  await page.selectOption("#see-size", "1024");
  assert.equal(await page.locator("#bits .bit").count(), 1024);
  await page.selectOption("#see-probes", "8");
  assert.equal((await probes(page)).length, 8);
  await page.waitForURL(/sk=8/);
  await page.reload();
  await ready(page);
  assert.equal(await page.inputValue("#see-size"), "1024");
  assert.equal(await page.inputValue("#see-probes"), "8");
  await close(page);
});

test("words and bits say what belongs to them", async () => {
  const page = await open("?part=see&see=flat");
  await page.click("#words .word");
  assert.equal(await page.locator("#bits .lit").count(), 4);
  await page.click("#bits .lit >> nth=0");
  assert.match(await page.textContent("#see-bit"), /^bit \d+ is 1, set by .*rose/);
  await close(page);
});

test("a downloaded filter is a file that the command reads", async () => {
  const page = await open("?part=see&see=flat&do=%2Brose,%2Biris");
  const [file] = await Promise.all([page.waitForEvent("download"), page.click("#see-save")]);
  const path = folder + "/words.calyx";
  await file.saveAs(path);
  const [info] = calyxJson("info", path);
  assert.deepEqual([info.kind, info.keys, info.bits], ["flat", 2, 256]);
  writeFileSync(folder + "/two", "rose\nlily\n");
  assert.equal(calyx("check", "-f", path, "two"), "rose\n");
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
  const page = await open("?part=see&do=%2B%E0%A4%A,%2B,x,%2Bok&see=constructor&sm=1e9&sk=-1");
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

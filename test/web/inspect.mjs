// Inspect: files are shown as `calyx info --json` and `calyx check` print them,
// in memory and in slices; and damage is shown with its place.
import assert from "node:assert/strict";
import { closeSync, ftruncateSync, openSync, readFileSync, readdirSync, rmSync,
  truncateSync, writeFileSync, writeSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { start } from "../../node/calyx.js";
import { built, calyx, calyxJson, close, folder, kinds, lookUp, open, paste, same } from "./support.mjs";

const golden = fileURLToPath(new URL("../golden/", import.meta.url));
const place = (name) => join(folder, name);

// Gives the verdict, the facts and the sorts of damage that the page shows.
async function inspect(page, path) {
  await page.evaluate(() => { delete document.getElementById("inspect-say").dataset.verdict; });
  await page.setInputFiles("#file", path);
  await page.waitForSelector("#inspect-say[data-verdict]");
  return page.evaluate(() => ({
    verdict: document.getElementById("inspect-say").dataset.verdict,
    facts: Object.fromEntries([...document.querySelectorAll("#facts dd")].map((dd) =>
      [dd.dataset.fact, dd.querySelector("data") ? Number(dd.querySelector("data").value)
        : dd.textContent])),
    damage: [...document.querySelectorAll("#damage li")].map((li) => li.dataset.damage),
  }));
}

// Keys have slots, which are not sets of bits.
const tables = calyxJson("plan", "-n", "1000").kinds.filter((each) => each.can_add && !each.can_intersect);
const isTable = (kind) => tables.some((each) => each.kind === kind);

function compare(found, wanted) {
  const what = (key) => `${wanted.file}: ${key}`;
  for (const key of ["kind", "hash", "comment"])
    assert.equal(found[key] ?? "", wanted[key], what(key));
  assert.equal(found.strict, wanted.strict ? "yes" : "no");
  assert.equal(found.allowed ?? 0, wanted.allowed, what("allowed"));
  if (wanted.seed < 2 ** 53) assert.equal(Number(found.seed), wanted.seed);
  for (const key of ["keys", "capacity", "bytes", "bits", "probes", "parts",
    "growth", "rate_promised"])
    same(found[key], wanted[key], what(key));
  // The command sums the entries of a table, of which a grown one has some twice,
  // and a permanent one stands for 15 keys; the page, which counts bits alone,
  // shows the fill by keys and the rate that was planned for as many. It does not see
  // saturated buckets.
  if (wanted.saturated) return;
  const stray = 0.01 + 2 * 14 / Math.max(1, wanted.keys);
  for (const key of ["fill", "distinct"])
    if (isTable(wanted.kind) && wanted[key] !== undefined)
      assert.ok(Math.abs(found[key] - wanted[key]) <= stray * wanted[key] + 1e-9, what(key));
    else
      same(found[key], wanted[key], what(key));
  if (isTable(wanted.kind))
    assert.ok(Number(found.rate) >= (1 - stray) * wanted.rate && Number(found.rate) <=
      1.001 * wanted.rate_promised * Math.max(1, wanted.keys / wanted.capacity), what("rate"));
  else
    same(found.rate, wanted.rate, what("rate"));
}

const good = readdirSync(golden).filter((name) =>
  name.endsWith(".calyx") && !name.includes("siphash"));

const infos = calyxJson("info", ...good.map((name) => golden + name));

test("a key on the allow list is not found, and a damaged list is noticed", async () => {
  const page = await open("?part=inspect");
  const path = place("allow.calyx");
  writeFileSync(place("few"), Array.from({ length: 100 }, (_, i) => i + "\n").join(""));
  calyx("build", "-n", "100", "-p", "50%", "-o", path, "few");
  const absent = Array.from({ length: 500 }, (_, i) => String(1000 + i));
  await inspect(page, path);
  const wrong = await lookUp(page, absent);
  assert.ok(wrong.length > 5);
  const words = wrong.map((text) => text.replace(/\D/g, ""));
  writeFileSync(place("list"), words.join("\n") + "\n");
  calyx("allow", path, place("list"));
  const { verdict, facts } = await inspect(page, path);
  assert.equal(verdict, "good");
  assert.equal(facts.allowed, words.length);
  assert.equal(await page.locator('[data-section="allow0"] [data-sum]').getAttribute("data-sum"), "good");
  assert.deepEqual(await lookUp(page, absent), []);
  assert.equal((await lookUp(page, ["1", "99"])).length, 2);
  const bytes = readFileSync(path);
  bytes[4100] ^= 1; // after the header
  writeFileSync(path, bytes);
  assert.deepEqual((await inspect(page, path)).damage, ["list"]);
  await close(page);
});

test("every file of test/golden shows the numbers of calyx info --json", async () => {
  const page = await open("?part=inspect");
  assert.ok(good.length > 30);
  for (const [i, name] of good.entries()) {
    const { verdict, facts } = await inspect(page, golden + name);
    assert.equal(verdict, name === "line-open.calyx" ? "open" : "good", name);
    compare(facts, infos[i]);
  }
  await close(page);
});

const words = Array.from({ length: 200 }, (_, i) => `absent ${i}`);
words.push(...Array.from({ length: 10 }, (_, i) => `key ${i}`));

// The third file is read in more than one slice. At its rate none of 200 absent
// words would pass, so it is queried for 20: each lookup reads the file.
test("a file of every kind is shown like calyx info and answers like calyx check", async () => {
  writeFileSync(place("keys"), Array.from({ length: 3000 }, (_, i) => `key ${i}\n`).join(""));
  const page = await open("?part=inspect");
  const all = await kinds(page);
  assert.ok(all.length >= 5);
  const shapes = [["-n", "3000", "-p", "30%"], ["-n", "500", "-p", "30%", "--growth", "2"],
    ["-n", "5M", "-p", "0.1%"]];
  for (const [i, shape] of shapes.entries()) {
    const asked = i === 2 ? words.slice(-30) : words;
    writeFileSync(place("asked"), asked.join("\n") + "\n");
    for (const { kind, can } of all) {
      if (shape.includes("--growth") && !can.includes("grow")) continue;
      const file = place(`${kind}-${i}.calyx`);
      calyx("build", ...shape, "--kind", kind, "--seed", "7", "-o", file, "keys");
      const wanted = calyx("check", "-f", file, "asked").trimEnd().split("\n");
      if (i === 0) assert.ok(wanted.length > 12, "there are false positives to compare");
      const { verdict, facts, damage } = await inspect(page, file);
      assert.deepEqual([verdict, damage], ["good", []], kind);
      if (i === 2 && can.includes("add")) assert.ok(facts.bytes > 8 << 20, "more than one slice");
      compare(facts, calyxJson("info", file)[0]);
      assert.ok(await page.isHidden("#unread"), kind);
      assert.deepEqual(await lookUp(page, asked), wanted, `${kind} ${shape}`);
      rmSync(file);
    }
  }
  await close(page);
});

// ---- Damage ----

const fails = (path) => {
  try {
    calyx("verify", path);
  } catch (error) {
    return error.status;
  }
  return 0;
};

test("damage is shown with its place, wherever the command sees some", async () => {
  writeFileSync(place("many"), Array.from({ length: 200000 }, (_, i) => `${i}\n`).join(""));
  const whole = place("whole.calyx");
  calyx("build", "-n", "2M", "-p", "1%", "--kind", "flat", "-o", whole, "many");
  const bytes = readFileSync(whole), length = bytes.length;
  assert.ok(length > 2 << 20);
  const view = new DataView(bytes.buffer, bytes.byteOffset);
  const body = Number(view.getBigUint64(128 + 40, true));
  const bits = Number(view.getBigUint64(128, true));
  const bodyBytes = Number(view.getBigUint64(128 + 48, true));
  const tables = Math.ceil((body + bodyBytes) / 4096) * 4096;
  const flip = (at) => (copy) => { copy[at] ^= 0x10; return copy; };
  const cases = [
    ["start", flip(0), ["head"]],
    ["version", flip(8), ["head"]],
    ["header", flip(64), ["head"]],
    ["first range", flip(body), ["range"]],
    ["second range", flip(body + (1 << 16) + 5), ["range"]],
    ["tables", flip(tables), ["tables"]],
    ["slot", flip(length - 1024), ["slots"]],
    ["gap", flip(tables + 8 * Math.ceil(bodyBytes / (1 << 16))), ["gap"]],
    ["after a slot", flip(length - 1), ["gap"]],
    ["truncated", (copy) => copy.subarray(0, length / 2 | 0), ["size"]],
    ["cut by a byte", (copy) => copy.subarray(0, length - 1), ["size"]],
    ["cut in its header", (copy) => copy.subarray(0, 1000), ["head"]],
    ["longer", (copy) => Buffer.concat([copy, Buffer.alloc(1)]), ["size"]],
    ["empty", () => Buffer.alloc(0), ["head"]],
    ["foreign", () => Buffer.from("%PDF-1.7\n".repeat(1000)), ["head"]],
  ];
  const tail = body + Math.floor(bits / 8) + 1;
  if (tail < body + bodyBytes) cases.push(["tail", flip(tail), ["range"]]);
  const page = await open("?part=inspect");
  const sound = await inspect(page, whole);
  assert.equal(sound.verdict, "good");
  compare(sound.facts, calyxJson("info", whole)[0]);
  for (const [name, change, wanted] of cases) {
    const path = place(`${name}.calyx`);
    writeFileSync(path, change(Buffer.from(bytes)));
    assert.equal(fails(path) !== 0, true, name);
    const { verdict, damage } = await inspect(page, path);
    assert.equal(verdict, "damaged", name);
    assert.deepEqual(damage.sort(), [...wanted].sort(), name);
    assert.ok(await page.locator("#ask-box").isHidden(), "nobody asks what is damaged");
  }
  await close(page);
});

test("a packed file is unpacked, up to a limit, or the page says what to do", async () => {
  const page = await open("?part=inspect"), file = place("table.calyx");
  calyx("build", "-n", "20", "--growth", "2", "--kind", "bucket", "--force", "-o", file, "few");
  const bytes = readFileSync(file);
  writeFileSync(place("packed.calyx.gz"), gzipSync(bytes));
  const { verdict, facts } = await inspect(page, place("packed.calyx.gz"));
  assert.equal(verdict, "good");
  compare(facts, { ...calyxJson("info", file)[0], file });
  assert.deepEqual(await lookUp(page, ["0", "absent"]), ["0"]);
  writeFileSync(place("cut.gz"), gzipSync(bytes).subarray(0, 100));
  assert.deepEqual((await inspect(page, place("cut.gz"))).damage, ["packed"]);
  writeFileSync(place("other.gz"), gzipSync("%PDF-1.7"));
  assert.deepEqual((await inspect(page, place("other.gz"))).damage, ["head"]);
  writeFileSync(place("bomb.gz"), gzipSync(Buffer.alloc(513 << 20), { level: 1 })); // 2 MB
  assert.deepEqual((await inspect(page, place("bomb.gz"))).damage, ["large"]);
  writeFileSync(place("packed.zst"), Buffer.from("28b52ffd00000000", "hex"));
  assert.match((await inspect(page, place("packed.zst"))).damage[0], /^(known\.zstd|packed)$/);
  await close(page);
});

test("a filter of another program is recognised, and the page says which command reads it", async () => {
  const page = await open("?part=inspect"), foreign = fileURLToPath(new URL("../cli/foreign/", import.meta.url));
  calyx("build", "-n", "100", "-p", "1%", "--kind", "split", "--force", "-o", "s.calyx", "few");
  calyx("convert", "--to", "parquet", "--force", "-o", "s.parquet", "s.calyx");
  calyx("convert", "--from", "guava", "--force", "-o", "g.dump", foreign + "guava-text.filter");
  calyx("build", "--layout", "redisbloom", "-n", "100", "-p", "1%", "--force", "-o", "r.dump", "few");
  calyx("convert", "--to", "redisbloom", "--force", "-o", "r.reply", "r.dump");
  writeFileSync(place("whole.parquet"), "PAR1 and much more");
  writeFileSync(place("java"), Buffer.from("aced0005", "hex"));
  writeFileSync(place("almost"), readFileSync(foreign + "guava-text.filter").subarray(0, -1));
  const bits = (name) => calyxJson("info", place(name))[0];
  for (const [path, what, says] of [
    [foreign + "guava-text.filter", "known.layout", new RegExp(`m = ${bits("g.dump").bits} bits and k = ${bits("g.dump").probes}`)],
    [foreign + "guava-text-32.filter", "known.layout", /--from guava/],
    [foreign + "spark-1-text.filter", "known.layout", /m = 512 bits and k = 3/],
    [foreign + "spark-2-text.filter", "known.layout", /m = 512 bits and k = 3/],
    [place("s.parquet"), "known.parquet", new RegExp(`with ${new Intl.NumberFormat("en").format(bits("s.calyx").bits).replace(",", ".")} bits`)],
    [place("g.dump"), "known.dump", /calyx info/], [place("r.reply"), "known.server", /--from redisbloom/],
    [place("whole.parquet"), "known.parquet.whole", /--offset/], [place("java"), "known.java", /writeTo/],
    [place("almost"), "head", /not a calyx filter/],
  ]) {
    const { verdict, damage } = await inspect(page, path);
    assert.deepEqual([verdict, ...damage], ["damaged", what], path);
    assert.match(await page.locator("#damage").textContent(), says);
    assert.match(await page.locator("#inspect-say").textContent(), /is not a Calyx filter/);
  }
  await close(page);
});

test("a file with a secret key is shown, but not asked", async () => {
  const [page, file] = [await open("?part=inspect"), golden + "line-siphash.calyx"];
  const key = place("key");
  writeFileSync(key, Buffer.from(Array.from({ length: 16 }, (_, i) => i)));
  const { verdict, facts } = await inspect(page, file);
  assert.equal(verdict, "good");
  compare(facts, calyxJson("info", "--key-file", key, file)[0]);
  assert.ok(await page.locator("#ask-box").isHidden());
  assert.match(await page.locator("#secret").innerText(), /not queried/);
  const bytes = readFileSync(file);
  bytes[64] ^= 1;
  writeFileSync(place("secret.calyx"), bytes);
  assert.deepEqual((await inspect(page, place("secret.calyx"))).damage, ["head"]);
  await close(page);
});

// A sparse file of 320 MiB, or as many as CALYX_HUGE asks for: zeros and the bits
// of three keys, with right checksums.
const HUGE = Number(process.env.CALYX_HUGE || 320);

async function huge(path) {
  const library = await start(await WebAssembly.compile(
    readFileSync(join(built, "modules/calyx/calyx.wasm"))));
  const sum = (bytes, seed = 0n) => { // of the format: XXH3, which a filter has
    const filter = library.make({ capacity: 1, hash: "xxh3", seed });
    const hash = library.lend(bytes, (at, size) => library.wasm.hash_of(filter.at, at, size));
    filter.free();
    return BigInt.asUintN(64, hash);
  };
  calyx("build", "-n", "40", "-p", "1%", "-o", path, "--force", "three");
  const small = readFileSync(path), header = Buffer.from(small.subarray(0, 4096));
  const chunk = 1 << 16, chunks = 16 * HUGE, bytes = chunks * chunk, slots = 4096 + bytes + Math.ceil(chunks / 64) * 512;
  header.writeBigUInt64LE(BigInt(bytes / 64), 128); // blocks
  header.writeBigUInt64LE(BigInt(bytes), 128 + 48);
  header.writeBigUInt64LE(BigInt(slots + 1024), 24);
  header.writeBigUInt64LE(sum(header.subarray(0, 4088)), 4088);
  const zeros = new Uint8Array(chunk), tables = Buffer.alloc(8 * chunks);
  for (let i = 0; i < chunks; i++) tables.writeBigUInt64LE(sum(zeros, BigInt(i)), 8 * i);
  const line = small.subarray(4096, 4160), last = chunks - 1; // three keys' bits, in the last line
  zeros.set(line, chunk - 64);
  tables.writeBigUInt64LE(sum(zeros, BigInt(last)), 8 * last);
  const slot = Buffer.alloc(64);
  slot.writeBigUInt64LE(1n, 0);
  slot.writeUInt32LE(1, 8);
  slot.writeBigUInt64LE(3n, 16);
  slot.writeBigUInt64LE(sum(tables), 24);
  header.copy(slot, 32, 4088);
  slot.writeBigUInt64LE(sum(slot.subarray(0, 56)), 56);
  const file = openSync(path, "w");
  ftruncateSync(file, slots + 1024);
  writeSync(file, header, 0, 4096, 0);
  writeSync(file, line, 0, 64, 4096 + bytes - 64);
  writeSync(file, tables, 0, tables.length, 4096 + bytes);
  writeSync(file, slot, 0, 64, slots);
  closeSync(file);
}

test(`a file of ${HUGE} MiB is read in slices, not whole`, async () => {
  writeFileSync(place("three"), "rose\niris\nlily\n");
  const path = place("huge.calyx");
  await huge(path);
  assert.equal(fails(path), 0, "the command takes it");
  const page = await open("?part=inspect");
  const { verdict, facts, damage } = await inspect(page, path);
  assert.deepEqual(damage, []);
  assert.equal(verdict, "good");
  compare(facts, calyxJson("info", path)[0]);
  await page.fill("#ask", "rose");
  await page.click("#ask-form button");
  await page.waitForSelector("#answers [data-found=false]"); // its line is another now
  truncateSync(path, 4096); // which nobody would notice who had read it whole
  await page.click("#ask-form button");
  await page.waitForFunction(() => document.getElementById("ask-say").textContent);
  await close(page);
});

test("ten megabytes of keys, and none, break nothing", async () => {
  const page = await open("?part=inspect");
  await inspect(page, golden + "line-saved.calyx");
  await page.click("#ask-form button");
  assert.match(await page.locator("#ask-say").textContent(), /Type a word/);
  await paste(page, "#ask", "x"); // the field takes 65536 of them
  await page.click("#ask-form button");
  await page.waitForFunction(() => document.querySelectorAll("#answers tbody tr").length === 1);
  await page.locator("#ask").evaluate((e) => { e.value = "🌹\n".repeat(5000); });
  await page.click("#ask-form button");
  await page.waitForFunction(() => document.querySelectorAll("#answers tbody tr").length === 1000);
  assert.match(await page.locator("#ask-say").textContent(), /first/);
  await close(page);
});

test("the examples show a whole file and a damaged one, with the damage on the map", async () => {
  const page = await open("?part=inspect");
  const bad = () => page.locator("#map .bad").count();
  await page.click("#example");
  await page.waitForSelector("#inspect-say[data-verdict=good]");
  assert.equal(await bad(), 0);
  await page.click("#ask-form button");
  await page.waitForSelector("#answers tbody tr");
  const answers = await page.locator("#answers td:last-child").allTextContents();
  assert.ok(answers.includes("maybe") && answers.includes("certainly not"), answers);
  await page.click("#broken");
  await page.waitForSelector("#inspect-say[data-verdict=damaged]");
  const share = await bad() / await page.locator("#map rect").count();
  assert.ok(share > 0 && share < 0.5, `${share} of the map is red: one range is damaged`);
  await close(page);
});

test("a file that is dropped anywhere is read as a chosen one", async () => {
  const page = await open();
  const bytes = [...readFileSync(golden + "line-saved.calyx")];
  await page.evaluate((all) => {
    const transfer = new DataTransfer();
    transfer.items.add(new File([new Uint8Array(all)], "dropped.calyx"));
    transfer.items.add(new File(["another"], "another.calyx"));
    document.querySelector("h1").dispatchEvent(
      new DragEvent("drop", { dataTransfer: transfer, bubbles: true, cancelable: true }));
  }, bytes);
  await page.waitForSelector("#inspect-say[data-verdict=good]");
  assert.ok(await page.isVisible("#inspect"));
  assert.match(await page.locator("#inspect-say").textContent(), /dropped\.calyx.* 1 more were left alone/);
  await close(page);
});

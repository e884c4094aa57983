// The npm package in Node.js.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { test } from "node:test";

import * as calyx from "calyx";
import { Builder, CalyxError, Filter, RemoteError, RemoteFilter, abilities, kinds, plan, version } from "calyx";
import { start } from "calyx/library";

const N = 5000;
const texts = (name, n = N) => Array.from({ length: n }, (_, i) => `${name}/${i}`);
const addable = () => kinds().filter((kind) => abilities(kind).includes("add"));
const count = (found) => found.reduce((all, one) => all + one, 0);

test("a string, its bytes, numbers and bigints are keys", () => {
  for (const kind of addable()) {
    const f = new Filter(100, 0.01, { kind });
    assert.equal(f.add("Rösé"), true);
    assert.equal(f.add(new TextEncoder().encode("Rösé")), false);
    f.add(258);
    assert.equal(f.has(258n), true);
    assert.equal(f.has(Uint8Array.of(2, 1, 0, 0, 0, 0, 0, 0)), true);
    f.add(2n ** 64n - 1n);
    assert.equal(f.has(new Uint8Array(8).fill(255)), true);
    assert.equal(f.has(-1) && f.has(-1n), true);
    assert.equal(f.has(""), false);
    f.add("");
    assert.equal(f.has(new Uint8Array()), true);
    assert.equal(f.size, abilities(kind).includes("count") ? 5 : 4);
  }
});

test("many keys answer as single ones", () => {
  const long = "é".repeat(50_000); // more than a block holds
  const keys = [...texts("in"), long, 7, 8n, new Uint8Array(70_000)];
  for (const kind of addable()) {
    const f = new Filter(N, 0.01, { kind });
    assert.ok(f.addMany(keys) > N * 0.9);
    assert.deepEqual(f.hasMany(keys), new Uint8Array(keys.length).fill(1));
    const out = texts("out"), found = f.hasMany(out);
    assert.deepEqual([...found], out.map((key) => +f.has(key)));
    assert.ok(count(found) <= 110); // 1 % is 50; one in 10^9 runs has more
    assert.ok(keys.every((key) => f.has(key)), kind);
    assert.equal(f.has(`${long}!`), false); // nothing of it is cut off
    assert.equal(f.hasMany([]).length, 0);
    assert.equal(f.hasMany(new Set(["in/1", "in/2"])).length, 2);
  }
});

test("an iterable may use filters while it is read", () => {
  const f = new Filter(N), g = new Filter(N);
  f.addMany((function* () {
    for (const key of texts("in")) {
      g.addMany([key, `${key}!`]);
      yield key;
    }
  })());
  assert.equal(count(f.hasMany(texts("in"))), N);
  assert.equal(count(g.hasMany(texts("in"))), N);
});

test("bytes are the same as by the command", () => {
  const f = new Filter(1000);
  f.addMany(["rose", "tulip"]);
  writeFileSync("ids.calyx", f.toBytes());
  const found = execFileSync(process.env.CALYX, ["check", "-f", "ids.calyx"],
    { input: "rose\nviolet\ntulip\n", encoding: "utf8" });
  assert.equal(found, "rose\ntulip\n");
  execFileSync(process.env.CALYX, ["build", "-n", "100", "-o", "made.calyx"], { input: "oak\nelm\n" });
  const made = Filter.fromBytes(readFileSync("made.calyx"));
  assert.deepEqual([...made.hasMany(["oak", "ash", "elm"])], [1, 0, 1]);
  assert.equal(made.add("ash"), true);
});

test("damaged bytes are refused", () => {
  const bytes = new Filter(1000).toBytes();
  for (const at of [0, 30, bytes.length >> 1]) {
    const damaged = bytes.slice();
    damaged[at] ^= 1;
    assert.throws(() => Filter.fromBytes(damaged), CalyxError);
  }
  assert.throws(() => Filter.fromBytes(new Uint8Array()), /ends after 0 bytes/);
  assert.throws(() => Filter.fromBytes("text"), TypeError);
});

test("keys are removed from kinds that can, and others say so", () => {
  for (const kind of addable()) {
    const f = new Filter(100, 0.01, { kind });
    f.add("rose");
    if (!abilities(kind).includes("remove")) {
      assert.throws(() => f.remove("rose"), CalyxError);
      continue;
    }
    assert.equal(f.count("rose"), 1);
    assert.equal(f.remove("rose"), true);
    assert.equal(f.has("rose"), false);
  }
});

test("filters of one shape are merged, and cleared", () => {
  const f = new Filter(100), g = new Filter(100);
  g.add("rose");
  f.merge(g);
  assert.equal(f.has("rose"), true);
  f.clear();
  assert.equal(f.has("rose") || f.size > 0, false);
  assert.throws(() => f.merge(new Filter(10_000)), CalyxError);
});

test("a builder makes every kind", () => {
  for (const kind of kinds()) {
    const b = new Builder(0.01, { kind });
    b.addMany(texts("in"));
    b.add("x".repeat(100_000));
    const f = b.finish();
    assert.equal(count(f.hasMany(texts("in"))), N);
    assert.ok(f.has("x".repeat(100_000)));
    assert.ok(count(f.hasMany(texts("out"))) <= 110);
    b.free();
    assert.throws(() => b.add("rose"), /freed/);
  }
});

// 16 M hashes fill the memory that a builder has at first; there are no files to go on in.
test("a builder has room for many millions of keys", { skip: !process.env.CALYX_LONG && "with CALYX_LONG" }, () => {
  const b = new Builder(0.01, { kind: "ribbon" }), SIZE = 1e6, MANY = 18;
  const lot = (n) => Float64Array.from({ length: SIZE }, (_, i) => n * SIZE + i);
  for (let n = 0; n < MANY; n++) b.addMany(lot(n));
  const f = b.finish();
  b.free();
  for (const n of [0, MANY - 1]) assert.equal(count(f.hasMany(lot(n))), SIZE);
  assert.ok(count(f.hasMany(lot(MANY))) < 0.0107 * SIZE); // 7 times the deviation
});

test("a plan is what is made", () => {
  for (const kind of addable()) {
    const f = new Filter(12345, 0.01, { kind });
    assert.equal(plan(12345, 0.01, { kind }).bytes, f.info.bytes);
    assert.equal(f.info.kind, kind);
  }
  assert.equal(new Filter(10, 0.01, { seed: 2n ** 64n - 1n }).info.seed, 2n ** 64n - 1n);
  assert.match(version(), /^\d+\.\d+\.\d+$/);
});

const layerOfPage = async () =>
  start(await WebAssembly.compile(readFileSync("node_modules/calyx/calyx.wasm")));

test("a plan takes any number of bits, and never more memory than is given", async () => {
  const calyx = await layerOfPage();
  const book = calyx.plan("flat", { keys: 100, bits: 1000, probes: 7 });
  assert.equal(book.bits, 1000);
  assert.ok(Math.abs(book.rate - 0.00827) < 1e-5);
  for (const kind of calyx.kinds)
    for (const memory of [130, 1000, 4095]) {
      let p;
      try {
        p = calyx.plan(kind, { keys: 50, memory });
      } catch (error) {
        assert.match(error.message, /bits|bytes/);
        continue;
      }
      assert.ok(p.bytes <= memory && p.bytes > 0);
    }
});

test("wrong arguments are errors that say what was wanted", () => {
  for (const key of [1.5, NaN, null, undefined, {}, 2n ** 64n, -(2n ** 63n) - 1n])
    assert.throws(() => new Filter(10).add(key), TypeError);
  for (const n of [0, -5, 1.5, NaN, "10", undefined, Infinity, 2 ** 60])
    assert.throws(() => new Filter(n), RangeError);
  for (const p of [0, 1, NaN, -1, "0.1"]) assert.throws(() => new Filter(10, p), RangeError);
  assert.throws(() => new Filter(10, 0.01, { kind: "rosebush" }), /rosebush.*there are: line/);
  assert.throws(() => new Filter(10, 0.01, { hash: "md5" }), /md5/);
  for (const make of [(o) => new Filter(10, 0.01, o), (o) => new Builder(0.01, o), (o) => plan(10, 0.01, o)])
    assert.throws(() => make({ knd: "flat" }), /no option is named 'knd'; there are: kind/);
  assert.throws(() => new Filter(2 ** 50), CalyxError);
  assert.throws(() => new Filter(10).addMany("rose"), TypeError);
  const f = new Filter(10);
  f.free();
  f.free();
  assert.throws(() => f.has("rose"), /freed/);
});

test("a filter grows without a number of keys, with a random seed unless one is given", () => {
  const grows = (options) => new Filter(undefined, 0.01, { growth: 2, ...options });
  for (const kind of [undefined, ...addable().filter((kind) => abilities(kind).includes("grow"))]) {
    const f = grows({ kind, seed: 0 });
    f.addMany(texts("in"));
    assert.equal(count(f.hasMany(texts("in"))), N);
    assert.ok(count(f.hasMany(texts("out"))) <= 110); // 1 % is 50; one in 10^9 runs has more
    assert.equal(f.info.seed, 0n);
    const a = grows({ kind }), b = grows({ kind, seed: a.info.seed });
    assert.equal(b.info.seed, a.info.seed);
    assert.notEqual(grows({ kind }).info.seed, a.info.seed); // equal once in 2^64 runs
  }
  assert.equal(new Filter(10).info.seed, 0n);
  assert.throws(() => new Filter(undefined, 0.01), /a number of keys, or bits, or growth/);
});

test("require works, too", { skip: !process.features.require_module && "Node.js before 20.19" }, () => {
  const program = 'const { Filter } = require("calyx"); console.log(new Filter(10).add("rose"))';
  const said = execFileSync(process.execPath, ["--no-warnings", "-e", program], { encoding: "utf8" });
  assert.equal(said, "true\n");
});

test("filters that nobody uses are freed", async () => {
  const megabytes = () => process.memoryUsage().rss / 1e6;
  const before = megabytes();
  for (let i = 0; i < 60; i++) {
    new Filter(undefined, undefined, { bits: 2 ** 27 }); // 17 MB, 1007 in all
    gc();
    await new Promise((done) => setTimeout(done));
  }
  assert.ok(megabytes() - before < 500);
});

test("the layer that the page uses reads a file in slices", async () => {
  const library = await layerOfPage();
  const f = new Filter(1000);
  f.add("rose");
  const file = f.toBytes(), layout = library.layout(file.slice(0, library.headerMost));
  const read = (at) => [...file.slice(at, at + library.lineBytes)];
  for (const [word, answer] of [["rose", 1], ["tulip", 0]]) {
    const hash = layout.hash(word), lines = layout.lines(0, hash);
    assert.deepEqual(layout.answer(0, hash, Uint8Array.from(lines.flatMap(read))), [answer, 0]);
  }
  layout.free();
});

test("the types declare what there is", () => {
  const types = readFileSync("node_modules/calyx/index.d.ts", "utf8");
  const exported = [...types.matchAll(/^export (?:class|function) (\w+)/gm)].map((m) => m[1]);
  assert.deepEqual(exported.sort(), Object.keys(calyx).sort());
  for (const name of ["Filter", "Builder"]) {
    const body = types.match(new RegExp(`^export class ${name} {(.*?)^}`, "ms"))[1];
    const declared = [...body.matchAll(/^  (?:get )?(\w+)\(/gm)].map((m) => m[1]);
    assert.deepEqual(declared.sort(), Object.getOwnPropertyNames(calyx[name].prototype).sort());
  }
  const info = types.match(/^export interface Info {(.*?)^}/ms)[1];
  const fields = [...info.matchAll(/^  (\w+):/gm)].map((m) => m[1]);
  assert.deepEqual(fields.sort(), Object.keys(new Filter(10).info).sort());
});

// A web server with ranges of one file: `file.bytes`, of the version `file.tag`.
async function serveRanges(file, use) {
  const server = createServer(({ headers }, answer) => {
    const [from, last] = headers.range.slice(6).split("-").map(Number);
    const part = file.bytes.subarray(from, last + 1);
    answer.writeHead(206, { etag: file.tag,
      "content-range": `bytes ${from}-${from + part.length - 1}/${file.bytes.length}` }).end(part);
  });
  await new Promise((listens) => server.listen(0, "127.0.0.1", listens));
  try {
    await use(`http://127.0.0.1:${server.address().port}/`);
  } finally {
    server.closeAllConnections();
    server.close();
  }
}

test("a filter on a web server answers as one in memory, and reads little", async () => {
  for (const kind of addable()) {
    const f = new Filter(200_000, 0.01, { kind, growth: abilities(kind).includes("grow") ? 2 : 0, seed: 0 });
    f.addMany([...texts("in"), 7, 8n]);
    const file = { bytes: f.toBytes(), tag: '"a"' };
    await serveRanges(file, async (url) => {
      let remote;
      try {
        remote = await RemoteFilter.open(url);
      } catch (error) {
        assert.match(error.message, /learns what to read only while it reads/);
        return;
      }
      const keys = [...texts("in", 60), ...texts("out", 60), 7, 8n, 9]; // each up to 7 requests
      assert.deepEqual(await remote.hasMany(keys), f.hasMany(keys), kind);
      assert.equal(await remote.has("in/1"), true);
      assert.ok(remote.traffic.bytes < file.bytes.length / 2 || kind === "flat", kind);
      assert.equal(remote.info.keys, f.size);
      const { bytes } = file;
      f.add("late");
      file.bytes = f.toBytes(); // which the tag does not show
      await assert.rejects(remote.has("in/2"), (error) => error instanceof RemoteError && error.what === "changed");
      file.bytes = bytes;
      file.tag = '"b"';
      await assert.rejects(remote.has("in/2"), (error) => error instanceof RemoteError && error.what === "changed");
      remote.free();
      assert.throws(() => remote.info, /was freed/);
    });
  }
});

test("a key on the allow list of a file on a web server is answered no", async () => {
  execFileSync(process.env.CALYX, ["build", "-o", "allowed.calyx"], { input: "oak\nelm\n" });
  execFileSync(process.env.CALYX, ["allow", "allowed.calyx"], { input: "oak\n" });
  await serveRanges({ bytes: readFileSync("allowed.calyx"), tag: '"a"' }, async (url) => {
    const remote = await RemoteFilter.open(url);
    assert.deepEqual([...await remote.hasMany(["oak", "elm"])], [0, 1]);
  });
});

test("a file on a web server that is damaged or cut is refused", async () => {
  const bytes = new Filter(100_000).toBytes();
  const cut = bytes.subarray(0, bytes.length - 64), slots = bytes.slice(), header = bytes.slice();
  slots.fill(0, slots.length - 128);
  header[100] ^= 1;
  for (const [bad, reason] of [[cut, /its header says/], [slots, /neither of its slots/], [header, /damaged/]])
    await serveRanges({ bytes: bad, tag: '"a"' }, async (url) => {
      await assert.rejects(RemoteFilter.open(url), reason);
    });
  await assert.rejects(RemoteFilter.open("http://127.0.0.1:1/"), (error) => error.what === "reach");
});

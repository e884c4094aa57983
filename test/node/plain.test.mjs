// PlainFilter by the clients that Debian has, on a server without a module: the command
// CALYX pushes and pulls. `plain.test.mjs` is run by test/node/run.
import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { createRequire } from "node:module";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, beforeEach, test } from "node:test";

import { PlainFilter } from "calyx";

const { createClient } = createRequire(import.meta.url)("redis");
const { CALYX } = process.env;
const folder = mkdtempSync(join(tmpdir(), "calyx-plain-"));
const file = (name) => join(folder, name);
const texts = (from, to) => Array.from({ length: to - from }, (_, i) => `key ${from + i}`);
const input = (keys) => keys.map((key) => `${key}\n`).join("");
const calyx = (words, keys = []) => execFileSync(CALYX, words, { input: input(keys) });
const count = (found) => found.reduce((all, one) => all + one, 0);
const url = () => `redis://127.0.0.1:${port}/seen`;
const push = (name, ...options) => calyx(["push", "--plain", "--piece", "64KiB", ...options, file(name), url()]);

let server, client, port;

before(async () => {
  port = await new Promise((resolve) => {
    const free = createServer().listen(0, "127.0.0.1", () => {
      const { port } = free.address();
      free.close(() => resolve(port));
    });
  });
  server = spawn("redis-server", ["--port", port, "--bind", "127.0.0.1", "--save", "", "--dir", folder]);
  await new Promise((resolve) => server.stdout.on("data", (said) => /Ready to accept/.test(said) && resolve()));
  client = createClient({ url: `redis://127.0.0.1:${port}` });
  await client.connect();
});

after(async () => {
  await client?.quit();
  server?.kill();
  rmSync(folder, { recursive: true });
});

beforeEach(() => client.flushAll());

// As ioredis does it: bytes for each bulk string, by callBuffer.
class Buffers {
  callBuffer(...words) {
    return client.sendCommand(words, { returnBuffers: true });
  }
}

for (const [name, by] of [["node-redis", () => client], ["a client with callBuffer", () => new Buffers()]])
  test(`lookups and additions by ${name} are as in the file`, async () => {
    calyx(["build", "-n", "9000", "-p", "1e-6", "--force", "-o", file("a.calyx")], texts(0, 3000));
    push("a.calyx");
    const f = await PlainFilter.open(by(), "seen");
    assert.deepEqual([...await f.hasMany(texts(0, 6000))], texts(0, 6000).map((_, i) => +(i < 3000)));
    assert.equal(await f.has("rose"), false);
    assert.equal(await f.add("rose"), true);
    assert.equal(await f.add("rose"), false);
    assert.equal(await f.has(new TextEncoder().encode("rose")), true);
    assert.equal(await f.addMany(texts(2000, 5000)), 2000);
    assert.equal(count(await f.hasMany(texts(0, 6000))), 5000);
    calyx(["pull", "--force", "-o", file("b.calyx"), url()]);
    calyx(["add", file("a.calyx")], [...texts(2000, 5000), "rose"]);
    for (const name of ["a", "b"]) calyx(["convert", "--force", "--to", "raw", "-o", file(name), file(`${name}.calyx`)]);
    execFileSync("cmp", [file("a"), file("b")]);
    f.free();
    await assert.rejects(f.has("rose"), /freed/);
  });

test("other kinds, grown filters and allow lists are queried", async () => {
  for (const options of [["--kind", "line2"], ["--kind", "flat"], ["--kind", "ribbon"],
    ["--kind", "line", "-n", "100", "--growth", "2"]]) {
    calyx(["build", "--force", "-p", "1e-3", "-o", file("a.calyx"), ...options], texts(0, 3000));
    push("a.calyx", "--swap");
    const f = await PlainFilter.open(client, "seen");
    const out = calyx(["check", "-f", file("a.calyx")], texts(0, 6000)).toString();
    const found = await f.hasMany(texts(0, 6000));
    assert.equal(input(texts(0, 6000).filter((_, i) => found[i])), out);
    if (options[1] === "line") assert.equal(await f.add("rose") && await f.has("rose"), true);
    else await assert.rejects(f.add("rose"), /all bits in one line/);
  }
  calyx(["allow", file("a.calyx")], ["key 7"]);
  push("a.calyx", "--swap");
  const f = await PlainFilter.open(client, "seen");
  assert.deepEqual([...await f.hasMany(texts(6, 9))], [1, 0, 1]);
  await assert.rejects(f.add("rose"), /allow list/);
});

test("what is missing is an error, and never a no", async () => {
  await assert.rejects(PlainFilter.open(client, "seen"), /no filter/);
  calyx(["build", "--force", "-o", file("a.calyx")], texts(0, 3000));
  push("a.calyx");
  const f = await PlainFilter.open(client, "seen");
  const [piece] = await client.keys("seen:*");
  const size = await client.strLen(piece);
  await client.del(piece);
  await assert.rejects(f.has("key 1"), /missing/);
  await assert.rejects(f.add("rose"), /missing/);
  assert.equal(await client.exists(piece), 0);
  await client.setBit(piece, 8 * size - 1, 1);
  await assert.rejects(f.has("key 1"), /missing/);
  push("a.calyx", "--swap");
  assert.equal(await f.has("key 1"), true);
  await client.flushAll();
  await assert.rejects(f.add("rose"), /missing|no filter/);
});

test("many callers at once lose nothing, also beside swaps", async () => {
  calyx(["build", "--force", "-n", "16000", "-p", "1e-6", "-o", file("a.calyx")], texts(0, 3000));
  push("a.calyx");
  const filters = await Promise.all(Array.from({ length: 16 }, () => PlainFilter.open(client, "seen")));
  const fresh = await Promise.all(filters.map((f, i) => f.addMany(texts(3000 + 500 * i, 4000 + 500 * i))));
  assert.ok(count(fresh) > 8490 && count(fresh) <= 8500);
  assert.equal(count(await filters[0].hasMany(texts(0, 11500))), 11500);
  for (let i = 0; i < 5; i++) {
    const lookups = filters.map((f) => f.hasMany(texts(0, 500)));
    push("a.calyx", "--swap");
    for (const found of await Promise.all(lookups)) assert.equal(count(found), 500);
  }
});

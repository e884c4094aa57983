// The vector kernels leave the bits and give the answers of the scalar kernel, in
// the browser that is there; and a browser without vectors is answered in words.
import assert from "node:assert/strict";
import { test } from "node:test";
import { close, go, kinds, open } from "./support.mjs";

// In the page: the bits, and every answer by itself and in runs, of one filter.
async function fingerprint({ kernel, kind, removes, probes, bits }) {
  const calyx = (calyxPage.library ??= await calyxPage.start(await calyxPage.load()));
  const filter = calyx.make({ kind, capacity: 1, bits, probes, kernel });
  filter.addNumbers(0, 700); // in runs
  for (let i = 0; i < 60; i++) filter.add("word " + i);
  if (removes)
    for (let i = 0; i < 90; i++) filter.remove("word " + i);
  let answers = "";
  for (let i = 0; i < 300; i++) answers += Number(filter.has("word " + i));
  for (let i = 0; i < 2000; i++) answers += filter.hasNumbers(i, 1);
  for (let i = 0; i < 3000; i += 130 + i % 140) answers += "," + filter.hasNumbers(i, 130 + i % 140);
  const body = filter.getBits(0, filter.describe().bytes).join(" ");
  filter.free();
  return { body, answers };
}

test("vectors leave the bits and give the answers that the scalar kernel does", async () => {
  const page = await open();
  const of = (what) => page.evaluate(fingerprint, what);
  let yes = 0, no = 0;
  for (const { kind, can } of await kinds(page)) {
    if (!can.includes("add")) continue;
    for (let probes = 1; probes <= 32; probes += probes < 8 ? 1 : 4) {
      const shape = { kind, removes: can.includes("remove"), probes, bits: 512 * 17 };
      const wanted = await of({ kernel: "scalar", ...shape }).catch(() => null);
      if (!wanted) continue; // not with as many probes
      assert.deepEqual(await of({ kernel: "simd128", ...shape }), wanted, `${kind}, ${probes} probes`);
      yes += wanted.answers.includes("1");
      no += wanted.answers.includes("0");
    }
  }
  assert.ok(yes > 30 && no > 30, "there is something to compare");
  await close(page);
});

test("a browser that cannot run the library says so", async () => {
  const page = await go("", {});
  await page.addInitScript(() => {
    WebAssembly.compile = async () => { throw new Error("no vectors here"); };
  });
  await page.reload();
  await page.waitForSelector("#trouble:not([hidden])");
  assert.match(await page.textContent("#trouble"), /2023.*no vectors here/);
  await close(page);
});

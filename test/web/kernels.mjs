// The library with vectors and the one without leave the same bits and give the
// same answers, in the browser that is there; and the page does without vectors
// where there are none.
import assert from "node:assert/strict";
import { test } from "node:test";
import { close, go, open, ready } from "./support.mjs";

// In the page: the bits, and every answer by itself and in runs, of one filter.
async function fingerprint({ build, kernel, kind, probes, bits }) {
  const all = (calyxPage.builds ??= {});
  const calyx = (all[build] ??= await calyxPage.start(await calyxPage.compile(build)));
  const filter = calyx.make({ kind, capacity: 1, bits, probes, kernel: kernel || calyx.kernels[0] });
  filter.addNumbers(0, 700); // in runs
  for (let i = 0; i < 60; i++) filter.add("word " + i);
  if (kind === "counting")
    for (let i = 0; i < 90; i++) filter.remove("word " + i);
  let answers = "";
  for (let i = 0; i < 300; i++) answers += Number(filter.has("word " + i));
  for (let i = 0; i < 2000; i++) answers += filter.hasNumbers(i, 1);
  for (let i = 0; i < 3000; i += 130 + i % 140) answers += "," + filter.hasNumbers(i, 130 + i % 140);
  const body = filter.getBits(0, filter.describe().bytes).join(" ");
  filter.free();
  return { body, answers };
}

test("vectors leave the bits and give the answers that the plain kernel does", async () => {
  const page = await open();
  const of = (what) => page.evaluate(fingerprint, what);
  const shapes = { line: [1, 16, 1], line2: [2, 32, 2], counting: [1, 16, 3] };
  let yes = 0, no = 0;
  for (const [kind, [least, most, step]] of Object.entries(shapes))
    for (let probes = least; probes <= most; probes += step) {
      const shape = { kind, probes, bits: 512 * 17 };
      const wanted = await of({ build: "plain", ...shape });
      for (const kernel of ["simd128", "scalar"])
        assert.deepEqual(await of({ build: "simd", kernel, ...shape }), wanted,
          `${kind}, ${probes} probes, ${kernel}`);
      yes += wanted.answers.includes("1");
      no += wanted.answers.includes("0");
    }
  assert.ok(yes > 30 && no > 30, "there is something to compare");
  await close(page);
});

test("a browser without vectors gets the plain build", async () => {
  const page = await go("", {});
  await ready(page);
  assert.match(await page.textContent("#version"), /simd128/);
  await page.addInitScript(() => { WebAssembly.validate = () => false; });
  await page.reload();
  await ready(page);
  assert.match(await page.textContent("#version"), /scalar/);
  await page.locator("#chart-grow canvas").waitFor(); // the worker, too
  await close(page);
});

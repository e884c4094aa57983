// Plan: its numbers are those of `calyx plan --json`, its state is in the
// address, and nothing that is typed breaks it.
import assert from "node:assert/strict";
import { test } from "node:test";
import { calyxJson, close, numbers, open, paste, ready, same, visit } from "./support.mjs";

async function compare(page, plan) {
  const solvesKeys = await page.locator("#amount-head").getAttribute("data-t") === "keys";
  const rows = await page.locator("#kinds tbody tr").evaluateAll((all) =>
    Object.fromEntries(all.map((row) => [row.dataset.kind, {
      text: row.textContent, can: row.querySelector("[data-can]")?.dataset.can,
      numbers: [...row.querySelectorAll("data")].map((d) => Number(d.value)),
    }])));
  for (const k of plan.kinds) {
    const row = rows[k.kind];
    if (!k.possible) {
      assert.ok(row.text.includes("Not so: " + k.why_not), row.text);
      continue;
    }
    const [amount, bits, probes, rate] = row.numbers;
    same(amount, solvesKeys ? k.keys : k.bytes, `${k.kind}: amount`);
    same(bits, k.bits_a_key, `${k.kind}: bits a key`);
    same(probes, k.probes, `${k.kind}: probes`);
    same(rate, k.rate, `${k.kind}: rate`);
    assert.equal(row.can, [k.can_remove && "remove", k.can_merge && "merge",
      k.can_grow && "grow", k.can_add_from_many_threads && "share"]
      .filter(Boolean).join(" "));
  }
  for (const [name, e] of [["table", plan.hash_table], ["list", plan.sorted_list]]) {
    const [amount, bits, probes] = rows[name].numbers;
    same(amount, solvesKeys ? e.keys : e.bytes, name);
    same(bits, e.bits_a_key, name);
    same(probes, e.probes, name);
  }
  assert.equal(await page.locator("#run-build").textContent(), plan.build);
  assert.equal(await page.locator("#run-reserve").textContent(), plan.reserve);
}

const plans = [
  [{ n: "10M", p: "1%" }, ["-n", "10M", "-p", "1%"]],
  [{ n: "1e9", p: "1 in 1000" }, ["-n", "1e9", "-p", "1/1000"]],
  [{ n: "1 000 000", m: "64 MiB" }, ["-n", "1M", "--memory", "64MiB"]],
  [{ n: "1.5M", m: "2MB" }, ["-n", "1500000", "--memory", "2M"]],
  [{ m: "64KiB", p: "0.1%" }, ["--memory", "64KiB", "-p", "0.1%"]],
  [{ m: "1.5G" }, ["--memory", "1.5G"]],
  [{ n: "1" }, ["-n", "1"]],
  [{ n: "5000", p: "1e-9" }, ["-n", "5000", "-p", "1e-9"]],
  [{ n: "1099511627776", p: "50%" }, ["-n", "1099511627776", "-p", "50%"]],
  [{ n: "10M", p: "1%", kind: "counting" }, ["-n", "10M", "-p", "1%", "--kind", "counting"]],
  [{ n: "777777", m: "1234567", kind: "flat" }, ["-n", "777777", "--memory", "1234567", "--kind", "flat"]],
];

test("a link gives the numbers and lines of calyx plan --json", async () => {
  const page = await open();
  for (const [query, args] of plans) {
    await visit(page, "?" + new URLSearchParams(query));
    await compare(page, calyxJson("plan", ...args));
  }
  await close(page);
});

test("two that are typed give the third, and the oldest gives way", async () => {
  const page = await open();
  await page.fill("#keys", "3M");
  await page.fill("#rate", "2%");
  assert.equal(await page.inputValue("#memory"), "");
  await compare(page, calyxJson("plan", "-n", "3M", "-p", "2%"));
  await page.fill("#memory", "4 MiB"); // keys are the oldest now
  assert.equal(await page.inputValue("#keys"), "");
  await compare(page, calyxJson("plan", "--memory", "4MiB", "-p", "2%"));
  await page.fill("#keys", "1M");
  assert.equal(await page.inputValue("#rate"), "");
  await compare(page, calyxJson("plan", "--memory", "4MiB", "-n", "1M"));
  await close(page);
});

test("a plan survives a reload", async () => {
  const page = await open();
  await page.fill("#keys", "20M");
  await page.fill("#memory", "32MiB");
  await page.check("#kinds input[value=flat]");
  await page.fill("#store", "3ms");
  await page.waitForURL(/store=3ms/);
  const before = await page.locator("#kinds").innerText();
  await page.reload();
  await ready(page);
  await page.waitForFunction(() => document.querySelector("#chart-grow canvas"));
  assert.equal(await page.inputValue("#keys"), "20M");
  assert.equal(await page.inputValue("#rate"), "");
  assert.ok(await page.isChecked("#kinds input[value=flat]"));
  assert.equal(await page.locator("#kinds").innerText(), before);
  await compare(page, calyxJson("plan", "-n", "20M", "--memory", "32MiB", "--kind", "flat"));
  await close(page);
});

test("the cost in front of a store is the command's", async () => {
  const cases = [
    [{ store: "1ms" }, []],
    [{ store: "80us", present: "20%", filter: "50ns" },
      ["--present", "20%", "--filter-time", "50ns"]],
    [{ store: "150ns", present: "90%" }, ["--present", "90%"]],
  ];
  const page = await open();
  for (const [query, args] of cases) {
    await visit(page, "?" + new URLSearchParams({ n: "10M", p: "1%", ...query }));
    const { store } = calyxJson("plan", "-n", "10M", "-p", "1%",
      "--store-time", query.store, ...args);
    const mean = async (name) =>
      (await numbers(page.locator(`#costs tr[data-cost=${name}]`)))[0];
    same(await mean("alone"), store.mean_seconds_store_alone, "alone");
    same(await mean("filter"), store.mean_seconds_with_filter, "filter");
    same(await mean("table"), store.mean_seconds_with_hash_table, "table");
    const verdict = page.locator("#verdict");
    same(Number(await verdict.getAttribute("data-worth")), store.rate_worth_paying_for, "worth");
    same(Number(await verdict.getAttribute("data-pays-below")), store.pays_below_rate, "pays below");
  }
  await close(page);
});

test("all charts are drawn, and say what they show", async () => {
  const page = await open();
  for (const id of ["bits", "fill", "grow", "memory", "store"]) {
    const chart = page.locator("#chart-" + id);
    await chart.locator("canvas").waitFor();
    assert.match(await chart.getAttribute("aria-label"), /^Chart: .*\d/);
    const drawn = await chart.locator("canvas").evaluate((canvas) =>
      canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height)
        .data.some((x) => x > 0));
    assert.ok(drawn, id);
  }
  await close(page);
});

test("what is no number is reported, and breaks nothing", async () => {
  const page = await open();
  const nonsense = ["-1", "1e400", "NaN", "Infinity", "0x10", "🌹", "0", "1e-400",
    "1/0", "10%%", "<b>1</b>", "9".repeat(10_000), "1 in", "__proto__"];
  for (const text of nonsense)
    for (const id of ["keys", "rate", "memory"]) {
      await page.fill("#" + id, text);
      await page.waitForFunction(() => document.getElementById("plan-error").textContent);
      assert.equal(await page.getAttribute("#" + id, "aria-invalid"), "true", `${id} ${text.slice(0, 20)}`);
      await page.fill("#" + id, "");
    }
  await paste(page, "#keys", "9");
  assert.equal(await page.getAttribute("#keys", "aria-invalid"), "true");
  await page.locator("#keys").evaluate((field) => {
    field.value = "";
    field.dispatchEvent(new Event("input"));
  });
  for (const id of ["store", "filter", "present", "keybytes"])
    for (const text of ["", "-1", "1e400", "🌹", "1e400s", "NaNs"]) {
      await page.fill("#" + id, text);
      assert.equal(await page.getAttribute("#" + id, "aria-invalid"), "true", `${id} ${text}`);
    }
  assert.match(await page.locator("#plan-error").textContent(), /two of keys, rate and memory/);
  await page.fill("#keys", "10M");
  await compare(page, calyxJson("plan", "-n", "10M"));
  await close(page);
});

// Plan: its numbers are the same as in `calyx plan --json`, its state is in the
// address, and nothing that is typed breaks it.
import assert from "node:assert/strict";
import { test } from "node:test";
import { calyx, calyxJson, close, numbers, open, paste, ready, same, visit } from "./support.mjs";

// `plain` is the plan without a number of hash functions, for kinds that have none.
async function compare(page, plan, plain = plan) {
  const solvesKeys = await page.getAttribute("#kinds", "data-solves") === "keys";
  const rows = await page.locator("#kind-cards .kind").evaluateAll((all) =>
    Object.fromEntries(all.map((row) => [row.dataset.kind, {
      text: row.textContent, can: row.querySelector("[data-can]")?.dataset.can,
      numbers: [...row.querySelectorAll("data")].map((d) => Number(d.value)),
    }])));
  for (const [i, given] of plan.kinds.entries()) {
    const row = rows[given.kind], k = /k = /.test(row.text) ? given : plain.kinds[i];
    if (!k.possible) {
      assert.ok(row.text.includes("Not possible: " + k.why_not), row.text);
      continue;
    }
    const [amount, bits, probes, rate] = row.numbers;
    same(amount, solvesKeys ? k.keys : k.bytes, `${k.kind}: amount`);
    same(bits, k.bits_a_key, `${k.kind}: bits a key`);
    same(probes, k.probes, `${k.kind}: probes`);
    same(rate, k.rate, `${k.kind}: rate`);
    const can = row.can.split(" ");
    for (const [name, wanted] of [["remove", k.can_remove], ["merge", k.can_merge],
      ["grow", k.can_grow], ["share", k.can_add_from_many_threads]])
      assert.equal(can.includes(name), wanted, `${k.kind}: ${name}`);
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

// Other kinds than the three that are shown at first are one click away.
async function choose(page, kind) {
  if (!await page.isChecked("#kinds-all")) await page.click("label[for=kinds-all]");
  await page.check(`#kinds input[value=${kind}]`);
}

const plans = [
  [{ n: "10M", p: "1%" }, ["-n", "10M", "-p", "1%"]],
  [{ n: "1e9", p: "1 in 1000" }, ["-n", "1e9", "-p", "1/1000"]],
  [{ n: "1 000 000", m: "64 MiB" }, ["-n", "1M", "--memory", "64MiB"]],
  [{ n: "1.5M", m: "2MB" }, ["-n", "1500000", "--memory", "2M"]],
  [{ m: "64KiB", p: "0.1%" }, ["--memory", "64KiB", "-p", "0.1%"]],
  [{ m: "1.5G" }, ["--memory", "1.5G"]],
  [{ n: "1" }, ["-n", "1"]],
  [{ n: "1000", m: "64" }, ["-n", "1000", "--memory", "64"]], // too little for some
  [{ n: "5000", p: "1e-9" }, ["-n", "5000", "-p", "1e-9"]],
  [{ n: "1099511627776", p: "50%" }, ["-n", "1099511627776", "-p", "50%"]],
  [{ n: "10M", p: "1%", kind: "counting" }, ["-n", "10M", "-p", "1%", "--kind", "counting"]],
  [{ n: "1e8", m: "1.6 Gbit", k: "8" }, ["-n", "1e8", "--memory", "200M", "--probes", "8"]],
  [{ n: "777777", m: "1234567", kind: "flat" }, ["-n", "777777", "--memory", "1234567", "--kind", "flat"]],
];

test("a link gives the numbers and lines of calyx plan --json", async () => {
  const page = await open();
  for (const [query, args] of plans) {
    await visit(page, "?" + new URLSearchParams(query));
    const plain = args.filter((each, i) => each !== "--probes" && args[i - 1] !== "--probes");
    await compare(page, calyxJson("plan", ...args), calyxJson("plan", ...plain));
  }
  await close(page);
});

test("what is typed is given, and what was edited longest ago is computed", async () => {
  const page = await open();
  const solved = () => page.locator("#plan-form .solved").evaluateAll((all) => all.map((e) => e.id));
  await page.fill("#keys", "3M");
  await page.fill("#rate", "2%");
  assert.deepEqual(await solved(), ["memory", "probes"]);
  await compare(page, calyxJson("plan", "-n", "3M", "-p", "2%"));
  await page.fill("#memory", "4 MiB"); // keys are the oldest now
  assert.deepEqual(await solved(), ["keys", "probes"]);
  assert.match(await page.inputValue("#keys"), /^\d[\d\u202f]+$/);
  assert.equal(await page.textContent("#answer-value"), await page.inputValue("#keys"));
  await compare(page, calyxJson("plan", "--memory", "4MiB", "-p", "2%"));
  await page.fill("#keys", "1M");
  assert.deepEqual(await solved(), ["rate", "probes"]);
  await compare(page, calyxJson("plan", "--memory", "4MiB", "-n", "1M"));
  await close(page);
});

test("an emptied field is computed from then on, and Back undoes a preset", async () => {
  const page = await open("?n=1M&p=1%25");
  const solved = () => page.locator("#plan-form .solved").evaluateAll((all) => all.map((e) => e.id));
  await page.fill("#memory", "");
  assert.deepEqual(await solved(), ["memory", "probes"]); // as it was
  assert.equal(await page.inputValue("#rate"), "1%");
  await page.fill("#keys", "");
  assert.deepEqual(await solved(), ["keys", "probes"]);
  assert.equal(await page.textContent("#plan-error"), "");
  assert.equal((await page.inputValue("#keys")).replace(/\D/g, "").slice(0, 2), "10"); // of the memory that was computed
  await page.fill("#keys", "2M");
  await page.waitForURL(/n=2M/);
  await page.click('[data-preset="crawler"]');
  assert.equal(await page.inputValue("#keys"), "1G");
  await page.goBack();
  await page.waitForFunction(() => document.getElementById("keys").value === "2M");
  await close(page);
});

test("Ctrl+Z and Back take back a preset and a chosen kind, and no other part", async () => {
  const page = await open("?part=plan&n=7M&p=2%25");
  await page.click("[data-preset=spam]");
  assert.equal(await page.inputValue("#keys"), "5M");
  await page.waitForURL(/n=5M/);
  await page.click("label[for=kinds-all]");
  await page.locator('#kinds input[value="flat"]').check();
  await page.waitForURL(/kind=flat/);
  await page.keyboard.press("Control+z");
  await page.waitForFunction(() => !document.querySelector('#kinds input[value="flat"]').checked);
  await page.locator("[data-preset=spam]").press("Control+z");
  await page.waitForFunction(() => document.getElementById("keys").value === "7M");
  await page.locator("[data-preset=spam]").press("Control+z"); // there is nothing left
  await page.click("#tab-see");
  await page.locator("#tab-see").press("Control+z"); // another part is none to take back
  assert.ok(await page.isVisible("#see"));
  await close(page);
});

test("three or four kinds first, all on request; code in tabs, each with how to get it", async () => {
  const page = await open("?n=1M&p=1%25");
  const visible = () => page.locator("#kind-cards .kind:visible").count();
  assert.ok(await visible() >= 2 && await visible() <= 4);
  await page.click("label[for=kinds-all]");
  assert.equal(await visible(), await page.locator("#kind-cards .kind").count());
  const seen = new Set();
  for (const name of await page.locator("#code-tabs button").evaluateAll((all) => all.map((e) => e.dataset.code))) {
    await page.click("#code-" + name);
    assert.equal(await page.getAttribute("#code-" + name, "aria-selected"), "true");
    assert.equal(await page.locator("#code pre:visible").count(), name === "others" ? 0 : 2);
    if (name !== "others") assert.ok((await page.textContent("#run-get")).length > 3);
    seen.add(await page.locator(`#box-${name}`).textContent());
  }
  assert.equal(seen.size, 8);
  await page.press("#code-others", "ArrowLeft");
  assert.ok(await page.isVisible("#run-sql"));
  await close(page);
});

test("kinds without hash functions have none to choose, and say what they have", async () => {
  const page = await open("?n=1M&p=1%25&kind=bucket&k=7");
  assert.match(await page.textContent("#answer-text"), /^bucket: [\d.]+ bits a key, a slot a key, 1 cache line a lookup/);
  assert.ok(await page.isDisabled("#probes"));
  assert.doesNotMatch(await page.textContent("#run-build"), /probes/);
  await choose(page, "ribbon");
  assert.match(await page.textContent("#answer-text"), /^ribbon: [\d.]+ bits a key, \d+ equations a lookup, \d+ cache lines/);
  await choose(page, "line");
  assert.equal(await page.inputValue("#probes"), "7");
  assert.doesNotMatch(await page.textContent("#kinds"), /undefined|, \./);
  await close(page);
});

test("at low rates what takes less is recommended, unless another kind is chosen", async () => {
  const page = await open("?n=1M&p=1%25");
  const kind = () => page.getAttribute("#kinds .chosen", "data-kind");
  assert.equal(await kind(), "line");
  await page.fill("#rate", "1e-6");
  assert.equal(await kind(), "line2");
  const { kinds: all } = calyxJson("plan", "-n", "1M", "-p", "1e-6"), bytes = (name) => all.find((p) => p.kind === name).bytes;
  const less = Math.round(100 - 100 * bytes("line2") / bytes("line"));
  assert.match(await page.textContent("#answer-text"), new RegExp(`it takes ${less}\\s% less than line`));
  assert.match(await page.textContent("#run-build"), /--kind line2/);
  await choose(page, "line");
  assert.match(await page.textContent("#answer-text"), new RegExp(`line2 takes ${less}\\s% less`));
  await close(page);
});

test("a chart's labels stand where their lines end", async () => {
  const page = await open("?n=1M&p=1%25");
  await page.locator("#chart-size svg.chart-svg").waitFor();
  for (const id of ["chart-size", "chart-fill", "chart-probes"]) {
    const [end, label] = await page.locator("#" + id).evaluate((chart) => {
      const points = chart.querySelector(".series:not(.quiet) .line").getAttribute("d").match(/[\d.]+ [\d.]+/g);
      return [Math.max(...points.map((each) => Number(each.split(" ")[0])), 0) && Number(points.reduce((a, b) =>
        (Number(b.split(" ")[0]) > Number(a.split(" ")[0]) ? b : a)).split(" ")[1]),
      Number(chart.querySelector(".end-label:not(.quiet)").getAttribute("y"))];
    });
    assert.ok(Math.abs(end - label) < 40, `${id}: ${end} ${label}`);
  }
  await close(page);
});

test("a given number of hash functions is planned, built, and released again", async () => {
  const page = await open("?n=1000000&p=1%25");
  const best = await page.inputValue("#probes");
  await page.fill("#probes", "3");
  const line = await page.textContent("#run-build");
  assert.match(line, /^calyx build -n 1000000 -p 0.01 --probes 3 -o seen.calyx keys.txt$/);
  const [bytes, , probes] = await numbers(page.locator('[data-kind="line"]'));
  assert.equal(probes, 3);
  calyx("build", "-n", "1000000", "-p", "0.01", "--probes", "3", "-o", "three.calyx", "--force", "/dev/null");
  const [info] = calyxJson("info", "three.calyx");
  assert.deepEqual([info.bytes, info.probes], [bytes, 3]);
  await page.waitForURL(/k=3/);
  await page.reload();
  await ready(page);
  assert.equal(await page.inputValue("#probes"), "3");
  await page.fill("#probes", "65");
  assert.match(await page.textContent("#plan-error"), /1 to 64/);
  await page.fill("#probes", "");
  assert.equal(await page.inputValue("#probes"), best);
  await close(page);
});

test("of keys, rate, memory and hash functions any is computed: hash functions, the fewest that will do", async () => {
  const page = await open("?n=10M&p=1%25&m=16MB");
  const solved = () => page.locator("#plan-form .solved").evaluateAll((all) => all.map((e) => e.id));
  const rate = (kind, k) => calyxJson("plan", "-n", "10M", "--memory", "16M", "--probes", String(k))
    .kinds.find((each) => each.kind === kind).rate;
  assert.deepEqual(await solved(), ["probes"]);
  for (const kind of ["line", "flat"]) {
    await choose(page, kind);
    const k = Number(await page.inputValue("#probes"));
    assert.equal(await page.textContent("#answer-value"), `k = ${k}`);
    assert.ok(rate(kind, k) <= 0.01 && rate(kind, k - 1) > 0.01, `${kind} ${k}`);
    assert.match(await page.textContent("#run-build"), new RegExp(`^calyx build -n 10000000 --memory 16000000 --probes ${k} `));
    const [, most] = (await page.textContent("#answer-text")).match(/Up to k = (\d+) will do/);
    assert.ok(rate(kind, most) <= 0.01);
  }
  assert.match(await page.textContent("[data-kind=counting]"), /No number of hash functions gives 1\s%: the best, k = 2, gives/);
  await page.fill("#rate", "0.5%"); // all three stay given
  assert.deepEqual(await solved(), ["probes"]);
  await page.fill("#probes", "5"); // and now the oldest is computed
  assert.deepEqual(await solved(), ["memory"]);
  await page.fill("#memory", "1MB");
  assert.deepEqual(await solved(), ["keys"]);
  for (const id of ["rate", "memory", "probes", "keys"]) { // what was computed is then given
    await page.click(`[data-solve=${id}]`);
    assert.equal(await page.textContent("#plan-error"), "");
    assert.ok((await solved()).includes(id));
    assert.equal(await page.getAttribute(`[data-solve=${id}]`, "aria-pressed"), "true");
  }
  await visit(page, "?n=10M&p=0.1%25&m=1MB");
  assert.match(await page.textContent("#plan-error"), /^No number of hash functions gives 0.1\s%/);
  await close(page);
});

test("the formulas give Bloom's numbers", async () => {
  const page = await open("?n=1000000&p=0.01");
  const result = (name) => page.textContent(`[data-formula=${name}] b`);
  assert.equal((await result("m")).replace(/\D/g, ""), "9585058"); // 10^6 ln 100 / (ln 2)^2
  assert.match(await result("k"), /^6\.64 ≈ 7$/);
  assert.match(await result("p"), /^1\s%$/);
  await visit(page, "?n=1000000&m=1000000&k=4");
  assert.match(await result("p"), /^2\.4\s%$/); // (1 - e^(-4/8))^4
  await close(page);
});

test("m of 1000 bits is 1000 bits: with n = 100 and k = 7 the rate is 0.82 %", async () => {
  const page = await open("?n=100&m=1000+bits&k=7&kind=flat");
  assert.match(await page.textContent("#answer-value"), /^0\.82\d?\s%$/);
  assert.match(await page.textContent("#run-build"), /--bits 1000 --probes 7 --kind flat/);
  await close(page);
});

test("a plan survives a reload", async () => {
  const page = await open();
  await page.fill("#keys", "20M");
  await page.fill("#memory", "32MiB");
  await choose(page, "flat");
  await page.fill("#store", "3ms");
  await page.waitForURL(/store=3ms/);
  const before = await page.locator("#kinds").textContent();
  await page.reload();
  await ready(page);
  assert.equal(await page.inputValue("#keys"), "20M");
  assert.ok(await page.isChecked("#kinds input[value=flat]"));
  assert.equal(await page.locator("#kinds").textContent(), before);
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
  await page.click("#growth summary");
  for (const id of ["bits", "probes", "fill", "size", "grow", "memory", "store"]) {
    const chart = page.locator("#chart-" + id);
    await chart.locator("svg").waitFor();
    assert.match(await chart.locator("svg").getAttribute("aria-label"), /^Chart: .*\d/);
    const lines = await chart.locator("path.line").evaluateAll((all) => all.map((e) => e.getAttribute("d")));
    assert.ok(lines.length >= 1 && lines.every((d) => /^M[\d.-]+ [\d.-]+L/.test(d)), `${id}: ${lines}`);
  }
  await page.locator("#chart-probes svg").hover({ position: { x: 200, y: 100 } });
  assert.match(await page.locator("#chart-probes .reading").innerText(), /hash functions k: \d+\nline .*%/);
  await close(page);
});

test("presets fill the form, and code for other libraries follows", async () => {
  const page = await open();
  await page.click("#code-others");
  for (const name of await page.locator("[data-preset]").evaluateAll((all) => all.map((e) => e.dataset.preset))) {
    await page.click(`[data-preset=${name}]`);
    assert.equal(await page.textContent("#plan-error"), "", name);
    const [, n, p] = (await page.textContent("#run-build")).match(/-n (\d+) -p (\S+)/);
    const lines = await page.locator("#elsewhere-list code").allTextContents();
    assert.ok(lines.length >= 8 && lines.includes(`BF.RESERVE seen ${p} ${n}`), name);
    assert.ok(lines.includes(`bloom.NewWithEstimates(${n}, ${p})`), name);
  }
  await close(page);
});

// What people write, and what it means; NaN is refused.
const written = {
  countFrom: { "5000": 5000, "10M": 1e7, "10 million": 1e7, "10bn": 1e10, "1B": 1e9, "2^20": 2 ** 20,
    "1,000,000": 1e6, "1.000.000": 1e6, "1,5M": 1.5e6, "1'000": 1000, "100万": 1e6, "1亿": 1e8,
    "２００": 200, "1.5Mi": 1572864, "1e9": 1e9, "1.000": NaN, "1,5": NaN, "12,34,567": NaN, "1.5": NaN,
    "": NaN, "M": NaN, "constructor": NaN, "1constructor": NaN },
  rateFrom: { "1%": 0.01, "0,5%": 0.005, "1,5 %": 0.015, "0.001": 0.001, "1‰": 0.001, "1:1000": 0.001,
    "1/1000": 0.001, "1 in 1000": 0.001, "1 in 10M": 1e-7, "0.1 percent": 0.001, "1％": 0.01,
    "1000分之1": 0.001, "千分之一": 0.001, "百分之5": 0.05, "1分之1000": 1000, "1e-9": 1e-9, "%": NaN,
    "10%%": NaN, "1 in": NaN, "分之": NaN },
  sizeFrom: { "64 MiB": 2 ** 26, "64M": 64e6, "1,5G": 1.5e9, "100 bits": 13, "8 Mbit": 1e6, "8 Mibit": 2 ** 20,
    "10 megabytes": 1e7, "10 字节": 10, "512位": 64, "1.5 kB": 1500, "64 bytes": 64, "1B": 1, "1.000": NaN,
    "5 apples": NaN },
  timeFrom: { "80us": 80e-6, "1ms": 1e-3, "1,5 s": 1.5, "3毫秒": 3e-3, "80": NaN, "ms": NaN },
};

test("numbers are read as people write them, and never guessed", async () => {
  const page = await open();
  for (const [from, cases] of Object.entries(written)) {
    const found = await page.evaluate(([name, texts]) =>
      texts.map((text) => calyxPage.number[name](text)), [from, Object.keys(cases)]);
    Object.entries(cases).forEach(([text, wanted], i) => {
      const near = Number.isNaN(wanted) ? Number.isNaN(found[i])
        : Math.abs(found[i] - wanted) <= 1e-12 * wanted;
      assert.ok(near, `${from} "${text}": ${found[i]} instead of ${wanted}`);
    });
  }
  await close(page);
});

test("what is no number is reported, dims the old answer, and breaks nothing", async () => {
  const page = await open();
  const nonsense = ["-1", "1e400", "NaN", "Infinity", "0x10", "🌹", "0", "1e-400",
    "1/0", "10%%", "<b>1</b>", "9".repeat(10_000), "1 in", "__proto__"];
  for (const id of ["keys", "rate", "memory"]) {
    for (const text of nonsense) {
      await page.fill("#" + id, text);
      assert.deepEqual(await page.evaluate((field) => [
        document.getElementById("plan-error").textContent !== "",
        document.getElementById(field).getAttribute("aria-invalid"),
        document.getElementById("plan-result").inert, // old numbers are dimmed
      ], id), [true, "true", true], `${id} ${text.slice(0, 20)}`);
    }
    await page.fill("#" + id, "");
  }
  await paste(page, "#keys", "9");
  assert.equal(await page.getAttribute("#keys", "aria-invalid"), "true");
  await page.fill("#keys", "10M");
  await page.fill("#rate", "");
  assert.match(await page.locator("#plan-error").textContent(), /two of keys, rate and memory/);
  for (const id of ["store", "filter", "present", "keybytes"])
    for (const text of ["", "-1", "1e400", "🌹", "1e400s", "NaNs"]) {
      await page.locator("#" + id).evaluate((field, value) => {
        field.value = value;
        field.dispatchEvent(new Event("input"));
      }, text);
      assert.equal(await page.getAttribute("#" + id, "aria-invalid"), "true", `${id} ${text}`);
    }
  await page.fill("#rate", "1%");
  await compare(page, calyxJson("plan", "-n", "10M"));
  assert.ok(!await page.locator("#plan-result").evaluate((e) => e.inert));
  await close(page);
});

test("memory that is still being typed has no wrapped number in its errors", async () => {
  const page = await open("?n=1M");
  await page.fill("#memory", "6");
  assert.match(await page.textContent("#plan-error"), /takes 64 bytes, not 6/);
  assert.doesNotMatch(await page.textContent("main"), /18446744073709551615/);
  await close(page);
});

// The npm package beside JavaScript's Set: nanoseconds of processor time a key, the
// best of three rounds.
//
//   node bench/node.mjs PACKAGE [KEYS]       PACKAGE: build/npm/package/node.js
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";

const { Filter } = await import(pathToFileURL(resolve(process.argv[2])));
const KEYS = Number(process.argv[3] ?? 1e6);

const urls = (name) => Array.from({ length: KEYS }, (_, i) =>
  `https://example.org/${name}/${String(i).padStart(8, "0")}`.padEnd(33, "-"));

function best(call) {
  const times = [];
  for (let round = 0; round < 3; round++) {
    const start = process.cpuUsage();
    call();
    const { user, system } = process.cpuUsage(start);
    times.push(1e3 * (user + system) / KEYS);
  }
  return Math.min(...times).toFixed(0);
}

const texts = urls("in"), absent = urls("no");
const half = texts.map((text, i) => (i % 2 ? text : absent[i]));
const f = new Filter(KEYS, 0.01);
let found = 0;
const row = (what, add, has) => console.log(`| ${what} | ${add} | ${has} |`);

console.log(`${KEYS} texts of 33 bytes; half of the lookups find one\n`);
console.log("| | add, ns | has, ns |\n|---|---|---|");
row("Filter, many", best(() => f.addMany(texts)), best(() => f.hasMany(half)));
row("Filter, single", best(() => { for (const text of texts) f.add(text); }),
  best(() => { for (const text of half) found += f.has(text); }));
const exact = new Set(texts);
row("Set", best(() => new Set(texts)),
  best(() => { for (const text of half) found += exact.has(text); }));
if (found < KEYS) throw new Error("keys were lost");

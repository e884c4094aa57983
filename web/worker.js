// What takes long, done beside the page so that it stays responsive: growing a
// filter, the run of a million keys, reading files. The latest request of a
// sort is the one that counts; one that goes on for long looks after each step
// whether it still is.
import { start } from "calyx/library";
import { hasMany } from "calyx/remote";
import * as files from "./file.js";

let library = null;
const latest = {};

const breathe = () => new Promise((resolve) => setTimeout(resolve));

// ---- A filter that grows, because the number of keys was guessed wrong ----

async function grow(calyx, { kind, guess, rate, times }) {
  const filter = calyx.make({ kind, capacity: guess, fpr: rate, growth: 2 });
  try {
    const points = [];
    let keys = 0;
    for (const multiple of times) {
      const to = Math.round(multiple * guess);
      filter.addNumbers(keys, to - keys);
      keys = to;
      const { rate: now, bytes } = filter.describe();
      points.push({ rate: now, bits: 8 * bytes / keys });
    }
    return points;
  } finally {
    filter.free();
  }
}

// ---- A million keys ----

const STEPS = 50, STATIC_STEPS = 5; // a kind that cannot add is made anew at each
const LOOKUPS = 50000, ABSENT = 2 ** 40; // where absent keys begin
let filled = null; // the filter of the last run

async function run(calyx, { kind, keys, rate }, task) {
  filled?.free();
  filled = null;
  const adds = calyx.can(kind, "add"), steps = adds ? STEPS : STATIC_STEPS;
  const builder = adds ? null : calyx.builder({ kind, fpr: rate });
  let filter = adds ? calyx.make({ kind, capacity: keys, fpr: rate }) : null;
  const add = (from, n) => {
    if (adds) return filter.addNumbers(from, n);
    builder.addNumbers(from, n);
    filter?.free();
    filter = builder.finish();
  };
  const clock = (n, use) => {
    const begun = performance.now();
    const result = use();
    return [result, (performance.now() - begun) * 1e-3 / n]; // seconds a key
  };
  let whole = false;
  try {
    const plan = calyx.plan(kind, { keys, rate });
    for (let i = 0, from = 0; i < steps; i++) {
      const to = Math.round(keys * (i + 1) / steps), n = to - from;
      const [, time] = clock(adds ? n : to, () => add(from, n));
      const [passed, lookup] = clock(LOOKUPS, () =>
        filter.hasNumbers(ABSENT + i * LOOKUPS, LOOKUPS));
      from = to;
      task.news({ keys: to, lookups: LOOKUPS, measured: passed / LOOKUPS, add: time, lookup,
        expected: adds ? calyx.rateAt(kind, plan.bits, plan.probes, to) : plan.rate, most: plan.rate });
      await task.breathe();
      if (!task.current()) return null;
    }
    const lookups = 1e6;
    let passed = 0; // in pieces, so that the run can be stopped
    for (let i = 0; i < lookups; i += lookups / 10) {
      passed += filter.hasNumbers(2 * ABSENT + i, lookups / 10);
      await task.breathe();
      if (!task.current()) return null;
    }
    whole = true;
    filled = filter;
    return { measured: passed / lookups, passed, lookups, own: filter.describe().rate,
      lost: keys - filter.hasNumbers(0, keys), bytes: plan.bytes };
  } finally {
    builder?.free();
    if (!whole) filter?.free();
  }
}

// The filter of the last run, as a file.
async function encode() {
  return filled.encode();
}

// ---- A file ----

let held = null;

let stopped = new AbortController();

function leave() {
  stopped.abort();
  stopped = new AbortController();
  held?.layout?.free();
  held?.filter?.free();
  held = null;
}

async function open(calyx, values, task) {
  leave();
  const opened = await (values.url ? files.openUrl : files.open)(calyx, { ...values, signal: stopped.signal }, task);
  if (!opened) return null;
  if (!task.current()) opened.layout?.free();
  else held = opened;
  return opened.result;
}

async function lookup(calyx, { words }) {
  const of = held;
  if (of.whole) of.filter ??= calyx.decode(await files.readBytes(of.file, 0, of.file.size));
  const found = of.filter ? words.map((word) => of.filter.has(word)) : await hasMany(calyx, of, words);
  return { found, remote: files.traffic(of) };
}

// Whatever goes on of this sort is no longer the latest.
async function stop(calyx, { what }) {
  latest[what] = 0;
  if (what === "open") return leave();
  stopped.abort();
  stopped = new AbortController();
  if (held?.remote) held.remote.file.signal = stopped.signal;
}

const tasks = { grow, try: run, encode, open, lookup, stop };

onmessage = async ({ data: { id, what, values, module } }) => {
  library ??= start(module); // comes with the first request
  latest[what] = id;
  try {
    const calyx = await library;
    const task = {
      current: () => latest[what] === id,
      news: (news) => postMessage({ id, news }),
      breathe,
    };
    const answer = await tasks[what](calyx, values, task);
    postMessage({ id, answer });
  } catch (error) {
    const { message: text, status, what, values: about } = error;
    postMessage({ id, error: { text, status, what, about } });
  }
};

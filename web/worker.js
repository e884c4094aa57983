// What takes long, done beside the page so that it stays responsive: growing a
// filter, the run of a million keys, reading files. The latest question of a
// sort is the one that counts; one that goes on for long looks after each step
// whether it still is.
import { start } from "./calyx.js";
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

const STEPS = 50, ASKED = 50000, STRANGERS = 2 ** 40; // where strangers begin

async function run(calyx, { kind, keys, rate }, task) {
  const filter = calyx.make({ kind, capacity: keys, fpr: rate });
  const clock = (n, use) => {
    const start = performance.now();
    const result = use();
    return [result, (performance.now() - start) * 1e6 / n];
  };
  try {
    const plan = calyx.plan(kind, { keys, rate });
    let spent = 0;
    for (let i = 0, from = 0; i < STEPS; i++) {
      const to = Math.round(keys * (i + 1) / STEPS), n = to - from;
      const [, add] = clock(n, () => filter.addNumbers(from, n));
      const [passed, asks] = clock(ASKED, () =>
        filter.hasNumbers(STRANGERS + i * ASKED, ASKED));
      spent += add * n;
      from = to;
      task.news({ keys: to, measured: passed / ASKED, add, ask: asks,
        expected: calyx.rateAt(kind, plan.bits, plan.probes, to) });
      await task.breathe();
      if (!task.current()) return null;
    }
    const asked = 1e6;
    const [passed, asks] = clock(asked, () => filter.hasNumbers(2 * STRANGERS, asked));
    return { measured: passed / asked, passed, asked, ask: asks,
      lost: keys - filter.hasNumbers(0, keys), bytes: plan.bytes, add: spent / keys };
  } finally {
    filter.free();
  }
}

// ---- A file ----

let held = null;

async function open(calyx, values, task) {
  held?.layout?.free();
  held = null;
  const opened = await files.open(calyx, values, task);
  if (!opened) return null;
  if (!task.current()) opened.layout?.free();
  else held = opened;
  return opened.result;
}

async function askFile(calyx, { words }) {
  const of = held, found = [];
  for (const word of words) found.push(await files.has(calyx, of, word));
  return found;
}

// Whatever goes on of this sort is no longer the latest.
async function stop(calyx, { what }) {
  latest[what] = 0;
}

const tasks = { grow, try: run, open, ask: askFile, stop };

onmessage = async ({ data: { id, what, values, module } }) => {
  library ??= start(module); // comes with the first question
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
    postMessage({ id, error: { text: error.message, status: error.status } });
  }
};

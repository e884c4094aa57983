// What takes long, done beside the page so that it stays responsive: growing a
// filter, the run of a million keys, reading files. The latest question of a
// sort is the one that counts; one that goes on for long looks after each step
// whether it still is.
import { load } from "./calyx.js";

const library = load();
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

const tasks = { grow };

onmessage = async ({ data: { id, what, values } }) => {
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

// The page's end of the worker: ask(what, values, onNews) gives a promise of
// the answer. A later question of the same sort makes the worker drop the
// earlier one, whose promise is then never kept.
let worker = null, module = null;
let number = 0;
const waiting = new Map();

function start() {
  worker = new Worker(new URL("worker.js", import.meta.url), { type: "module" });
  worker.onmessage = ({ data: { id, news, answer, error } }) => {
    const asked = waiting.get(id);
    if (!asked) return;
    if (news) return asked.onNews?.(news);
    waiting.delete(id);
    if (error) asked.reject(Object.assign(new Error(error.text), error));
    else asked.resolve(answer);
  };
  worker.onerror = (event) => {
    for (const { reject } of waiting.values()) reject(new Error(event.message));
    waiting.clear();
  };
}

// Tell which compiled library to use, before the first question.
export function use(compiled) {
  module = compiled;
}

export function ask(what, values, onNews) {
  if (!worker) start();
  const id = ++number;
  for (const [other, asked] of waiting)
    if (asked.what === what) waiting.delete(other);
  return new Promise((resolve, reject) => {
    waiting.set(id, { what, resolve, reject, onNews });
    worker.postMessage({ id, what, values, module });
  });
}

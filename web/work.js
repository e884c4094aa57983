// The page's end of the worker: request(what, values, onNews) returns a promise
// of the answer. A later request of the same sort makes the worker drop the
// earlier one, whose promise is then never settled.
let worker = null, module = null;
let number = 0;
const waiting = new Map();

function start() {
  worker = new Worker(new URL("worker.js", import.meta.url), { type: "module" });
  worker.onmessage = ({ data: { id, news, answer, error } }) => {
    const request = waiting.get(id);
    if (!request) return;
    if (news) return request.onNews?.(news);
    waiting.delete(id);
    if (error) request.reject(Object.assign(new Error(error.text), error));
    else request.resolve(answer);
  };
  worker.onerror = (event) => {
    for (const { reject } of waiting.values()) reject(new Error(event.message));
    waiting.clear();
  };
}

// Which compiled library to use; before the first request.
export function use(compiled) {
  module = compiled;
}

// What was requested of this sort is not waited for any more.
export function drop(what) {
  for (const [id, older] of waiting)
    if (older.what === what) waiting.delete(id);
}

export function request(what, values, onNews) {
  if (!worker) start();
  const id = ++number;
  drop(what);
  return new Promise((resolve, reject) => {
    waiting.set(id, { what, resolve, reject, onNews });
    worker.postMessage({ id, what, values, module });
  });
}

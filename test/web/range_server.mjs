// A web server of another origin, for Inspect by URL: it sends ranges of the files
// in the folder of the tests.
//
// http://127.0.0.1:PORT/MODE/FILE; a mode is what is odd about the answers.
import { closeSync, existsSync, openSync, readSync, statSync } from "node:fs";
import { createServer } from "node:http";
import { basename, join } from "node:path";
import { after } from "node:test";
import { folder } from "./support.mjs";

// The version that is served; what was requested.
export const version = { tag: '"one"' };
export const seen = { requests: 0, bytes: 0, others: 0, hanging: 0, hangs: false };
const servers = [];

function bytesOf(path, from, to) {
  const bytes = Buffer.alloc(to - from), file = openSync(path, "r");
  readSync(file, bytes, 0, bytes.length, from);
  closeSync(file);
  return bytes;
}

const odd = {
  plain: {},
  "no-cors": { headers: { "access-control-allow-origin": undefined } },
  "no-ranges": { status: 200 },
  "hidden": { headers: { "access-control-expose-headers": undefined } },
  "no-version": { headers: { etag: undefined } },
  "by-date": { headers: { etag: undefined, "last-modified": "Tue, 01 Jul 2025 10:00:00 GMT",
    "access-control-expose-headers": undefined } },
  "other-range": { range: (from, to, size) => `bytes ${from + 64}-${to + 63}/${size + 64}` },
  short: { cut: 1 },
  long: { cut: -1 },
};

function answer(request, reply) {
  const [, mode, name] = request.url.split("/"), path = join(folder, basename(name));
  const { status = 206, headers = {}, range, cut = 0 } = odd[mode] ?? {};
  seen.requests++;
  if (mode === "hang" || (mode === "then-hang" && seen.hangs)) { // until the browser ends it
    seen.hanging++;
    return reply.on("close", () => seen.hanging--);
  }
  if (request.method !== "GET") seen.others++;
  const all = { "access-control-allow-origin": "*", "access-control-expose-headers": "Content-Range, ETag",
    etag: version.tag, ...headers };
  for (const [key, value] of Object.entries(all)) if (value) reply.setHeader(key, value);
  if (!existsSync(path)) return reply.writeHead(404).end();
  const { size } = statSync(path);
  const [first, last] = request.headers.range.slice(6).split("-").map(Number);
  const to = Math.min(last + 1, size);
  reply.setHeader("content-range", (range ?? ((a, b, n) => `bytes ${a}-${b - 1}/${n}`))(first, to, size));
  const bytes = bytesOf(path, first, to - cut); // after the end there are zeros
  seen.bytes += bytes.length;
  reply.writeHead(status).end(bytes);
}

export async function serveRanges() {
  const server = createServer(answer);
  await new Promise((listens) => server.listen(0, "127.0.0.1", listens));
  servers.push(server);
  return `http://127.0.0.1:${server.address().port}/`;
}
after(() => servers.forEach((server) => {
  server.closeAllConnections();
  server.close();
}));

// The first lines of the README in a browser, with the package as it is served.
//   in-browser.mjs SCRIPT
import { spawn } from "node:child_process";
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { extname } from "node:path";

const script = await readFile(process.argv[2], "utf8");
const { exports } = JSON.parse(await readFile("node_modules/calyx/package.json"));
const PAGE = `<!doctype html><p>loading</p>
<script type="importmap">{"imports": {"calyx": "/calyx/${exports["."].default}"}}</script>
<script>console.log = (...all) => (document.querySelector("p").textContent = "said " + all.join(" "));
addEventListener("error", (e) => (document.querySelector("p").textContent = "failed " + e.message));</script>
<script type="module">${script}</script>`;
const TYPES = { ".js": "text/javascript", ".wasm": "application/wasm" };

const server = createServer(async ({ url }, answer) => {
  try {
    const body = url === "/" ? PAGE : await readFile(`node_modules${url}`);
    answer.setHeader("Content-Type", TYPES[extname(url)] ?? "text/html").end(body);
  } catch {
    answer.writeHead(404).end();
  }
}).listen(0, "127.0.0.1", () => {
  const chromium = spawn("chromium", ["--headless", "--no-sandbox", "--disable-gpu",
    "--user-data-dir=profile", "--virtual-time-budget=600000", "--dump-dom",
    `http://127.0.0.1:${server.address().port}/`], { stdio: ["ignore", "pipe", "ignore"] });
  let dom = "";
  chromium.stdout.on("data", (data) => (dom += data));
  chromium.on("error", () => {
    console.log("ok 1 - the package in a browser # SKIP no chromium here");
    process.exit(0);
  });
  chromium.on("close", () => {
    const good = dom.includes("<p>said true false</p>");
    console.log(good ? "in a browser: true false" : dom);
    process.exit(good ? 0 : 1);
  });
});

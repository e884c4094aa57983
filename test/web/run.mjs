// All tests of the page, in one process and one browser. With names, such as
// "plan", those files alone. Exit 77 without a page to test, as web/build does.
import { existsSync, readdirSync } from "node:fs";

const page = process.env.CALYX_WEB + "/site/index.html";
if (!existsSync(page)) {
  console.error(`SKIPPED [1] the page: no ${page}; web.build says why`);
  process.exit(77);
}
await import("./support.mjs");

const wanted = process.argv.slice(2);
for (const file of readdirSync(new URL(".", import.meta.url)))
  if (file.endsWith(".mjs") && !["run.mjs", "support.mjs"].includes(file) &&
    (!wanted.length || wanted.includes(file.slice(0, -4))))
    await import("./" + file);

// All tests of the page, in one process and one browser. With names, such as
// "plan", those files alone.
import { readdirSync } from "node:fs";
import "./support.mjs";

const wanted = process.argv.slice(2);
for (const file of readdirSync(new URL(".", import.meta.url)))
  if (file.endsWith(".mjs") && !["run.mjs", "support.mjs"].includes(file) &&
    (!wanted.length || wanted.includes(file.slice(0, -4))))
    await import("./" + file);

// The package in Node.js: the library lies beside this file.
import { readFile } from "node:fs/promises";
import { setup } from "./filter.js";

await setup(await WebAssembly.compile(await readFile(new URL("calyx.wasm", import.meta.url))));
export { Builder, CalyxError, Filter, RemoteError, RemoteFilter, abilities, hashes, kinds, plan, version } from "./filter.js";

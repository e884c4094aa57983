// The package in Node.js: the library lies beside this file. Nothing waits, so that
// require("calyx") works, too.
import { webcrypto } from "node:crypto";
import { readFileSync } from "node:fs";
import { startNow } from "./calyx.js";
import { setup } from "./filter.js";

setup(startNow(new WebAssembly.Module(readFileSync(new URL("calyx.wasm", import.meta.url)))), webcrypto);
export { Builder, CalyxError, Filter, PlainFilter, RemoteError, RemoteFilter, abilities, hashes, kinds, plan, version } from "./filter.js";

// The package in a browser, or in Deno: the library is fetched from beside this file.
import { start } from "./calyx.js";
import { setup } from "./filter.js";

setup(await start(await WebAssembly.compileStreaming(fetch(new URL("calyx.wasm", import.meta.url)))), crypto);
export { Builder, CalyxError, Filter, RemoteError, RemoteFilter, abilities, hashes, kinds, plan, version } from "./filter.js";

// The package in a browser, or in Deno: the library is fetched from beside this file.
import { setup } from "./filter.js";

await setup(await WebAssembly.compileStreaming(fetch(new URL("calyx.wasm", import.meta.url))));
export { Builder, CalyxError, Filter, RemoteError, RemoteFilter, abilities, hashes, kinds, plan, version } from "./filter.js";

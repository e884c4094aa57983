// Fetches the package's calyx.wasm, which lies beside the page, compressed.

export async function load() {
  const url = new URL("calyx.wasm.gz", import.meta.url);
  const answer = await fetch(url);
  if (!answer.ok) throw new Error(`${url}: ${answer.status}`);
  const bytes = await answer.arrayBuffer();
  const packed = new Uint8Array(bytes)[0] === 0x1f; // some hosts unpack it
  return WebAssembly.compile(packed ? await unpack(bytes) : bytes);
}

function unpack(bytes) {
  const stream = new Blob([bytes]).stream();
  return new Response(stream.pipeThrough(new DecompressionStream("gzip"))).arrayBuffer();
}

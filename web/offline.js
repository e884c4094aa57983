// Keeps what was loaded, so that the page works without network from then on.
// The network comes first: nobody is kept on an old page. Which build of the
// library the page needs is in this script's own address.
const KEPT = "calyx";
const build = new URLSearchParams(location.search).get("build");
const files = ["./", "style.css", "uPlot.min.css", "uPlot.iife.min.js", "theme.js",
  "main.js", "worker.js", `calyx-${build}.wasm.gz`, "icon.svg"];

addEventListener("install", (event) => {
  event.waitUntil(caches.open(KEPT).then((kept) => kept.addAll(files)));
  skipWaiting();
});

addEventListener("activate", (event) => event.waitUntil(clients.claim()));

addEventListener("fetch", (event) => {
  if (event.request.method !== "GET") return;
  event.respondWith((async () => {
    const kept = await caches.open(KEPT);
    try {
      const answer = await fetch(event.request);
      const { origin, pathname } = new URL(event.request.url);
      if (answer.ok) await kept.put(origin + pathname, answer.clone());
      return answer;
    } catch (error) {
      const found = await kept.match(event.request, { ignoreSearch: true });
      if (found) return found;
      throw error;
    }
  })());
});

// Stores what was loaded, so that the page works without network from then on.
// The network comes first: nobody stays on an old page.
const CACHE = "calyx";
const files = ["./", ...FILES]; // web/build knows them

addEventListener("install", (event) => {
  event.waitUntil(caches.open(CACHE).then((cache) => cache.addAll(files)));
  skipWaiting();
});

addEventListener("activate", (event) => event.waitUntil(clients.claim()));

addEventListener("fetch", (event) => {
  const { method, url, headers } = event.request;
  if (method !== "GET" || headers.has("range") || new URL(url).origin !== location.origin) return;
  event.respondWith((async () => {
    const cache = await caches.open(CACHE);
    try {
      const answer = await fetch(event.request);
      const { origin, pathname } = new URL(url);
      if (answer.ok) await cache.put(origin + pathname, answer.clone());
      return answer;
    } catch (error) {
      const found = await cache.match(event.request, { ignoreSearch: true });
      if (found) return found;
      throw error;
    }
  })());
});

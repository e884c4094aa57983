// A page that knows malicious links, with no program on the server: bad.calyx, the
// package "calyx" and this file are all that it serves.
import { Filter, RemoteFilter } from "./calyx/browser.js";

const LIST = new URL("bad.calyx", location);
const $ = (id) => document.getElementById(id);

// By ranges: a lookup reads the 64 bytes that it needs.
const remote = await RemoteFilter.open(LIST);

// Offline: all of it, once. The library checks it, and answers here.
let local = null;
async function download() {
  const answer = await fetch(LIST);
  if (!answer.ok) throw new Error(`${LIST}: ${answer.status}`);
  return (local = Filter.fromBytes(new Uint8Array(await answer.arrayBuffer())));
}

const check = async (links, offline) => (offline ? local ?? await download() : remote).hasMany(links);

function showTraffic() {
  const { requests, bytes } = remote.traffic;
  $("traffic").textContent = `Read by ranges so far: ${bytes} bytes, in ${requests} requests.`;
}

document.querySelector("form").onsubmit = async (event) => {
  event.preventDefault();
  try {
    const [found] = await check([$("link").value.trim()], $("offline").checked);
    $("answer").className = found ? "bad" : "good";
    $("answer").textContent = found ? "It may be malicious." : "It is certainly not on the list.";
  } catch (error) { // no answer is not a no
    $("answer").className = "bad";
    $("answer").textContent = `There is no answer. ${error.message}`;
  }
  showTraffic();
};
showTraffic();

// For the story: ?links=FILE has the page check each line of FILE, in both ways, and
// report as JSON.
const file = new URLSearchParams(location.search).get("links");
if (file) {
  const links = (await (await fetch(file)).text()).trimEnd().split("\n");
  const byRanges = await check(links, false), { traffic } = remote;
  await download();
  const before = performance.getEntriesByType("resource").length;
  const offline = local.hasMany(links);
  const requests = performance.getEntriesByType("resource").length - before;
  $("report").textContent = JSON.stringify({ byRanges: byRanges.join(""), traffic,
    offline: offline.join(""), offlineRequests: requests });
}

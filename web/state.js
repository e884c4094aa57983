// What the page shows is in its address, so that it can be sent as a link.
// Values are short texts; what is empty or too long for a link is left out.

const LONGEST = 2000;
const state = new URLSearchParams(location.search);
let timer = 0;

export function get(name, usual = "") {
  return state.get(name) ?? usual;
}

export function set(name, value) {
  if (value && value.length <= LONGEST) state.set(name, value);
  else state.delete(name);
  clearTimeout(timer); // browsers refuse many changes in a short time
  timer = setTimeout(write, 150);
}

function write() {
  const query = state.toString();
  history.replaceState(null, "", query ? "?" + query : location.pathname);
}

addEventListener("pagehide", write);

// What the page shows is in its address, so that it can be sent as a link, and
// so that Back returns to the part that was shown before. Values are short
// texts; what is empty or too long for a link is left out.

export const LONGEST = 4000; // letters of a value
let state = new URLSearchParams(location.search);
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

const address = () => {
  const query = state.toString();
  return query ? "?" + query : location.pathname;
};

function write() {
  clearTimeout(timer);
  if (address() !== location.search) history.replaceState(history.state, "", address());
}

// The address as it is now, for others.
export function link(changes = {}) {
  write();
  const url = new URL(location.href);
  for (const [name, value] of Object.entries(changes))
    if (value) url.searchParams.set(name, value);
    else url.searchParams.delete(name);
  return url.href;
}

// Another entry in the history; what changes next goes there. `change`: not another
// part, but what undo() takes back.
export function turn(change = false) {
  write();
  history.pushState({ change }, "", address());
}

export function undo() {
  if (history.state?.change) history.back();
  return !!history.state?.change;
}

export function onBack(show) {
  addEventListener("popstate", () => {
    clearTimeout(timer);
    state = new URLSearchParams(location.search);
    show();
  });
}

addEventListener("pagehide", write);

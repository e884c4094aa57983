// Small helpers to build the page with. Text goes in as text, never as markup.

export const $ = (id) => document.getElementById(id);

function fill(element, attributes, children) {
  for (const [key, value] of Object.entries(attributes)) {
    if (key === "class") element.setAttribute("class", value);
    else if (key.startsWith("on")) element[key] = value;
    else if (value !== false) element.setAttribute(key, value === true ? "" : value);
  }
  element.append(...children);
  return element;
}

export const make = (name, attributes = {}, ...children) =>
  fill(document.createElement(name), attributes, children);

export const svg = (name, attributes = {}, ...children) =>
  fill(document.createElementNS("http://www.w3.org/2000/svg", name), attributes, children);

// A number with its exact value beside the one for people.
export function data(value, text) {
  return make("data", { value: String(value) }, text);
}

export function say(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

// What somebody typed, short enough to be quoted.
export function quoted(text) {
  const all = [...text.slice(0, 64)];
  return all.length > 30 ? all.slice(0, 30).join("") + "…" : all.join("");
}

// Offers bytes as a file.
export function download(bytes, name) {
  const url = URL.createObjectURL(new Blob([bytes], { type: "application/octet-stream" }));
  make("a", { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 10000);
}

export const still = () => matchMedia("(prefers-reduced-motion: reduce)").matches;

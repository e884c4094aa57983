// Small helpers to build the page with. Text goes in as text, never as markup.

export const $ = (id) => document.getElementById(id);

export function make(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key === "class") element.className = value;
    else if (key.startsWith("on")) element[key] = value;
    else if (value !== false) element.setAttribute(key, value === true ? "" : value);
  }
  element.append(...children);
  return element;
}

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

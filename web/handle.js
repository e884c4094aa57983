// Numbers that are handles: drag them, or use the arrow keys. In the page they are
// <span class="handle" data-handle="n">; all handles of a name show one number.

const PIXELS = 9; // that the pointer moves for one step

// `numbers` are {n: {values, get, set, text, label}}: `values` are ascending, and `get`
// returns one of them, or a number that is nearest to one.
export function wireHandles(root, numbers) {
  for (const handle of root.querySelectorAll("[data-handle]")) {
    const number = numbers[handle.dataset.handle];
    handle.tabIndex = 0;
    handle.setAttribute("role", "slider");
    handle.onkeydown = (event) => key(event, number);
    handle.onpointerdown = (event) => drag(event, handle, number);
  }
  showHandles(root, numbers);
}

export function showHandles(root, numbers) {
  for (const handle of root.querySelectorAll("[data-handle]")) {
    const { values, get, text, label } = numbers[handle.dataset.handle], value = get(), shown = text(value);
    if (handle.textContent !== shown) handle.textContent = shown;
    for (const [name, now] of Object.entries({ valuemin: values[0], valuemax: values.at(-1), valuenow: value, valuetext: shown, label: label() }))
      handle.setAttribute("aria-" + name, now);
  }
}

const nearest = (values, value) =>
  values.reduce((best, v, i) => (Math.abs(v - value) < Math.abs(values[best] - value) ? i : best), 0);

function move({ values, get, set }, from, by) {
  const to = values[Math.min(values.length - 1, Math.max(0, from + by))];
  if (to !== get()) set(to);
}

function key(event, number) {
  const by = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1, PageUp: 10, PageDown: -10,
    Home: -Infinity, End: Infinity }[event.key];
  if (!by) return;
  event.preventDefault();
  move(number, nearest(number.values, number.get()), by);
}

function drag(event, handle, number) {
  const from = nearest(number.values, number.get()), x = event.clientX;
  event.preventDefault(); // no text is selected
  handle.focus({ preventScroll: true });
  handle.setPointerCapture(event.pointerId);
  handle.onpointermove = (moved) => move(number, from, Math.round((moved.clientX - x) / PIXELS));
  handle.onpointerup = handle.onpointercancel = () => (handle.onpointermove = null);
}

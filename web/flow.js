// Cache penetration as a picture: requests run from clients to a filter and on
// to a database, or stop at the filter. The filter is a real one.
import { make, still, svg } from "./dom.js";

const KEYS = 200, RATE = 0.05; // a high rate, so that false positives are seen
const EVERY = 450, TRAVEL = 900; // ms
const PRESENT = 0.25; // share of requests for keys that are there
const SKETCH = 200; // requests that are counted at once where nothing may move
const gates = { client: 40, filter: 300, store: 560 };

export class Flow {
  constructor(element, text) {
    this.element = element;
    this.text = text;
    this.on = true; // is the filter in use?
    this.timer = 0;
    this.reset();
  }

  ready(calyx) {
    const kind = calyx.addable()[0];
    this.filter = calyx.make({ kind, capacity: KEYS, fpr: RATE });
    for (let i = 0; i < KEYS; i++) this.filter.add("user:" + i);
  }

  reset() {
    this.counts = { all: 0, stopped: 0, found: 0, vain: 0 };
    this.number = 0;
  }

  get runs() {
    return this.timer > 0;
  }

  // Requests are numbers, spread by a multiplication so that the story is the
  // same each time.
  request() {
    const n = ++this.number;
    const present = (n * 0.618) % 1 < PRESENT;
    const key = "user:" + (present ? n * 7 % KEYS : 1e6 + n * 7919);
    const passes = !this.on || this.filter.has(key);
    this.counts.all++;
    if (!passes) this.counts.stopped++;
    else if (present) this.counts.found++;
    else this.counts.vain++;
    return { key, sort: !passes ? "no" : present ? "maybe" : this.on ? "false" : "vain" };
  }

  update(out) {
    this.out = out;
    this.draw();
    if (still()) {
      if (!this.counts.all) for (let i = 0; i < SKETCH; i++) this.request();
      this.count();
    } else if (!this.timer) this.start();
  }

  toggle() {
    if (this.timer) this.stop();
    else this.start();
  }

  start() {
    if (!this.filter) return;
    this.stop();
    this.timer = setInterval(() => this.send(), EVERY);
  }

  stop() {
    clearInterval(this.timer);
    this.timer = 0;
  }

  draw() {
    const box = (x, name, extra) => svg("g", { class: "gate " + extra },
      svg("rect", { x: x - 52, y: 58, width: 104, height: 64, rx: 12 }),
      svg("text", { x, y: 95 }, this.text("flow." + name)));
    this.dots = svg("g");
    this.picture = svg("svg", { viewBox: "0 0 640 180", role: "img",
      "aria-label": this.text("flow.label"), class: "flow" },
    svg("line", { class: "road", x1: gates.client, x2: gates.store, y1: 90, y2: 90 }),
    this.dots, box(gates.client + 20, "client", ""), box(gates.filter, "filter", this.on ? "on" : "off"),
    box(gates.store + 10, "store", "store"));
    const box2 = make("input", { type: "checkbox", id: "flow-on" });
    box2.checked = this.on;
    box2.onchange = () => {
      this.on = box2.checked;
      this.reset();
      this.update(this.out);
    };
    this.table = make("div", { class: "tally" });
    this.element.replaceChildren(this.picture,
      make("label", { class: "check" }, box2, " ", this.text("flow.on")), this.table);
    this.count();
  }

  count() {
    const { all, stopped, found, vain } = this.counts;
    const tile = (name, n, sort) => make("div", { class: "tile v-" + sort },
      make("b", {}, String(n)), make("span", {}, this.text("flow." + name)));
    this.table?.replaceChildren(tile("all", all, "none"), tile("stopped", stopped, "no"),
      tile("found", found, "maybe"), tile("vain", vain, this.on ? "false" : "lost"));
    if (this.out) {
      this.out.dataset.verdict = "";
      this.out.textContent = this.text(this.on ? "flow.with" : "flow.without",
        { x: found + vain, y: all, z: vain });
    }
  }

  send() {
    if (!this.element.isConnected || this.element.hidden) return this.stop();
    const { key, sort } = this.request();
    const end = sort === "no" ? gates.filter - 60 : gates.store - 50;
    const dot = svg("g", { class: "dot v-" + sort }, svg("circle", { r: 7 }),
      svg("text", { y: -12 }, key));
    this.dots.append(dot);
    const begun = performance.now(), from = gates.client + 76;
    const frame = (now) => {
      const share = Math.min(1, (now - begun) / TRAVEL);
      dot.setAttribute("transform", `translate(${from + (end - from) * share} ${
        sort === "no" && share > 0.8 ? 90 + (share - 0.8) * 250 : 90})`);
      if (share < 1 && dot.isConnected) return requestAnimationFrame(frame);
      dot.remove();
      this.count();
    };
    requestAnimationFrame(frame);
  }
}

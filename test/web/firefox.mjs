// The main road in Firefox, Debian's, which is driven by its own protocol,
// Marionette: JSON over a socket, each message with its length before it.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { test } from "node:test";
import { serveRanges } from "./range_server.mjs";
import { calyx, calyxJson, folder, same, serve } from "./support.mjs";

const WAIT = 120000; // ms; so a test that hangs fails

class Firefox {
  // Firefox writes the port that it chose into its profile.
  static async start() {
    const program = ["/usr/bin/firefox-esr", "/usr/bin/firefox"].find(existsSync);
    assert.ok(program, "no firefox-esr here; 'dev/install-packages web' installs it");
    const firefox = new Firefox();
    firefox.profile = mkdtempSync(join(folder, "firefox-"));
    writeFileSync(join(firefox.profile, "user.js"), [
      ["marionette.port", 0], ["ui.prefersReducedMotion", 1], ["intl.accept_languages", "en"],
      ["datareporting.policy.dataSubmissionEnabled", false], ["app.update.enabled", false],
      ["toolkit.telemetry.enabled", false], ["browser.shell.checkDefaultBrowser", false],
    ].map(([name, value]) => `user_pref("${name}", ${JSON.stringify(value)});\n`).join(""));
    firefox.process = spawn(program, ["--marionette", "--headless", "--no-remote",
      "--profile", firefox.profile], { stdio: "ignore", env: { ...process.env, HOME: folder } });
    const port = await firefox.until(() => {
      const path = join(firefox.profile, "MarionetteActivePort");
      return existsSync(path) && Number(readFileSync(path, "utf8"));
    }, "its port");
    firefox.socket = connect(port, "127.0.0.1");
    firefox.socket.on("data", (bytes) => firefox.receive(bytes));
    firefox.socket.on("error", () => {});
    await firefox.until(() => firefox.greeted, "a greeting");
    await firefox.send("WebDriver:NewSession", {});
    return firefox;
  }

  buffer = Buffer.alloc(0);
  waiting = new Map();
  number = 0;

  receive(bytes) {
    this.buffer = Buffer.concat([this.buffer, bytes]);
    for (let colon; (colon = this.buffer.indexOf(":")) > 0; ) {
      const size = Number(this.buffer.subarray(0, colon)), end = colon + 1 + size;
      if (this.buffer.length < end) return;
      const message = JSON.parse(this.buffer.subarray(colon + 1, end));
      this.buffer = this.buffer.subarray(end);
      if (!Array.isArray(message)) {
        this.greeted = true;
        continue;
      }
      const [, id, error, result] = message, { resolve, reject } = this.waiting.get(id);
      if (error) reject(new Error(error.message));
      else resolve(result);
    }
  }

  send(command, values) {
    const id = ++this.number, text = JSON.stringify([0, id, command, values]);
    return new Promise((resolve, reject) => {
      this.waiting.set(id, { resolve, reject });
      this.socket.write(`${Buffer.byteLength(text)}:${text}`);
    });
  }

  async until(found, what) {
    for (const begun = Date.now(); Date.now() - begun < WAIT; ) {
      const value = await found();
      if (value) return value;
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    throw new Error(`Firefox: waited in vain for ${what}`);
  }

  visit(url) {
    return this.send("WebDriver:Navigate", { url });
  }

  // Run a function in the page.
  async run(code, ...values) {
    const script = `return (${code})(...arguments)`;
    return (await this.send("WebDriver:ExecuteScript", { script, args: values })).value;
  }

  wait(code, ...values) {
    return this.until(() => this.run(code, ...values), String(code));
  }

  async stop() {
    this.socket?.destroy();
    const ended = new Promise((resolve) => this.process.on("exit", resolve));
    this.process.kill();
    await ended;
    rmSync(this.profile, { recursive: true, force: true });
  }
}

test("Firefox plans, shows bits, runs keys and inspects as Chromium does", async () => {
  const at = await serve();
  const firefox = await Firefox.start();
  try {
    const go = async (query) => {
      await firefox.visit(at + query);
      await firefox.wait(() => "ready" in document.documentElement.dataset);
    };
    const text = (id) => firefox.run((each) => document.getElementById(each).textContent, id);
    const click = (id) => firefox.run((each) => document.getElementById(each).click(), id);

    await go("?n=10M&p=1%25");
    const plan = calyxJson("plan", "-n", "10M", "-p", "1%");
    assert.equal(await text("run-build"), plan.build);
    const bytes = await firefox.run(() => Number(document.querySelector("#kind-cards data").value));
    same(bytes, plan.kinds[0].bytes, "memory");
    await firefox.wait(() => document.querySelector("#chart-size path.line"));
    assert.ok(await firefox.run(() => document.documentElement.scrollWidth <= innerWidth));

    await go("?part=see&see=flat&do=%2Bviolet");
    const bits = await firefox.run(() => [...document.querySelectorAll("#probe-table tr[data-bit]")]
      .map((row) => row.dataset.bit));
    assert.deepEqual(bits, ["99", "5", "99", "81"]);

    await go("?at=false-positive");
    await firefox.wait(() => document.getElementById("stage-verdict").dataset.verdict === "false");

    await go("?part=try&tn=20000");
    await firefox.wait(() => document.querySelector('[data-fact="try.lost"]'));
    assert.equal(await firefox.run(() =>
      document.querySelector('[data-fact="try.lost"] data').value), "0");

    await click("tab-inspect");
    await click("example");
    await firefox.wait(() => document.getElementById("inspect-say").dataset.verdict === "good");

    writeFileSync(join(folder, "flowers"), "rose\niris\n");
    calyx("build", "-n", "1M", "-p", "1e-6", "-o", join(folder, "flowers.calyx"), "flowers");
    await firefox.run((url) => {
      document.getElementById("url").value = url;
      document.getElementById("ask").value = "rose\ntulip";
      document.querySelector("#url-form button").click();
    }, await serveRanges() + "plain/flowers.calyx");
    await firefox.wait(() => document.getElementById("inspect-say").dataset.verdict !== "good" &&
      document.getElementById("inspect-say").dataset.verdict);
    assert.equal(await firefox.run(() => document.getElementById("inspect-say").dataset.verdict), "remote");
    await firefox.run(() => document.querySelector("#ask-form button").click());
    await firefox.wait(() => document.querySelectorAll("#answers [data-found]").length === 2);
    assert.deepEqual(await firefox.run(() => [...document.querySelectorAll("#answers [data-found]")]
      .map((each) => each.dataset.found)), ["true", "false"]);
    await firefox.run(() => history.back());
    await firefox.wait(() => !document.getElementById("try").hidden);
  } finally {
    await firefox.stop();
  }
});

// Looks at the pages of `llmbench history`, of a folder of 60 runs, and of two runs side by side, and
// asks them what a person would ask.
//   node history.mjs CHROMIUM LLMBENCH REPORT    a report directory
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const require = createRequire(path.join(process.cwd(), "here.js"));  // packages are in the build
const { chromium } = require("playwright-core");
const axe = fs.readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");

const [executablePath, program, report] = process.argv.slice(2);
const cohort = "3fa9c1d2e4b7a605";
const date = i => new Date(Date.UTC(2026, 2, 1 + i)).toISOString().slice(0, 10);
/** Runs differ by 0.6 %, the same every time and as if at random. */
const noise = i => { const x = 43758.5453 * Math.sin(12.9898 * i); return 1 + 0.02 * (x - Math.floor(x) - 0.5); };

/** Run i: a step of -6 % at run 38, a change of driver at 25, one run far off at 29. */
function run(i) {
  const level = 0.0131 * (i < 38 ? 1 : 0.94) * noise(i) * (i === 29 ? 1.15 : 1);
  const repeats = scale => [0.996, 1, 1.005].map(r => Number((scale * level * r).toPrecision(6)));
  return { schema: "llmbench/history/1", id: `run${i}.1`, at: `${date(i)}T02:15:04Z`, gate: "chat <b>",
    cohort, commit: String(i).padStart(12, "0"),
    watched: { driver: i < 25 ? "565.57" : "570.86", server: "vLLM 0.33.0" }, outcome: "passed",
    values: { "mean(tpot)": repeats(1), "output_throughput": repeats(80000) } };
}
fs.rmSync("history", { recursive: true, force: true });
fs.mkdirSync("history/2026", { recursive: true });
const runs = Array.from({ length: 60 }, (_, i) => run(i));
fs.writeFileSync("history/2026/all.jsonl", runs.map(n => JSON.stringify(n) + "\n").join(""));
const env = { ...process.env, LLMBENCH_HISTORY_DIR: "history", USER: "anna" };
const tool = (...args) => execFileSync(program, ["history", ...args], { env });
tool("--leave-out", "run29.1", "--why", "the node was shared");
tool("--accept", "chat <b>", "--at", date(38), "--why", "vLLM 0.33");
tool("--page", "history/page.html", "--commits", "https://a.test/commit/");

const url = pathToFileURL(path.resolve("history/page.html")).href;
const browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });
try {
  for (const colorScheme of ["light", "dark"]) {
    const page = await browser.newPage({ colorScheme, viewport: { width: 1280, height: 900 } });
    const wrongs = [];
    page.on("console", m => { if (m.type() !== "log") wrongs.push(m.text()); });
    page.on("request", r => { if (r.url() !== url) wrongs.push("request: " + r.url()); });
    await page.goto(url);
    assert.equal(await page.locator("h2").innerText(), "chat <b>");
    const plots = await page.locator("svg.plot").evaluateAll(all => all.map(svg => ({
      runs: svg.querySelector(".cloud.c").getAttribute("d").split("M").length - 1,
      repeats: svg.querySelector(".cloud.r").getAttribute("d").split("M").length - 1,
      out: svg.querySelectorAll(".out").length, steps: svg.querySelectorAll(".step").length,
      changes: svg.querySelectorAll(".changed").length, bands: svg.querySelectorAll(".band").length,
      levels: svg.querySelectorAll(".level").length,
      outside: [...svg.querySelectorAll("circle, path, polyline, text")].filter(e => {
        const b = e.getBoundingClientRect(), all = svg.getBoundingClientRect();
        return b.left < all.left - 1 || b.right > all.right + 1 || b.top < all.top - 1 ||
          b.bottom > all.bottom + 1;
      }).map(e => e.outerHTML) })));
    assert.equal(plots.length, 2);
    for (const p of plots) {
      assert.deepEqual([p.runs, p.out, p.repeats, p.outside], [59, 1, 180, []]);
      assert.deepEqual([p.steps, p.levels, p.bands, p.changes], [1, 2, 1, 1]);
    }
    const plot = page.locator("svg.plot").first(), { width: drawn } = await plot.boundingBox();
    await plot.hover({ position: { x: drawn * 60 / 300, y: 50 } });  // near the second run
    await plot.hover({ position: { x: drawn * 61 / 300, y: 50 } });
    assert.match(await page.locator("#tip").innerText(), /^2026-03-0[1-3], 00000000\n13\.\d ms, repeats 1/);
    assert.equal(await page.locator("tbody tr").count(), 60);
    const rows = await page.locator("tbody tr").allInnerTexts();
    assert.match(rows[59 - 29], /leave_out: the node was shared \(anna\)/);
    assert.match(rows[59 - 38], /accept: vLLM 0\.33 \(anna\)/);
    assert.match(rows[59 - 25], /driver 565\.57 -> 570\.86/);
    assert.equal(await page.locator("tbody a").first().getAttribute("href"),
      "https://a.test/commit/" + runs[59].commit);
    for (const width of [320, 400, 768, 1280]) {
      await page.setViewportSize({ width, height: 800 });
      const wide = await page.evaluate(() => document.documentElement.scrollWidth);
      assert.ok(wide <= width, `${wide} pixels wide at ${width}`);
    }
    await page.evaluate(axe);
    const { violations } = await page.evaluate(() => globalThis.axe.run());
    assert.deepEqual(violations.map(v => `${v.id}: ${v.nodes[0].html}`), []);
    assert.deepEqual(wrongs, []);
    await page.close();
  }

  execFileSync(program, ["show", report, report, "--page", "history/pair.html"], { env });
  const pair = await browser.newPage();
  await pair.goto(pathToFileURL(path.resolve("history/pair.html")).href);
  // Only limits are dashed. Run A is broad, so that both are seen where they are the same.
  const dashed = await pair.locator("svg.plot *").evaluateAll(all => [...new Set(all
    .filter(e => getComputedStyle(e).strokeDasharray !== "none").map(e => e.getAttribute("class")))]);
  assert.deepEqual(dashed, ["limit"]);
  for (const plot of await pair.locator("svg.plot").all()) {
    const width = style => plot.locator(`polyline.${style}`).evaluateAll(
      all => all.map(e => parseFloat(getComputedStyle(e).strokeWidth)));
    const [a, b] = [await width("b1"), await width("c1")];
    assert.ok(a.length === 1 && b.length === 1 && a[0] > 1.5 * b[0], `${a} and ${b}`);
  }
} finally {
  await browser.close();
}
console.log("ok: the history of 60 runs, two runs side by side");

// Looks at the page of ci/history.cpp: makes the results of 25 commits out of one, and asks
// the page what a person would ask it.
//   node history.mjs CHROMIUM LLMBENCH_HISTORY RESULT_JSON
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const require = createRequire(path.join(process.cwd(), "here.js"));  // packages are in the build
const { chromium } = require("playwright-core");
const axe = fs.readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");

const [executablePath, program, model] = process.argv.slice(2);
const one = JSON.parse(fs.readFileSync(model, "utf8"));
const hash = i => String(i).padStart(2, "0") + "c0ffee".padEnd(38, "0");

/** Run i: the first objective drifts, jumps in runs 10 and 11, and run 17 is invalid. */
function result(i) {
  const gates = structuredClone(one.gates.slice(0, 2));
  const slo = gates[0].slos[0];
  const factor = (1 + 0.01 * i) * (i === 10 || i === 11 ? 1.5 : 1);
  slo.estimate = 0.08 * factor;
  slo.interval = [0.075 * factor, 0.085 * factor];
  slo.verdict = slo.interval[0] > slo.limit ? "fail" : slo.interval[1] > slo.limit ? "inconclusive"
    : "pass";
  if (i === 17) {
    slo.verdict = "invalid";
    slo.estimate = 40;
    slo.reason = "client: it sent late";
  }
  gates[0].outcome = { fail: "failed", invalid: "invalid" }[slo.verdict] ?? "passed";
  const day = String(i + 1).padStart(2, "0");
  const environment = { ...one.environment, started_at: `2026-03-${day}T03:04:05Z`, commit: hash(i) };
  return { ...one, environment, gates };
}
fs.rmSync("history", { recursive: true, force: true });
fs.mkdirSync("history");
const files = [];
for (let i = 0; i < 25; i++) {
  files.push(`history/${i}.json`);
  fs.writeFileSync(files[i], JSON.stringify(result(i)));
}
execFileSync(program, ["--page", "history/page.html", "--commits", "https://a.test/commit/",
  "--smaller", "history/smaller.json", "--bigger", "history/bigger.json", ...files]);

// What the action reads: the newest run, by name, with the errors as something that is not 0.
const entries = name => JSON.parse(fs.readFileSync(`history/${name}.json`, "utf8"));
const first = entries("smaller")[0];
assert.equal(first.name, "chat stays interactive: mean(ttft) <= 100 ms");
assert.deepEqual([first.unit, first.range], ["ms", "\u00B1 6.2"]);
assert.ok(Math.abs(first.value - 99.2) < 1e-6);
assert.ok(entries("smaller").every(e => !e.name.includes("error_rate")));
assert.deepEqual(entries("bigger").map(e => [e.name.split(": ").at(-1), e.value]),
  [["answered", 100], ["answered", 100]]);

const url = pathToFileURL(path.resolve("history/page.html")).href;
const browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });
try {
  for (const colorScheme of ["light", "dark"]) {
    const page = await browser.newPage({ colorScheme, viewport: { width: 1280, height: 900 } });
    const wrongs = [];
    page.on("console", m => { if (m.type() !== "log") wrongs.push(m.text()); });
    page.on("request", r => { if (r.url() !== url) wrongs.push("request: " + r.url()); });
    await page.goto(url);
    const lines = await page.locator("ol > li").allInnerTexts();
    assert.equal(lines.length, 2);
    assert.match(lines[0], /^slowly[^]*mean\(ttft\)[^]*\+24 %\s+80 ms → 99.2 ms/);
    assert.match(lines[1], /^10c0ffee[^]*mean\(ttft\)[^]*\+51 %\s+87.2 ms → 132 ms[^]*fail, mended/);
    assert.equal(await page.locator("li a").last().getAttribute("href"),
      "https://a.test/commit/" + hash(12));
    await page.locator("li a[href^='#']").last().click();
    assert.equal(await page.evaluate(() =>
      document.querySelector(":target figcaption code").textContent), "mean(ttft) <= 100 ms");
    const plots = await page.locator("svg.plot").evaluateAll(all => all.map(svg => ({
      words: svg.getAttribute("aria-label"), marks: svg.querySelectorAll(".mark").length,
      name: svg.querySelector(".name")?.textContent, tip: svg.querySelectorAll("title").length,
      outside: [...svg.querySelectorAll(".mark, polyline, text")].filter(e => {
        const b = e.getBoundingClientRect(), all = svg.getBoundingClientRect();
        return b.left < all.left - 1 || b.right > all.right + 1 || b.top < all.top - 1 ||
          b.bottom > all.bottom + 1;
      }).length })));
    assert.equal(plots.length, one.gates[0].slos.length + one.gates[1].slos.length);
    assert.equal(plots[0].name, "10c0ffee +51 %");
    for (const p of plots) assert.deepEqual([p.marks, p.tip, p.outside], [25, 25, 0], p.words);
    // The invalid run has a mark and no value: it would be 40 s high.
    assert.equal(await page.locator("svg.plot .mark.invalid").count(), 1);
    assert.equal(await page.locator("tbody tr").count(), 25);
    for (const width of [320, 390, 768, 1280]) {
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
} finally {
  await browser.close();
}
console.log("ok: the history of 25 commits");

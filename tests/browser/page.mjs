// Looks at report pages in a browser, as readers with a mouse, a keyboard, a phone or a printer do.
//   node page.mjs CHROMIUM DIRECTORY...     each with report.html and the result.json beside it
// The one named "gallery" has every kind of gate, that named "hostile" texts that try to become
// markup.
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const require = createRequire(path.join(process.cwd(), "here.js"));  // packages are in the build
const { chromium } = require("playwright-core");
const axe = fs.readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");

const [executablePath, ...directories] = process.argv.slice(2);
const browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });
const metrics = ["ttft", "tpot", "itl", "e2e", "ttft_from_send"];
const columns = ["mean", "p50", "p90", "p99", "max"];

/** Opens a page; what it must never do fails the run. */
async function opened(directory, options, run) {
  const url = pathToFileURL(path.join(path.resolve(directory), "report.html")).href;
  const context = await browser.newContext(options);
  const page = await context.newPage();
  const wrongs = [];
  page.on("console", m => { if (["error", "warning"].includes(m.type())) wrongs.push(m.text()); });
  page.on("pageerror", e => wrongs.push(e.message));
  page.on("dialog", d => { wrongs.push("dialog: " + d.message()); d.dismiss(); });
  page.on("request", r => { if (r.url() !== url) wrongs.push("request: " + r.url()); });
  await page.goto(url);
  await run(page);
  assert.deepEqual(wrongs, []);
  await context.close();
}

/** "39.2 ms" in seconds, "5 %" as 0.05, "100 tok/s" as 100; words as they are. */
function value(text) {
  const [, number, unit] = /^(-?[0-9.e+-]+) ?(\S*)/.exec(text) ?? [];
  const factor = { us: 1e-6, ms: 1e-3, s: 1, "%": 0.01, "": 1, x: 1, "tok/s": 1, "req/s": 1, USD: 1 }[unit];
  return number === undefined ? text : Number(number) * factor;
}
function same(shown, exact, what) {
  if (exact === null) return assert.ok(["none", "infinite", "not measured"].includes(shown), what);
  const got = value(shown);
  assert.ok(Math.abs(got - exact) <= 0.006 * Math.abs(exact), `${what}: ${shown} for ${exact}`);
}

/** "1.87 to 2.1 ms" as "1.87 ms" and "2.1 ms". */
function endsOf(interval) {
  const [low, high] = interval.split(" to ");
  const unit = high.replace(/^-?[0-9.e+-]+ ?/, "");
  return [/^-?[0-9.e+-]+$/.test(low) ? `${low} ${unit}` : low, high];
}

async function numbersAgree(page, gates) {
  for (const [i, gate] of gates.entries()) {
    if (gate.refusal) continue;
    const shown = await page.evaluate(id => {
      const section = document.getElementById(id);
      const texts = (root, selector) => [...root.querySelectorAll(selector)].map(e => e.textContent);
      return {
        name: section.querySelector("h2").textContent,
        slos: [...section.querySelectorAll(".verdicts > li")].map(li => ({
          slo: li.querySelector("code").textContent, verdict: li.querySelector(".badge").textContent,
          measured: li.querySelector(".found b")?.textContent ?? "not measured",
          basis: li.querySelector(".found .basis")?.textContent ?? "",
          interval: li.querySelector(".found .interval")?.textContent ?? "" })),
        rows: [...(section.querySelector("table")?.querySelectorAll("tbody tr") ?? [])]
          .map(tr => ({ head: texts(tr, "th, td:not(.n)"), cells: texts(tr, "td.n") })),
      };
    }, `gate-${i + 1}`);
    assert.equal(shown.name, gate.name);
    assert.equal(shown.slos.length, gate.slos.length);
    for (const [k, slo] of gate.slos.entries()) {
      assert.equal(shown.slos[k].slo, slo.slo);
      // The guard passes where it was merely seen to be kept, and is not called a pass there.
      const isOnlySeen = slo.verdict === "pass" && /within it as observed, not shown/.test(slo.reason);
      assert.equal(shown.slos[k].verdict, isOnlySeen ? "observed" : slo.verdict);
      same(shown.slos[k].measured, slo.measured, slo.slo);
      const typical = /^typical (?:repeat|pair|stage) (.*)$/.exec(shown.slos[k].basis);
      if (typical) same(typical[1], slo.estimate, slo.slo);
      if (shown.slos[k].interval && !slo.interval.includes(null))
        for (const [end, text] of endsOf(shown.slos[k].interval).entries())
          same(text, slo.interval[end], slo.slo);
    }
    if (gate.candidate.repeats.length === 0) continue;
    const arms = gate.baseline ? [gate.candidate, gate.baseline] : [gate.candidate];
    for (const [m, metric] of metrics.entries())
      for (const [a, arm] of arms.entries()) {
        const row = shown.rows[m * (arms.length === 2 ? 3 : 1) + a];
        if (a === 0) assert.equal(row.head[0], metric);
        for (const [c, column] of columns.entries())
          same(row.cells[c], arm[metric][column], `${gate.name}: ${column}(${metric})`);
      }
  }
}

let drawn = 0;  // plots of what servers told
async function plotsAreWhole(page, gates, comparisons) {
  const plots = await page.evaluate(() => [...document.querySelectorAll("svg.plot")].map(svg => {
    const box = svg.getBoundingClientRect(), view = svg.viewBox.baseVal;
    return { label: svg.getAttribute("aria-label"), role: svg.getAttribute("role"),
      gate: svg.closest("section").id, isChart: svg.closest("figure") !== null,
      x: JSON.stringify(JSON.parse(svg.nextElementSibling.textContent).x),
      width: box.width, height: box.height, lines: svg.querySelectorAll("polyline, circle, .cloud").length,
      outside: [...svg.querySelectorAll("polyline, circle, path, rect, text")].filter(e => {
        const b = e.getBBox();
        return b.x < -1 || b.y < -1 || b.x + b.width > view.width + 1 ||
               b.y + b.height > view.height + 1;
      }).map(e => e.outerHTML.slice(0, 120)) };
  }));
  for (const plot of plots) {
    assert.equal(plot.role, "img");
    assert.ok(plot.label.length > 10, "a plot without words");
    assert.ok(plot.width > 100 && plot.height > 20, `${plot.label}: too small`);
    assert.ok(plot.lines > 0, `${plot.label}: empty`);
    assert.deepEqual(plot.outside, [], plot.label);
  }
  for (const comparison of comparisons)
    for (const { statistic, settings } of comparison.statistics)
      if (settings.some(s => s.estimate > 0))
        assert.ok(plots.some(p => p.label.startsWith(statistic) &&
          settings.every(s => p.label.includes(s.name) || !(s.estimate > 0))),
          `${comparison.name} has no plot of ${statistic}`);
  for (const [i, gate] of gates.entries()) {
    if (gate.refusal || !(gate.candidate.statuses.ok > 1)) continue;
    const labels = plots.filter(p => p.gate === `gate-${i + 1}` && p.isChart).map(p => p.label);
    for (const start of ["ttft by percentile", "tpot by percentile", "itl by percentile",
      "e2e by percentile", "Requests/s", "In flight", "ttft, p50", "Output tokens/s"])
      assert.ok(labels.some(l => l.startsWith(start)), `${gate.name} has no plot of ${start}`);
    serverIsDrawn(gate, plots.filter(p => p.gate === `gate-${i + 1}` && p.isChart));
  }
}

/** What the server told of itself has its plots, on the client's own axis of time. */
function serverIsDrawn(gate, plots) {
  const told = gate.candidate.repeats.map(r => r.server?.values ?? {});
  for (const [quantity, start] of [["waiting", "Waiting requests"],
    ["running", "Running requests"], ["kv_usage", "KV cache in use"],
    ["queue_time", "Queue time"], ["power", "Power"]]) {
    const plot = plots.find(p => p.label.startsWith(start));
    const isTold = told.some(t => t[quantity]?.some(v => v !== null));
    if (quantity !== "queue_time") assert.equal(plot !== undefined, isTold, `${gate.name}: ${start}`);
    if (plot)
      assert.equal(plot.x, plots.find(p => p.label.startsWith("In flight")).x, start);
    drawn += plot !== undefined;
  }
}

async function fitsItsWidth(page) {
  for (const width of [320, 360, 768, 1280]) {
    await page.setViewportSize({ width, height: 800 });
    const wide = await page.evaluate(() => document.documentElement.scrollWidth);
    assert.ok(wide <= width, `${wide} pixels wide at ${width}`);
    const over = await page.evaluate(() => [...document.querySelectorAll(".gates li")].filter(li => {
      const badge = li.querySelector(".badge").getBoundingClientRect();
      const name = li.querySelector("a").getBoundingClientRect();
      return badge.right > name.left && badge.bottom > name.top + 1;
    }).length);
    assert.equal(over, 0, `${over} outcomes run over the names of their gates at ${width}`);
    const cut = await page.evaluate(() => [...document.querySelectorAll(".scroll")].filter(
      s => s.scrollWidth > s.clientWidth && getComputedStyle(s).backgroundImage === "none").length);
    assert.equal(cut, 0, `${cut} tables are cut without a sign at ${width}`);
  }
}

async function isAccessible(page, rules) {
  await page.evaluate(axe);
  const found = await page.evaluate(runOnly =>
    globalThis.axe.run(runOnly ? { runOnly } : {}), rules);
  assert.ok(found.passes.length >= (rules?.length ?? 20));
  const grave = found.violations.filter(v => ["serious", "critical"].includes(v.impact));
  assert.deepEqual(grave.map(v => `${v.id}: ${v.nodes[0].html}`), []);
}

/** How bright the page's ground is, 0 to 1. */
const brightness = page => page.evaluate(() => {
  const parts = getComputedStyle(document.body).backgroundColor.match(/\d+/g).map(Number);
  return (parts[0] + parts[1] + parts[2]) / 765;
});

async function worksByKeyboard(page) {
  const reachable = await page.evaluate(() =>
    [...document.querySelectorAll("a[href], button, summary, [tabindex='0']")]
      .filter(e => e.checkVisibility()).length);
  let last = -1;
  for (let i = 0; i < reachable; i++) {
    await page.keyboard.press("Tab");
    const now = await page.evaluate(() => {
      const e = document.activeElement, style = getComputedStyle(e);
      return { place: [...document.querySelectorAll("*")].indexOf(e), tag: e.tagName,
        outline: parseFloat(style.outlineWidth) > 0 && style.outlineStyle !== "none" };
    });
    assert.ok(now.place > last, `the focus went back to ${now.tag}`);
    assert.ok(now.outline, `the focus is not to be seen on ${now.tag}`);
    last = now.place;
  }
  const closed = () => page.locator("details:not([open])").count();
  const before = await closed();
  await page.locator("details:not([open]) > summary").first().focus();
  await page.keyboard.press("Enter");
  assert.equal(await closed(), before - 1, "Enter opened nothing");
}

async function filters(page, gates) {
  const heads = await page.locator("section[data-outcome]").evaluateAll(
    all => all.map(s => s.dataset.outcome));  // of a green gate they say more than its outcome
  const outcomes = new Set(heads);
  assert.equal(await page.locator(".filter").isVisible(), outcomes.size > 1);
  if (outcomes.size < 2 || !outcomes.has("failed")) return;
  await page.locator("[data-show=failed]").focus();
  await page.keyboard.press("Space");
  const failed = gates.filter(g => g.outcome === "failed").length;
  assert.equal(await page.locator("section[data-outcome]:visible").count(), failed);
  await page.locator("[data-show=all]").click();
  assert.equal(await page.locator("section[data-outcome]:visible").count(), gates.length);
}

async function tellsUnderThePointer(page) {
  const plot = page.locator("svg[aria-label*=' by percentile']").first();
  await plot.scrollIntoViewIfNeeded();
  const box = await plot.boundingBox();
  await page.mouse.move(box.x + box.width / 2, box.y + box.height / 2);
  await page.mouse.move(box.x + box.width / 2 + 1, box.y + box.height / 2);
  assert.ok(await page.locator("#tip").isVisible(), "nothing is told");
  assert.match(await page.locator("#tip").textContent(), /^p[0-9.]+\n.*[0-9.]+ m?s/s);
  await page.mouse.move(0, 0);
  assert.ok(!await page.locator("#tip").isVisible());
}

async function prints(page) {
  await page.emulateMedia({ media: "print" });
  assert.ok(!await page.locator(".filter").isVisible());
  await page.evaluate(() => dispatchEvent(new Event("beforeprint")));
  assert.equal(await page.locator("details:not([open])").count(), 0);
  await page.evaluate(() => dispatchEvent(new Event("afterprint")));
  assert.ok(await page.locator("details:not([open])").count() > 0);
  assert.ok((await page.pdf({ format: "A4" })).length > 20000);
}

try {
  for (const directory of directories) {
    const began = Date.now();
    const { gates, comparisons } = JSON.parse(fs.readFileSync(path.join(directory, "result.json"), "utf8"));
    const bright = { colorScheme: "light", viewport: { width: 1280, height: 900 } };
    const kind = path.basename(directory);
    if (kind === "hostile") {
      await opened(directory, bright, async page => {
        assert.equal(await page.locator("img, [onload], [onerror]").count(), 0);
        assert.ok((await page.locator("#gate-1 h2").textContent()).includes("<img src=x"));
        await fitsItsWidth(page);
      });
    } else {
      await opened(directory, bright, async page => {
        await numbersAgree(page, gates);
        await plotsAreWhole(page, gates, comparisons ?? []);
        await fitsItsWidth(page);
        await filters(page, gates);
        await tellsUnderThePointer(page);
      });
    }
    if (kind === "gallery") {
      await opened(directory, bright, async page => {
        assert.ok(await brightness(page) > 0.9);
        await isAccessible(page);
      });
      await opened(directory, { colorScheme: "dark", viewport: { width: 360, height: 740 } },
        async page => {
          assert.ok(await brightness(page) < 0.2);
          await isAccessible(page, ["color-contrast"]);
        });
      await opened(directory, bright, worksByKeyboard);
      await opened(directory, bright, prints);
      await opened(directory, { ...bright, javaScriptEnabled: false }, async page => {
        assert.equal(await page.locator("section[data-outcome]:visible").count(), gates.length);
        assert.ok(!await page.locator(".filter").isVisible());
        assert.equal(await page.locator(".plots:visible, svg.plot:visible").count(), 0);
        assert.ok(await page.locator("table:visible").count() > gates.length);
      });
    }
    console.log(`ok: ${directory} (${gates.length} gates, ${Date.now() - began} ms)`);
  }
  assert.ok(drawn > 0, "nothing that servers tell of themselves is drawn");
} finally {
  await browser.close();
}

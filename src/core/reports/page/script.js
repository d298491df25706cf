// Draws the pages: a report, a history, two runs. Each JSON block is a drawing, {x, y, shapes}, or
// the bar of a verdict; plot.hpp writes it. Here are only pixels: no number is computed.
(() => {
"use strict";
const box = {l: 50, r: 288, t: 8, b: 142};
const tip = document.createElement("div");
tip.id = "tip"; tip.hidden = true; document.body.append(tip);
const clamp = (v, a, b) => Math.min(Math.max(v, a), b);
const set = (e, all) => { for (const k in all) e.setAttribute(k, all[k]); return e; };
// Text is inserted as text, never as markup.
const shape = (svg, tag, all, text = "") => {
  const e = set(document.createElementNS(svg.namespaceURI, tag), all);
  e.textContent = text;
  svg.append(e);
  return e;
};
const px = v => Math.round(v * 10) / 10;
// How far an axis reaches, by its values from a to b: its ends, and its kind unless it is linear.
const log = (a, b) => [a / 1.08, b * 1.08, "log"];
const around = (a, b, m) => [Math.max(0, a - m), b + m];
const reaches = {
  log,
  given: (a, b, low, high) => [low, high],
  zero: (a, b) => [0, b * 1.06],
  whole: () => [0, 1],
  nines: (a, b) => [0, b, "nines"],
  near: (a, b) => b >= 6 * a ? log(a, b) : around(a, b, Math.max(.06 * (b - a), .02 * b)),
  wide: (a, b) => b > 20 * a ? log(a, b) : [0, b * 1.06],
  level: (a, b) => around((a + b) / 2, (a + b) / 2, Math.max(.58 * (b - a), .05 * (a + b))),
  names: (a, b) => [a - .5, b + .5],
  days: (a, b) => around(a, b, Math.max(.03 * (b - a), 2 - (b - a) / 2)),
};
// An axis of [unit, reach, ends]: places of values, and values of places. A limit that is far from
// all values would squeeze them.
const axis = ([unit, reach, ...ends], values, limits, from, to) => {
  const some = values.filter(v => v > 0 && v < 1e299);
  const least = some.length ? Math.min(...some) : 1, most = some.length ? Math.max(...some) : 1;
  const near = limits.filter(v => v > least / 20 && v < most * 20);
  const [low, high, kind = "linear"] =
    reaches[reach](Math.min(least, ...near), Math.max(most, ...near), ...ends);
  const bend = {linear: v => v, log: v => Math.log10(Math.max(v, low)),
    nines: v => -Math.log10(Math.max(1 - v, 1e-9))}[kind];
  const back = {linear: v => v, log: v => 10 ** v, nines: v => 1 - 10 ** -v}[kind];
  const a = bend(low), b = bend(high);
  return {kind, low, high, unit,
    at: v => px(from + (b > a ? clamp((bend(v) - a) / (b - a), 0, 1) : .5) * (to - from)),
    value: p => back(a + (p - from) / (to - from) * (b - a))};
};
const multiples = (low, high, step) => {
  const all = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + step * 1e-9; k++)
    all.push(k * step);
  return all;
};
const elapsed = [.1, .2, .5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 14400];
const roundStep = least => {
  const power = 10 ** Math.floor(Math.log10(least));
  return [1, 2, 5, 10].find(d => d * power >= least * (1 - 1e-9)) * power;
};
const ticks = ({kind, low, high, unit}, most) => {
  if (unit === "named") return [];
  if (unit === "day")  // with room for the last one
    return multiples(low, high - .08 * (high - low), Math.ceil((high - low) / 3));
  if (kind === "nines") return [0, .5, .9, .99, .999, .9999, .99999].filter(v => v <= high);
  if (!(high > low) || (kind === "log" && !(low > 0))) return [low];
  if (unit === "elapsed") {
    const least = (high - low) / 5;
    return multiples(low, high, elapsed.find(s => s >= least) || roundStep(least));
  }
  if (kind === "linear") return multiples(low, high, roundStep((high - low) / most));
  const decades = Math.log10(high / low), each = Math.max(1, Math.ceil(decades / most)), all = [];
  for (let e = Math.floor(Math.log10(low)); 10 ** e <= high; e += each)
    for (const digit of decades < 1.8 ? [1, 2, 5] : [1]) all.push(digit * 10 ** e);
  return all.filter(v => v >= low * (1 - 1e-9) && v <= high * (1 + 1e-9));
};
const digits = v => v >= 999.5 ? v.toFixed(0) : String(+v.toPrecision(3));
const show = (v, unit) => {
  if (v > 1e299) return "infinite";
  if (unit === "fraction") return digits(v * 100) + " %";
  if (unit === "percentile") return "p" + +(v * 100).toPrecision(v > .99 ? 4 : 3);
  if (unit === "seconds") {
    const a = Math.abs(v);
    return a < 9.99e-4 ? digits(v * 1e6) + " us" : a < .9995 ? digits(v * 1e3) + " ms"
      : digits(v) + " s";
  }
  if (unit === "elapsed") return v < 600 ? v.toFixed(1) + " s" : (v / 60).toFixed(1) + " min";
  return digits(v) + (unit === "none" ? "" : " " + unit);
};
const between = (points, at, i) => {
  for (let k = 1; k < points.length; k++) {
    const a = points[k - 1], b = points[k];
    if (at < Math.min(a[i], b[i]) || at > Math.max(a[i], b[i])) continue;
    const part = a[i] === b[i] ? 0 : (at - a[i]) / (b[i] - a[i]);
    return a[1 - i] + part * (b[1 - i] - a[1 - i]);
  }
  return null;
};
const hover = (svg, x, y, lines, told) => {
  const i = y.unit === "percentile" ? 1 : 0, along = i ? y : x, across = i ? x : y;
  const cross = shape(svg, "line", {class: "cross"});
  const leave = () => { tip.hidden = true; cross.remove(); };
  const move = e => {
    const p = new DOMPoint(e.clientX, e.clientY).matrixTransform(svg.getScreenCTM().inverse());
    if (p.x < box.l || p.x > box.r || p.y < box.t || p.y > box.b) return leave();
    const near = told.length
      && told.reduce((a, b) => Math.abs(b.at - p.x) < Math.abs(a.at - p.x) ? b : a);
    const at = near ? near.at : i ? p.y : p.x, found = new Map();
    for (const line of lines) {
      const v = between(line.points, at, i);
      if (v !== null) found.set(line.name, [...(found.get(line.name) || []), across.value(v)]);
    }
    const said = [...found].map(([name, all]) => {
      const low = show(Math.min(...all), across.unit), high = show(Math.max(...all), across.unit);
      return (name ? name + "  " : "") + (low === high ? low : low + " to " + high);
    });
    tip.textContent = near ? near.words : [show(along.value(at), along.unit), ...said].join("\n");
    const ends = i ? {x1: box.l, x2: box.r, y1: at, y2: at}
                   : {x1: at, x2: at, y1: box.t, y2: box.b};
    set(cross, ends);
    svg.append(cross);
    tip.hidden = false;
    tip.style.left = Math.max(0, Math.min(e.clientX + 14, innerWidth - tip.offsetWidth - 6)) + "px";
    tip.style.top = Math.max(0, e.clientY - tip.offsetHeight - 10) + "px";
  };
  svg.addEventListener("pointermove", move);
  svg.addEventListener("pointerdown", move);
  svg.addEventListener("pointerleave", leave);
};
const tick = (v, unit) => v === 0 && ["seconds", "percentile"].includes(unit)
  ? (unit === "seconds" ? "0" : "")
  : unit === "percentile" ? "p" + +(v * 100).toPrecision(6)
  : unit === "fraction" ? +(v * 100).toPrecision(4) + " %"
  : unit === "seconds" ? show(v, unit)
  : unit === "day" ? new Date(v * 864e5).toISOString().slice(0, 10)  // since 1970
  : unit !== "elapsed" ? String(+v.toPrecision(6))
  : v >= 7200 ? +(v / 3600).toPrecision(3) + " h"
  : v >= 300 ? +(v / 60).toPrecision(4) + " min" : +v.toPrecision(4) + " s";
const pairs = all => all.flatMap((v, i) => i % 2 ? [] : [[v, all[i + 1]]]);
// A drawing of [shape, words, numbers]; where null is, nothing is drawn.
const plot = (svg, {x: xs, y: ys, shapes}, caption) => {
  const of = kinds => shapes.filter(s => kinds.includes(s[0]));
  const points = of(["line", "cloud", "dot", "upright", "mark"]).flatMap(s => pairs(s[2]));
  const limits = kind => of([kind]).map(s => s[2][0]);
  const x = axis(xs, points.map(p => p[0]), limits("limit"), box.l, box.r);
  const y = axis(ys, points.map(p => p[1]), limits("across"), box.b, box.t);
  const names = new Map(of(["name"]).map(s => [s[2][0], s[1][0]]));
  const dots = of(["dot"]).map(([, , [a, b]]) =>
    ({at: x.at(a), words: `${names.get(a) ?? show(a, x.unit)}\n${show(b, y.unit)}`}));
  const told = of(["tell"]).map(s => ({at: x.at(s[2][0]), words: s[1][0]}));
  const lines = [], taken = [];
  const put = (at, words, anchor, style = "") => shape(svg, "text",
    {x: px(at[0]), y: px(at[1]), "text-anchor": anchor, class: style}, words);
  const path = (style, d) => shape(svg, "path", {class: style, d});
  const dot = (style, r, at) => shape(svg, "circle", {class: style, r, cx: at[0], cy: at[1]});
  // Words go where no others are: above, or below where there is no room above, or nowhere.
  const say = ([a, h], words, anchor, mayMove) => {
    const wide = 5.6 * words.length, x0 = anchor === "end" ? a - wide : a;
    const meets = () => taken.some(t => x0 < t.x1 && t.x0 < x0 + wide && Math.abs(t.y - h) < 12);
    if (!mayMove && meets()) return;
    while (meets() && h > box.t + 18) h -= 12;
    while (meets() && h < box.b - 4) h += 12;
    taken.push({x0, x1: x0 + wide, y: h});
    put([a, h], words, anchor, "mark");
  };
  const draw = {
    line([style, name], all) {
      let line = [];
      const end = () => {
        if (line.length === 1) dot(style[0], 2, line[0]);
        else if (line.length) {
          shape(svg, "polyline", {class: style, points: line.join(" ")});
          lines.push({name, points: line});
        }
        line = [];
      };
      for (const [a, b] of pairs(all)) {
        if (a === null || b === null) { end(); continue; }
        const at = [x.at(a), y.at(b)];
        if (String(at) !== String(line.at(-1))) line.push(at);
      }
      end();
    },
    dot([style], [a, b]) { dot(style, 3.5, [x.at(a), y.at(b)]); },
    cloud([style], all) {
      path("cloud " + style, pairs(all).map(p => `M${x.at(p[0])} ${y.at(p[1])}h0`).join(""));
    },
    limit([words], [v, q, atMost]) {
      const at = x.at(v), mean = q === null;
      if (v > x.high) words += ", far right";
      if (v < x.low) words += ", far left";
      path("limit", `M${at} ${mean ? box.b - 14 : atMost ? y.at(q) : box.t}` +
        `V${mean || atMost ? box.b : y.at(q)}`);
      if (!mean) dot("ring", 3.5, [at, y.at(q)]);
      // A rising curve leaves room above left of it, and below right.
      const low = at > (box.l + box.r) / 2, before = at > box.l + 80;
      const height = mean ? box.b - 18 : low ? 136 : y.at(q) - 6, anchor = before ? "end" : "start";
      say([at + (before ? -6 : 6), height], words, anchor, true);
    },
    across([words], [v]) {
      path("limit", `M${box.l} ${y.at(v)}H${box.r}`);
      say([box.l + 4, y.at(v) - 4], words, "start", true);
    },
    stretch(_, [from, to]) {
      shape(svg, "rect", {class: "stretch", x: x.at(from), y: box.t, height: box.b - box.t,
        width: Math.max(x.at(to) - x.at(from), 1)});
    },
    step([style, words], [v, rises]) {
      path("step " + style, `M${x.at(v)} ${box.t}V${box.b}`);
      // Values that rise leave room below, others above.
      draw.label([words], [v, y.value(rises ? box.b : box.t + 14), 1]);
    },
    interval(_, [v, low, high, q]) {
      if (v === null) return;
      const at = q === null ? box.b - 6 : y.at(q);
      path("span", `M${x.at(low ?? v)} ${at}H${x.at(high ?? v)}`);
      dot("typical", 2.5, [x.at(v), at]);
    },
    mark([style, d], [a, b]) {
      set(path(style, d), {transform: `translate(${x.at(a)} ${b === null ? box.b : y.at(b)})`});
    },
    name([words], [v]) {  // a long one keeps its end, in which similar names differ
      const all = [...words], most = Math.floor((box.r - box.l) / names.size / 6);
      const cut = all.length > most ? "\u2026" + all.slice(1 - most).join("") : words;
      put([x.at(v), 157], cut, "middle");
    },
    upright([style], [a, low, , high]) {
      if (low !== null && high !== null) path(style, `M${x.at(a)} ${y.at(low)}V${y.at(high)}`);
    },
    label([words], [a, b, mayMove]) {
      if (b === null) return;
      const at = x.at(a), end = at > box.r - 60;
      say([at + (end ? -6 : 6), y.at(b) - 5], words, end ? "end" : "start", mayMove);
    },
    tell() {},
  };
  let free = 0;  // where the next words under the axis have room
  for (const v of ticks(x, x.kind === "linear" ? 4 : 5)) {
    const at = x.at(v), words = tick(v, x.unit), wide = 5.8 * words.length, end = at > box.r - 12;
    path("grid", `M${at} ${box.b}v4`);
    if (at - (end ? wide : wide / 2) < free) continue;
    put([at, 157], words, end ? "end" : "middle");
    free = at + wide / 2 + 4;
  }
  for (const v of ticks(y, 4)) {
    path("grid", `M${box.l} ${y.at(v)}H${box.r}`);
    put([45, y.at(v) + 4], tick(v, y.unit), "end");
  }
  for (const [kind, words, numbers] of shapes) draw[kind](words, numbers);
  const along = y.unit === "percentile", unit = (along ? x : y).unit;
  const read = points.map(p => p[along ? 0 : 1]).filter(v => v !== null && v < 1e299);
  const values = dots.length && !told.length ? dots.map(d => d.words.replace("\n", " ")).join(", ")
    : `${show(Math.min(...read), unit)} to ${show(Math.max(...read), unit)}`;
  const limited = of(["limit", "across"]).map(s => "; limit " + s[1][0]).join("");
  set(svg, {viewBox: "0 0 300 162",
    "aria-label": `${caption}${along ? " by percentile" : ""}: ${values}${limited}`});
  const near = told.length ? told : lines.length ? [] : dots;
  svg.addEventListener("pointerenter", () => hover(svg, x, y, lines, near), {once: true});
};
// A verdict: [limit, measured, value, low, high] of its interval, and the values of the repeats.
const bar = (svg, {bar: [limit, measured, value, low, high], look, atMost, repeats, words}) => {
  const ends = [limit, measured, value, low, high, ...repeats].filter(
    v => v !== null && Math.abs(v) < 1e299);
  const a = Math.min(...ends), b = Math.max(...ends);
  const margin = b > a ? .08 * (b - a) : Math.max(Math.abs(b) * .2, 1e-6);
  const scale = axis(["", "given", a - margin, b + margin], [], [], 4, 316);
  const at = v => v > 1e299 ? 313 : v < -1e299 ? 7 : scale.at(v);
  const x = at(limit), from = at(low ?? value), to = at(high ?? value);
  const allowed = atMost ? [4, x - 4] : [x, 316 - x];
  shape(svg, "rect", {class: "allowed", x: allowed[0], y: 4, height: 22, width: px(allowed[1])});
  shape(svg, "rect", {class: "bar", x: Math.min(from, to), y: 12, height: 6, rx: 3,
    width: px(Math.max(Math.abs(to - from), 1))});
  for (const v of repeats)
    if (v !== null) shape(svg, "path", {class: "rug", d: `M${at(v)} 8v14`});
  shape(svg, "circle", {class: "dot", r: 5, cy: 15, cx: at(value)});
  if (measured !== null) shape(svg, "path", {class: "data", d: `M${at(measured)} 22l4 4-4 4-4-4z`});
  shape(svg, "path", {class: "limit", d: `M${x} 1V29`});
  shape(svg, "text", {class: "mark", y: 40, x,
    "text-anchor": x < 60 ? "start" : x > 260 ? "end" : "middle"}, words);
  set(svg, {class: "plot " + look, viewBox: "0 0 320 42",
    "aria-label": "the interval, the repeats and the " + words});
};
document.documentElement.classList.add("drawn");
for (const data of document.querySelectorAll("script[type='application/json']")) {
  const spec = JSON.parse(data.textContent);
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  data.before(set(svg, {class: "plot", role: "img"}));
  const parts = [...data.parentElement.querySelector("figcaption")?.childNodes ?? []];
  (spec.bar ? bar : plot)(svg, spec, parts.map(p => p.textContent).join(", "));
}
const filter = document.querySelector(".filter");
if (filter) {
  filter.hidden = false;
  filter.addEventListener("click", e => {
    const button = e.target.closest("button");
    if (!button) return;
    for (const b of filter.children) b.setAttribute("aria-pressed", String(b === button));
    for (const part of document.querySelectorAll("[data-outcome]"))
      part.hidden = !["all", part.dataset.outcome].includes(button.dataset.show);
  });
}
let closed = [];
addEventListener("beforeprint", () => {
  closed = [...document.querySelectorAll("details:not([open])")];
  for (const d of closed) d.open = true;
});
addEventListener("afterprint", () => { for (const d of closed) d.open = false; });
})();

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
// A scale of [kind, low, high, unit]: places of values, and values of places.
const axis = ([kind, low, high, unit], from, to) => {
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
const hover = (svg, x, y, i, lines, told) => {
  const along = i ? y : x, across = i ? x : y;
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
const plot = (svg, spec) => {
  const x = axis(spec.x, box.l, box.r), y = axis(spec.y, box.b, box.t), lines = [], labels = [],
    told = [];
  const put = (at, words, anchor, style = "") => shape(svg, "text",
    {x: px(at[0]), y: px(at[1]), "text-anchor": anchor, class: style}, words);
  const path = (style, d) => shape(svg, "path", {class: style, d});
  const dot = (style, r, at) => shape(svg, "circle", {class: style, r, cx: at[0], cy: at[1]});
  // Words go where no others are: above, or below where there is no room above.
  const taken = [];
  const free = (at, words, anchor) => {
    const wide = 5.6 * words.length, x0 = anchor === "end" ? at[0] - wide : at[0];
    const meets = h => taken.some(t =>
      x0 < t.x1 && t.x0 < x0 + wide && Math.abs(t.y - h) < 12);
    let h = at[1];
    while (meets(h) && h > box.t + 18) h -= 12;
    while (meets(h) && h < box.b - 4) h += 12;
    taken.push({x0, x1: x0 + wide, y: h});
    return [at[0], h];
  };
  const draw = {
    line([style, name], all) {
      let points = [];
      const end = () => {
        if (points.length === 1) dot(style[0], 2, points[0]);
        else if (points.length) {
          shape(svg, "polyline", {class: style, points: points.join(" ")});
          lines.push({name, points});
        }
        points = [];
      };
      for (const [a, b] of pairs(all)) {
        if (a === null || b === null) { end(); continue; }
        const at = [x.at(a), y.at(b)];
        if (String(at) !== String(points.at(-1))) points.push(at);
      }
      end();
    },
    dot([style], [a, b]) { dot(style, 3.5, [x.at(a), y.at(b)]); },
    cloud([style], all) {
      path("cloud " + style, pairs(all).map(p => `M${x.at(p[0])} ${y.at(p[1])}h0`).join(""));
    },
    limit([words], [v, q, atMost]) {
      const at = x.at(v), mean = q === null;
      path("limit", `M${at} ${mean ? box.b - 14 : atMost ? y.at(q) : box.t}` +
        `V${mean || atMost ? box.b : y.at(q)}`);
      if (!mean) dot("ring", 3.5, [at, y.at(q)]);
      // A rising curve leaves room above left of it, and below right.
      const low = at > (box.l + box.r) / 2, before = at > box.l + 80;
      const height = mean ? box.b - 18 : low ? 136 : y.at(q) - 6, anchor = before ? "end" : "start";
      put(free([at + (before ? -6 : 6), height], words, anchor), words, anchor, "mark");
    },
    across([words], [v]) {
      path("limit", `M${box.l} ${y.at(v)}H${box.r}`);
      put([box.l + 4, y.at(v) - 4], words, "start", "mark");
    },
    stretch(_, [from, to]) {
      shape(svg, "rect", {class: "stretch", x: x.at(from), y: box.t, height: box.b - box.t,
        width: Math.max(x.at(to) - x.at(from), 1)});
    },
    interval(_, [v, low, high, q]) {
      const at = q === null ? box.b - 6 : y.at(q);
      path("span", `M${x.at(low ?? v)} ${at}H${x.at(high ?? v)}`);
      dot("typical", 2.5, [x.at(v), at]);
    },
    mark([style, d], [a, b]) {
      set(path(style, d), {transform: `translate(${x.at(a)} ${y.at(b)})`});
    },
    tell([words], [v]) { told.push({at: x.at(v), words}); },
    name([words], [v]) { put([x.at(v), 157], words, "middle"); },
    upright(_, [v, low, high]) { path("span", `M${x.at(v)} ${y.at(low)}V${y.at(high)}`); },
    label([words, apart], [a, b]) {
      const at = [x.at(a), y.at(b)], end = at[0] > box.r - 60;
      if (apart && labels.some(l => Math.abs(l[0] - at[0]) < 60 && Math.abs(l[1] - at[1]) < 11))
        return;
      if (apart) labels.push(at);
      put([at[0] + (end ? -6 : 6), at[1] - 5], words, end ? "end" : "start", "mark");
    },
  };
  for (const v of ticks(x, x.kind === "linear" ? 4 : 5)) {
    path("grid", `M${x.at(v)} ${box.b}v4`);
    put([x.at(v), 157], tick(v, x.unit), x.at(v) > box.r - 12 ? "end" : "middle");
  }
  for (const v of ticks(y, 4)) {
    path("grid", `M${box.l} ${y.at(v)}H${box.r}`);
    put([45, y.at(v) + 4], tick(v, y.unit), "end");
  }
  for (const [kind, words, numbers] of spec.shapes) draw[kind](words, numbers);
  svg.addEventListener("pointerenter", () => hover(svg, x, y, spec.by === "y" ? 1 : 0, lines, told),
    {once: true});
};
const bar = (svg, {bar: [limit, measured, value, low, high], atMost, repeats, words}) => {
  const ends = [limit, measured, value, low, high, ...repeats].filter(
    v => v !== null && Math.abs(v) < 1e299);
  const a = Math.min(...ends), b = Math.max(...ends);
  const margin = b > a ? .08 * (b - a) : Math.max(Math.abs(b) * .2, 1e-6);
  const scale = axis(["linear", a - margin, b + margin, ""], 4, 316);
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
};
document.documentElement.classList.add("drawn");
for (const data of document.querySelectorAll("svg + script[type='application/json']")) {
  const spec = JSON.parse(data.textContent);
  (spec.bar ? bar : plot)(data.previousElementSibling, spec);
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

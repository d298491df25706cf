(() => {
"use strict";
const box = {l: 50, r: 288, t: 8, b: 142};
const tip = document.createElement("div");
tip.id = "tip"; tip.hidden = true; document.body.append(tip);
const axis = (text, from, to) => {
  const [kind, low, high, unit] = text.split(" ");
  const bend = {linear: v => v, log: Math.log10, nines: v => -Math.log10(1 - v)}[kind];
  const back = {linear: v => v, log: v => 10 ** v, nines: v => 1 - 10 ** -v}[kind];
  const a = bend(+low), b = bend(+high);
  return {unit, value: p => back(a + (p - from) / (to - from) * (b - a))};
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
const hover = svg => {
  const x = axis(svg.dataset.x, box.l, box.r), y = axis(svg.dataset.y, box.b, box.t);
  const i = svg.dataset.by === "y" ? 1 : 0, along = i ? y : x, across = i ? x : y;
  const lines = [...svg.querySelectorAll("polyline")].map(line => ({name: line.dataset.n,
    points: line.getAttribute("points").split(" ").map(p => p.split(",").map(Number))}));
  const cross = document.createElementNS(svg.namespaceURI, "line");
  cross.setAttribute("class", "cross");
  const leave = () => { tip.hidden = true; cross.remove(); };
  const move = e => {
    const p = new DOMPoint(e.clientX, e.clientY).matrixTransform(svg.getScreenCTM().inverse());
    if (p.x < box.l || p.x > box.r || p.y < box.t || p.y > box.b) return leave();
    const at = i ? p.y : p.x, found = new Map();
    for (const line of lines) {
      const v = between(line.points, at, i);
      if (v !== null) found.set(line.name, [...(found.get(line.name) || []), across.value(v)]);
    }
    const said = [...found].map(([name, all]) => {
      const low = show(Math.min(...all), across.unit), high = show(Math.max(...all), across.unit);
      return (name ? name + "  " : "") + (low === high ? low : low + " to " + high);
    });
    tip.textContent = [show(along.value(at), along.unit), ...said].join("\n");
    const ends = i ? {x1: box.l, x2: box.r, y1: at, y2: at}
                   : {x1: at, x2: at, y1: box.t, y2: box.b};
    for (const k in ends) cross.setAttribute(k, ends[k]);
    svg.append(cross);
    tip.hidden = false;
    tip.style.left = Math.max(0, Math.min(e.clientX + 14, innerWidth - tip.offsetWidth - 6)) + "px";
    tip.style.top = Math.max(0, e.clientY - tip.offsetHeight - 10) + "px";
  };
  svg.addEventListener("pointermove", move);
  svg.addEventListener("pointerdown", move);
  svg.addEventListener("pointerleave", leave);
};
for (const svg of document.querySelectorAll("svg[data-x]"))
  svg.addEventListener("pointerenter", () => hover(svg), {once: true});
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

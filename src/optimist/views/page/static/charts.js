// Line charts as SVG: they follow the theme by themselves, and say in words what they show.

function ticks(low, high, count) {
  const rough = (high - low) / Math.max(count, 1);
  const size = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((k) => k * size).find((s) => s >= rough) ?? size * 10;
  const found = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + 1e-9 * step; k++) found.push(k * step);
  return found;
}

function range(values, pad = 0.06) {
  let low = Infinity;
  let high = -Infinity;
  for (const value of values) {
    if (Number.isFinite(value)) { low = Math.min(low, value); high = Math.max(high, value); }
  }
  if (low > high) return [0, 1];
  if (low === high) { const room = Math.abs(low) * 0.1 || 1; return [low - room, high + room]; }
  return [low - pad * (high - low), high + pad * (high - low)];
}

// The scale of one axis: a function from numbers to pixels, and its ticks.
function scale(values, from, to, { log = false, whole = false, count = 5, pad = 0.06 } = {}) {
  if (log) {
    const logs = values.filter((value) => value > 0).map(Math.log10);
    const [low, high] = range(logs, pad);
    const at = (value) => from + (Math.log10(Math.max(value, 1e-300)) - low) / (high - low) * (to - from);
    let marks = ticks(Math.ceil(low), Math.floor(high), count).filter(Number.isInteger);
    if (marks.length < 2) marks = [low + 0.1 * (high - low), high - 0.1 * (high - low)];
    return { at, low: 10 ** low, ticks: marks.map((mark) => 10 ** mark) };
  }
  const [low, high] = range(values, pad);
  const at = (value) => from + (value - low) / (high - low) * (to - from);
  const marks = ticks(low, high, count);
  return { at, low, ticks: whole ? marks.filter(Number.isInteger) : marks };
}

// `series`: {label, colour, points: [[x, y]], kind: line, dashes, area, bars,
// turn: of an angle, at whose seam the pen is lifted}
function chart(box, { series, height = 220, x = "", y = "", log = false, whole = true, now = null, says, spread = null }) {
  const width = Math.max(box.clientWidth || 380, 220);
  const edge = { left: 54, right: 12, top: 10, bottom: x ? 34 : 20 };
  const all = series.flatMap((one) => one.points);
  const xs = spread ?? all.map((point) => point[0]);
  const ys = all.flatMap((point) => point.slice(1)).filter((value) => Number.isFinite(value) && (!log || value > 0));
  const across = scale(xs, edge.left, width - edge.right, { whole, count: Math.max(2, Math.floor(width / 90)), pad: 0.04 });
  const up = scale(ys, height - edge.bottom, edge.top, { log, count: 4 });
  const made = svg("svg", { viewBox: `0 0 ${width} ${height}`, height, role: "img", "aria-label": says });
  made.append(svg("path", { class: "axis", d: `M${edge.left} ${edge.top}V${height - edge.bottom}H${width - edge.right}` }));
  for (const tick of across.ticks) {
    made.append(svg("text", { x: across.at(tick), y: height - edge.bottom + 14, "text-anchor": "middle" }, num(tick)));
  }
  for (const tick of up.ticks) {
    made.append(svg("path", { class: "axis", d: `M${edge.left - 4} ${up.at(tick)}h4` }));
    made.append(svg("text", { x: edge.left - 7, y: up.at(tick) + 4, "text-anchor": "end" }, num(tick, 3)));
  }
  if (x) made.append(svg("text", { x: (edge.left + width - edge.right) / 2, y: height - 4, "text-anchor": "middle" }, x));
  if (y) made.append(svg("text", { x: 11, y: (edge.top + height - edge.bottom) / 2, "text-anchor": "middle",
    transform: `rotate(-90 11 ${(edge.top + height - edge.bottom) / 2})` }, y));
  const place = ([a, b]) => [across.at(a).toFixed(1), up.at(b).toFixed(1)];
  const cursor = svg("path", { class: "now" });
  const point = (value) => cursor.setAttribute("d", `M${across.at(value).toFixed(1)} ${edge.top}V${height - edge.bottom}`);
  if (now !== null) point(now);
  made.append(cursor);
  for (const one of series) made.append(...drawn(one, place, up, log));
  box.replaceChildren(made);
  if (series.some((one) => one.label)) box.append(legend(series));
  return point;
}

function drawn({ points, colour, kind = "line", thin = false, dashed = false, wide = 8, turn = Infinity }, place, up, log) {
  const shown = points.filter((point) => point.slice(1).every((value) => Number.isFinite(value) && (!log || value > 0)));
  const look = `s-${colour}`;
  if (kind === "area") {
    const there = shown.map(([a, low]) => place([a, low]).join(" "));
    const again = shown.map(([a, , high]) => place([a, high]).join(" ")).reverse();
    return shown.length ? [svg("path", { class: `area ${look}`, d: `M${[...there, ...again].join("L")}Z` })] : [];
  }
  if (kind === "bars") {
    return shown.map(([a, low, high]) => {
      const [left, top] = place([a, high]);
      return svg("rect", { class: `fill ${look}`, x: left - wide / 2, y: top, width: wide, height: Math.max(up.at(low) - top, 0) });
    });
  }
  if (kind === "dashes") return shown.map((point) => {
    const [a, b] = place(point);
    return svg("path", { class: `dash ${look}`, d: `M${a - 7} ${b}h14` });
  });
  const many = shown.length > 60;
  const parts = [];
  if (kind === "line" && shown.length) {
    parts.push(svg("path", { class: `line ${look}${thin ? " thin" : ""}${dashed ? " dashed" : ""}`, 
      d: shown.map((point, k) => `${k && Math.abs(point[1] - shown[k - 1][1]) <= turn / 2 ? "L" : "M"}${place(point).join(" ")}`).join("") }));
  }
  if (!thin && !dashed && !many) {
    for (const point of shown) {
      const [cx, cy] = place(point);
      parts.push(svg("circle", { class: `dot ${look}`, cx, cy, r: 3 }));
    }
  }
  return parts;
}

function legend(series) {
  const items = series.filter((one) => one.label).map((one) => el("li", { className: `s-${one.colour}${one.dashed ? " dashed" : ""}` }, one.label));
  return el("ul", { className: "legend", "aria-hidden": "true" }, ...items);
}

function table(columns, rows) {
  const head = el("tr", {}, ...columns.map((name) => el("th", { scope: "col" }, name)));
  const body = rows.map((row) => el("tr", {}, ...row.map((value) => el("td", {}, typeof value === "number" ? num(value) : value ?? "–"))));
  return el("div", { className: "scroll", tabIndex: 0 }, el("table", {}, el("thead", {}, head), el("tbody", {}, ...body)));
}

// A table that is made when somebody opens it.
function tableOf(title, make) {
  const made = el("details", {}, el("summary", {}, title));
  made.addEventListener("toggle", () => made.fill());
  made.fill = () => {
    const [columns, rows] = make();
    if (made.open) made.replaceChildren(made.firstChild, table(columns, rows));
  };
  return made;
}

// Maps of a plan: value and uncertainty over two axes, the others held; interpolated as the planner does.

class PlanMap {
  constructor(document, raw, periodic, low, high) {
    Object.assign(this, { axes: document.axes, path: document.path, n: document.n_actions, periodic, low, high });
    this.sizes = this.axes.map((nodes) => nodes.length);
    this.count = this.sizes.reduce((a, b) => a * b, 1);
    this.least = document.low;
    this.step = (document.high - document.low) / document.levels;
    this.shade = 1 / document.shades;
    const total = this.n * this.count;
    this.levels = new Uint16Array(total);
    this.shades = new Uint8Array(total);
    for (let i = 0, level = 0, shade = 0; i < total; i++) {
      level = (level + raw[i] + 256 * raw[total + i]) & 65535;
      shade = (shade + raw[2 * total + i]) & 255;
      this.levels[i] = level;
      this.shades[i] = shade;
    }
    this.made = new Map();
  }

  // At every node: of one action, or (-1) of the best for values, the mean of all for uncertainty.
  field(what, action) {
    const key = `${what} ${action}`;
    if (!this.made.has(key)) {
      if (this.made.size > 8) this.made.clear();
      this.made.set(key, what === "value" ? this.values(action) : this.unknown(action));
    }
    return this.made.get(key);
  }

  values(action) {
    const found = new Float32Array(this.count);
    const some = action < 0 ? [...Array(this.n).keys()] : [action];
    for (let i = 0; i < this.count; i++) {
      let best = 0;
      for (const k of some) best = Math.max(best, this.levels[k * this.count + i]);
      found[i] = this.least + this.step * best;
    }
    return found;
  }

  unknown(action) {
    const found = new Float32Array(this.count);
    const some = action < 0 ? [...Array(this.n).keys()] : [action];
    for (const k of some) for (let i = 0; i < this.count; i++) found[i] += this.shades[k * this.count + i];
    for (let i = 0; i < this.count; i++) found[i] *= this.shade / some.length;
    return found;
  }

  // The two nodes around `x` on an axis, and how far it is from the first to the second.
  locate(axis, x) {
    const nodes = this.axes[axis];
    const last = nodes.length - 1;
    const width = this.high[axis] - this.low[axis];
    if (last === 0) return [0, 0, 0];
    if (this.periodic[axis]) {
      x = this.low[axis] + ((((x - this.low[axis]) % width) + width) % width);
      if (x < nodes[0]) x += width;
      if (x >= nodes[last]) return [last, 0, (x - nodes[last]) / (nodes[0] + width - nodes[last])];
    }
    let first = 0;
    let beyond = last;
    while (beyond - first > 1) {
      const middle = (first + beyond) >> 1;
      if (nodes[middle] <= x) first = middle; else beyond = middle;
    }
    const share = (x - nodes[first]) / (nodes[first + 1] - nodes[first]);
    return [first, first + 1, Math.min(Math.max(share, 0), 1)];
  }

  // The nodes of two axes, the others held `at`.  [sizes[a] * sizes[b]], row by row of b
  plane(field, [a, b], at) {
    const d = this.sizes.length;
    const strides = Array(d).fill(1);
    for (let axis = d - 2; axis >= 0; axis--) strides[axis] = strides[axis + 1] * this.sizes[axis + 1];
    let corners = [[0, 1]];
    for (let axis = 0; axis < d; axis++) {
      if (axis === a || axis === b) continue;
      const [first, second, share] = this.locate(axis, at[axis]);
      corners = corners.flatMap(([place, weight]) => [
        [place + first * strides[axis], weight * (1 - share)],
        [place + second * strides[axis], weight * share],
      ]).filter(([, weight]) => weight > 0);
    }
    const found = new Float32Array(this.sizes[a] * this.sizes[b]);
    for (const [place, weight] of corners) {
      for (let j = 0, k = 0; j < this.sizes[b]; j++) {
        for (let i = 0; i < this.sizes[a]; i++, k++) {
          found[k] += weight * field[place + i * strides[a] + j * strides[b]];
        }
      }
    }
    return found;
  }

  // A picture of so many points, from the low to the high end of both axes; the first row is the lowest.
  raster(field, axes, at, points) {
    const plane = this.plane(field, axes, at);
    const [a, b] = axes;
    const along = (axis) => Array.from({ length: points }, (_, k) =>
      this.locate(axis, this.low[axis] + (this.high[axis] - this.low[axis]) * Math.min((k + 0.5) / points, 0.999999)));
    const xs = along(a);
    const ys = along(b);
    const wide = this.sizes[a];
    const found = new Float32Array(points * points);
    for (let j = 0, k = 0; j < points; j++) {
      const [y0, y1, v] = ys[j];
      for (let i = 0; i < points; i++, k++) {
        const [x0, x1, u] = xs[i];
        const below = plane[y0 * wide + x0] * (1 - u) + plane[y0 * wide + x1] * u;
        const above = plane[y1 * wide + x0] * (1 - u) + plane[y1 * wide + x1] * u;
        found[k] = below * (1 - v) + above * v;
      }
    }
    return found;
  }

  line(field, axis, points) {
    return Array.from({ length: points }, (_, k) => {
      const x = this.low[axis] + (this.high[axis] - this.low[axis]) * k / (points - 1) * 0.999999;
      const [first, second, share] = this.locate(axis, x);
      return [x, field[first] * (1 - share) + field[second] * share];
    });
  }

  at(field, state) {
    const axes = state.length > 1 ? [0, 1] : null;
    if (axes === null) {
      const [first, second, share] = this.locate(0, state[0]);
      return field[first] * (1 - share) + field[second] * share;
    }
    const plane = this.plane(field, axes, state);
    const [x0, x1, u] = this.locate(0, state[0]);
    const [y0, y1, v] = this.locate(1, state[1]);
    const wide = this.sizes[0];
    return (plane[y0 * wide + x0] * (1 - u) + plane[y0 * wide + x1] * u) * (1 - v)
      + (plane[y1 * wide + x0] * (1 - u) + plane[y1 * wide + x1] * u) * v;
  }

  greedy(state) {
    const found = Array.from({ length: this.n }, (_, k) => this.at(this.field("value", k), state));
    return found.indexOf(Math.max(...found));
  }
}

// --- drawing ---

const POINTS = 180;

function fitted(canvas, ratio) {
  const width = Math.max(canvas.parentElement.clientWidth - 0, 220);
  const height = Math.round(Math.min(width * ratio, 420));
  const dense = window.devicePixelRatio || 1;
  canvas.width = width * dense;
  canvas.height = height * dense;
  const context = canvas.getContext("2d");
  context.scale(dense, dense);
  context.clearRect(0, 0, width, height);
  return { context, width, height };
}

function paint(raster, low, high, colours) {
  const image = new ImageData(POINTS, POINTS);
  const shades = Array.from({ length: 256 }, (_, k) => between(colours, k / 255));
  for (let j = 0; j < POINTS; j++) {
    for (let i = 0; i < POINTS; i++) {
      const share = high > low ? (raster[j * POINTS + i] - low) / (high - low) : 0.5;
      const colour = shades[Math.min(Math.max(Math.round(share * 255), 0), 255)];
      const place = 4 * ((POINTS - 1 - j) * POINTS + i);
      image.data[place] = colour[0];
      image.data[place + 1] = colour[1];
      image.data[place + 2] = colour[2];
      image.data[place + 3] = 255;
    }
  }
  const made = document.createElement("canvas");
  made.width = made.height = POINTS;
  made.getContext("2d").putImageData(image, 0, 0);
  return made;
}

// Draws a raster with axes, a colour bar, and what lies on it; how states become pixels.
function drawMap(canvas, { raster, low, high, colours, smooth = true, names, axes, box, marks, overlays, says }) {
  const { context, width, height } = fitted(canvas, 0.78);
  const edge = { left: 50, right: 62, top: 8, bottom: 36 };
  const inner = { width: width - edge.left - edge.right, height: height - edge.top - edge.bottom };
  const [a, b] = axes;
  const toX = (x) => edge.left + (x - box.low[a]) / (box.high[a] - box.low[a]) * inner.width;
  const toY = (y) => edge.top + inner.height - (y - box.low[b]) / (box.high[b] - box.low[b]) * inner.height;
  context.imageSmoothingEnabled = smooth;
  context.drawImage(paint(raster, low, high, colours), edge.left, edge.top, inner.width, inner.height);
  context.save();
  context.beginPath();
  context.rect(edge.left, edge.top, inner.width, inner.height);
  context.clip();
  for (const overlay of overlays) overlay(context, toX, toY);
  context.restore();
  context.font = "11px system-ui, sans-serif";
  context.fillStyle = theme.colour("muted");
  context.strokeStyle = theme.colour("line");
  context.strokeRect(edge.left, edge.top, inner.width, inner.height);
  context.textAlign = "center";
  for (const tick of ticks(box.low[a], box.high[a], Math.max(2, Math.floor(inner.width / 70)))) {
    context.fillText(num(tick, 3), toX(tick), height - edge.bottom + 14);
  }
  context.fillText(names[a], edge.left + inner.width / 2, height - 5);
  context.textAlign = "right";
  for (const tick of ticks(box.low[b], box.high[b], 4)) context.fillText(num(tick, 3), edge.left - 6, toY(tick) + 4);
  context.save();
  context.translate(10, edge.top + inner.height / 2);
  context.rotate(-Math.PI / 2);
  context.textAlign = "center";
  context.fillText(names[b], 0, 0);
  context.restore();
  drawBar(context, width - edge.right + 10, edge.top, inner.height, low, high, colours, marks);
  canvas.setAttribute("aria-label", says);
  canvas.places = { edge, inner, toX, toY };
}

function drawBar(context, x, y, height, low, high, colours, marks) {
  for (let k = 0; k < height; k++) {
    context.fillStyle = `rgb(${between(colours, 1 - k / height).map(Math.round).join(",")})`;
    context.fillRect(x, y + k, 10, 1.5);
  }
  context.strokeStyle = theme.colour("line");
  context.strokeRect(x, y, 10, height);
  context.fillStyle = theme.colour("muted");
  context.textAlign = "left";
  const shown = marks ?? (high > low ? ticks(low, high, 4) : [low]).map((value) => [value, num(value, 3)]);
  for (const [value, name] of shown) {
    const share = high > low ? (value - low) / (high - low) : 0.5;
    context.fillText(name, x + 14, y + height - share * height + 4, 46);
  }
}

// A path [[...state]] over two axes; the pen is lifted where a periodic axis jumps across its seam.
function pathOverlay(path, [a, b], box, colour, dashes) {
  return (context, toX, toY) => {
    for (const [style, width] of [["rgba(0,0,0,0.85)", 4], [colour, 2]]) {
      context.strokeStyle = style;
      context.lineWidth = width;
      context.setLineDash(style === colour ? dashes : []);
      context.beginPath();
      path.forEach((state, k) => {
        const before = path[k - 1];
        const jumps = before && [a, b].some((axis) => Math.abs(state[axis] - before[axis]) > 0.5 * (box.high[axis] - box.low[axis]));
        if (k === 0 || jumps) context.moveTo(toX(state[a]), toY(state[b]));
        else context.lineTo(toX(state[a]), toY(state[b]));
      });
      context.stroke();
    }
    context.setLineDash([]);
    if (path.length) dotAt(context, toX(path[0][a]), toY(path[0][b]), 4, "#ffffff");
  };
}

function dotAt(context, x, y, radius, colour) {
  context.beginPath();
  context.arc(x, y, radius, 0, 2 * Math.PI);
  context.fillStyle = colour;
  context.fill();
  context.lineWidth = 1;
  context.strokeStyle = "#000000";
  context.stroke();
}

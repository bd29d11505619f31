// Elements, numbers, themes. Text from a run is only ever text: nothing of it becomes markup.

const SVG = "http://www.w3.org/2000/svg";

function el(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (name in made && name !== "list") made[name] = value;
    else made.setAttribute(name, value);
  }
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

function svg(tag, attributes = {}, ...children) {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

const byId = (id) => document.getElementById(id);

// A number in about so many digits, as people write it.
function num(value, digits = 4) {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  if (value === 0) return "0";
  const size = Math.abs(value);
  const text = size >= 1e6 || size < 1e-3 ? value.toExponential(Math.min(digits, 3) - 1).replace(/\.?0+e/, "e") : String(Number(value.toPrecision(digits)));
  return text.replaceAll("-", "−").replace("e+", "e");
}

// How many episodes there are, of how many where that was asked for.
function counted(count, wanted) {
  return wanted && count <= wanted ? `${count} of ${wanted} episodes` : `${count} ${count === 1 ? "episode" : "episodes"}`;
}

function controlName(control) {
  return control.map((value) => num(value, 3)).join(", ");
}

function fromBase64(text) {
  const bytes = atob(text);
  const made = new Uint8Array(bytes.length);
  for (let i = 0; i < bytes.length; i++) made[i] = bytes.charCodeAt(i);
  return made;
}

async function inflated(bytes) {
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

// --- themes ---

const theme = {
  chosen: "auto",
  heard: [],
  system: window.matchMedia("(prefers-color-scheme: dark)"),
  apply() {
    const dark = theme.chosen === "dark" || (theme.chosen === "auto" && theme.system.matches);
    document.documentElement.dataset.look = dark ? "dark" : "light";
    theme.colours = null;
    for (const listener of theme.heard) listener();
  },
  colour(name) {
    theme.colours ??= {};
    theme.colours[name] ??= getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
    return theme.colours[name];
  },
  start() {
    try { theme.chosen = localStorage.getItem("optimist-theme") ?? "auto"; } catch { /* a file may not keep it */ }
    const select = byId("theme");
    select.value = theme.chosen;
    select.addEventListener("change", () => {
      theme.chosen = select.value;
      try { localStorage.setItem("optimist-theme", theme.chosen); } catch { /* then not */ }
      theme.apply();
    });
    theme.system.addEventListener("change", theme.apply);
    theme.apply();
  },
};

// --- colours of maps ---

const VIRIDIS = [
  [68, 1, 84], [72, 36, 117], [65, 68, 135], [53, 95, 141], [42, 120, 142], [33, 145, 140],
  [34, 168, 132], [68, 191, 112], [122, 209, 81], [189, 223, 38], [253, 231, 37],
];

function between(colours, share) {
  const place = Math.min(Math.max(share, 0), 1) * (colours.length - 1);
  const first = Math.min(Math.floor(place), colours.length - 2);
  const part = place - first;
  return colours[first].map((value, k) => value + part * (colours[first + 1][k] - value));
}

function viridis() { return VIRIDIS; }

function incognita() {
  return ["known", "unknown"].map((name) => theme.colour(name).split(",").map(Number));
}

const CIVIDIS = [[0, 34, 78], [53, 69, 108], [102, 105, 112], [148, 142, 119], [200, 184, 102], [254, 232, 56]];
function cividis() { return CIVIDIS; }

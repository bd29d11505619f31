// Many runs side by side: for every problem and agent the median over its runs, with a band; each run to open.

const COLOURS = ["blue", "orange", "green", "pink", "muted", "ink"];

function quantile(sorted, share) {
  const place = share * (sorted.length - 1);
  const first = Math.floor(place);
  const rest = place - first;
  return rest ? sorted[first] * (1 - rest) + sorted[first + 1] * rest : sorted[first];
}

// Median and quartiles of every episode over runs, as long as half of them have come so far.
function bands(runs) {
  const longest = Math.max(0, ...runs.map((run) => run.totals.length));
  const found = [];
  for (let k = 0; k < longest; k++) {
    const totals = runs.map((run) => run.totals[k]).filter(Number.isFinite).sort((a, b) => a - b);
    if (totals.length * 2 < runs.length) break;
    found.push({ episode: k + 1, median: quantile(totals, 0.5), low: quantile(totals, 0.25), high: quantile(totals, 0.75), count: totals.length });
  }
  return found;
}

function grouped(runs, name) {
  const found = new Map();
  for (const run of runs) found.set(run[name], [...(found.get(run[name]) ?? []), run]);
  return found;
}

class SweepView {
  constructor(root, open) { Object.assign(this, { root, open, said: "" }); }

  show(listing) {
    const text = JSON.stringify(listing);
    byId("title").textContent = listing.name;
    document.title = `${listing.name} – Optimist`;
    const done = listing.runs.filter((run) => run.wanted && run.totals.length >= run.wanted).length;
    byId("status").textContent = `${listing.runs.length} runs, ${done} of them done`;
    if (text === this.said) return;
    this.said = text;
    this.listing = listing;
    this.draw();
  }

  draw() {
    if (!this.listing) return;
    const focused = document.activeElement?.dataset?.run;
    this.root.className = "";
    const sound = this.listing.runs.filter((run) => !run.error);
    const parts = [...grouped(sound, "problem")].map(([problem, runs]) => this.problem(problem, runs));
    const broken = this.listing.runs.filter((run) => run.error);
    const unread = broken.length ? card("Runs that cannot be read", null, el("ul", {}, ...broken.map((run) => el("li", { className: "warn" }, `${run.id}: ${run.error}`)))) : null;
    this.root.replaceChildren(el("div", { className: "grid" }, ...parts.map(([made]) => made), unread));
    for (const [, draw] of parts) draw();
    if (focused) this.root.querySelector(`[data-run="${CSS.escape(focused)}"]`)?.focus();
  }

  problem(problem, runs) {
    const box = el("div");
    const best = runs[0].best_known;
    const agents = [...grouped(runs, "agent")];
    const series = [];
    if (best !== null) series.push({ label: `best known (${num(best)})`, colour: "ink", dashed: true, points: [[1, best], [Math.max(2, ...runs.map((run) => run.totals.length)), best]] });
    const rows = [];
    agents.forEach(([agent, mine], k) => {
      const found = bands(mine);
      const colour = COLOURS[k % COLOURS.length];
      series.push({ colour, kind: "area", points: found.map((one) => [one.episode, one.low, one.high]) });
      series.push({ label: `${agent} (${mine.length})`, colour, points: found.map((one) => [one.episode, one.median]) });
      if (mine.length > 1) for (const run of mine.slice(0, 20)) series.push({ colour, thin: true, points: run.totals.map((total, i) => [i + 1, total]) });
      const last = found.at(-1);
      const settled = mine.map((run) => run.settled_at).filter(Number.isFinite).sort((a, b) => a - b);
      rows.push([agent, mine.length, last?.episode, last?.median, last ? `${num(last.low)} to ${num(last.high)}` : "–",
        settled.length ? `${num(quantile(settled, 0.5))} (${settled.length})` : "–", quantile(mine.map((run) => run.seconds ?? 0).sort((a, b) => a - b), 0.5)]);
    });
    const said = rows.map(([agent, count, episode, median]) => `${agent}, ${count} runs: median ${num(median)} in episode ${episode}`).join("; ");
    const items = runs.map((run) => el("li", {}, el("button", { type: "button", "data-run": run.id, onclick: () => this.open(run.id) },
      `${run.agent}, seed ${run.seed}: ${counted(run.totals.length, run.wanted)}${run.totals.length ? `, last ${num(run.totals.at(-1))}` : ""}`)));
    const made = card(String(problem), "Median over the runs of an agent, quartiles as a band, every run as a thin line.", box,
      table(["agent", "runs", "episode", "median", "quartiles", "settled after (runs)", "seconds"], rows),
      el("details", { open: runs.length <= 4 }, el("summary", {}, `open one of ${runs.length} runs`), el("ul", { className: "runs" }, ...items)));
    return [made, () => chart(box, { series, x: "episode", y: "total reward", height: 260, says: `${problem}. ${said}` })];
  }
}

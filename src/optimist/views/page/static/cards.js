// What is not a map: learning curve, times, drift, and in words what was told, chosen and found.

function card(title, note, ...children) {
  return el("section", { className: "card", "aria-label": title }, el("h2", {}, title),
    note ? el("p", { className: "note" }, note) : null, ...children);
}

function curveCard(view) {
  const box = el("div");
  const rows = tableOf("as a table", () => [["episode", "total", "expected", "steps", "transitions", "ending"],
    view.doc.episodes.map(([steps, total, transitions, ending, expected], k) => [k + 1, total, expected, steps, transitions, ending])]);
  const made = card("Learning curve", "What each episode earned, what was expected when it began, and the best anybody found.", box, rows);
  made.redraw = () => {
    const { episodes, best_known: best, plans } = view.doc;
    const until = view.until();
    const series = [];
    if (best !== null) series.push({ label: `best known (${num(best)})`, colour: "green", dashed: true,
      points: [[1, best], [Math.max(episodes.length, 2), best]] });
    const band = plans.map((plan) => plan.rehearsal);
    series.push({ label: "earned", colour: "blue", points: episodes.map(([, total], k) => [k + 1, total]) });
    series.push({ label: "expected", colour: "orange", kind: episodes.length > 60 ? "line" : "dashes", thin: true,
      points: episodes.map(([, , , , expected], k) => [k + 1, expected ?? NaN]) });
    const done = episodes.filter(([, , transitions]) => transitions <= until).length;
    const expects = band[view.plan]?.expected;
    const said = episodes.length ? `${episodes.length} episodes; the last earned ${num(episodes.at(-1)[1])}, the best ${num(Math.max(...episodes.map((row) => row[1])))}` : "no episode has ended yet";
    chart(box, { series, x: "episode", y: "total reward", now: done && !view.atEnd() ? done : null,
      says: `Learning curve: ${said}${best === null ? "" : `; best known ${num(best)}`}${expects === undefined ? "" : `; now expected ${num(expects)}`}` });
    box.dataset.episodes = episodes.length;
    rows.fill();
  };
  return made;
}

function timeCard(view) {
  const box = el("div");
  const rows = tableOf("as a table", () => [["after", "fitting s", "predicting s", "planning s", "sweeps", "residual"],
    view.doc.plans.map((p) => [p.n_transitions, p.fit_seconds, p.predict_seconds, p.plan_seconds, p.sweeps, p.residual])]);
  const made = card("Time spent", "Seconds of every update: fitting the model, predicting with it, planning.", box, rows);
  made.redraw = () => {
    const { plans } = view.doc;
    const wide = Math.max(2, Math.min(18, ((box.clientWidth || 380) - 70) / Math.max(plans.length, 1) - 2));
    const stacks = plans.map((p) => [p.fit_seconds, p.fit_seconds + p.predict_seconds, p.fit_seconds + p.predict_seconds + p.plan_seconds]);
    const bars = (colour, label, low, high) => ({ colour, label, kind: "bars", wide, points: stacks.map((stack, k) => [k + 1, low < 0 ? 0 : stack[low], stack[high]]) });
    const all = stacks.reduce((sum, stack) => sum + stack[2], 0);
    chart(box, { series: plans.length ? [bars("blue", "fitting", -1, 0), bars("green", "predicting", 0, 1), bars("orange", "planning", 1, 2)] : [],
      x: "plan", y: "seconds", now: plans.length ? view.plan + 1 : null, spread: [0.5, plans.length + 0.5],
      says: `${plans.length} updates took ${num(all, 3)} seconds in all` });
    rows.fill();
  };
  return made;
}

function driftCard(view) {
  const box = el("div");
  const rule = view.doc.header.settings.stopping;
  const note = rule ? `Learning stops when both stay below their thresholds ${rule.patience} times in a row.` : "";
  const rows = tableOf("as a table", () => [["after", "of the model", "of the uncertainty", "mean uncertainty", "settled"],
    view.doc.plans.map((p) => [p.n_transitions, p.mean_drift, p.uncertainty_drift, p.mean_uncertainty, p.settled ? "yes" : "no"])]);
  const made = card("Drift: how much each update changed", note, box, rows);
  made.redraw = () => {
    const { plans } = view.doc;
    const of = (name) => plans.map((plan, k) => [k + 1, plan[name] ?? NaN]);
    const flat = (value) => [[1, value], [Math.max(plans.length, 2), value]];
    const series = [
      { label: "of the model (cells)", colour: "blue", points: of("mean_drift") },
      { label: "of the uncertainty", colour: "orange", points: of("uncertainty_drift") },
      { label: "mean uncertainty", colour: "muted", thin: true, points: of("mean_uncertainty") },
    ];
    if (rule) series.push(
      { label: `its threshold ${num(rule.mean_drift_tolerance)}`, colour: "blue", dashed: true, points: flat(rule.mean_drift_tolerance) },
      { label: `its threshold ${num(rule.uncertainty_drift_tolerance)}`, colour: "orange", dashed: true, points: flat(rule.uncertainty_drift_tolerance) });
    const plan = plans[view.plan];
    chart(box, { series, log: true, x: "plan", now: plans.length ? view.plan + 1 : null,
      says: plan ? `Drift of plan ${view.plan + 1}: model ${num(plan.mean_drift)}, uncertainty ${num(plan.uncertainty_drift)}` : "no plan yet" });
    rows.fill();
  };
  return made;
}

// --- words ---

function terms(pairs) {
  return el("dl", {}, ...pairs.filter(([, value]) => value !== null && value !== undefined && value !== "")
    .flatMap(([name, value]) => [el("dt", {}, name), el("dd", {}, typeof value === "number" ? num(value, 6) : value)]));
}

function tree(value) {
  if (Array.isArray(value)) return document.createTextNode(value.map((item) => (typeof item === "number" ? num(item, 5) : JSON.stringify(item))).join(", ") || "none");
  if (value === null) return document.createTextNode("–");
  if (typeof value !== "object") return document.createTextNode(typeof value === "number" ? num(value, 6) : String(value));
  return terms(Object.entries(value).map(([name, inner]) => [name, inner !== null && typeof inner === "object" && !Array.isArray(inner)
    ? el("div", { className: "tree" }, tree(inner)) : el("span", {}, tree(inner))]));
}

function folded(title, value, open = false) {
  return el("details", { open }, el("summary", {}, title), tree(value));
}

function planCard(view) {
  const box = el("div");
  const made = card("This plan", null, box);
  made.redraw = () => {
    const plan = view.doc.plans[view.plan];
    if (!plan) { box.replaceChildren(el("p", { className: "note" }, view.unplanned())); return; }
    const said = plan.rehearsal;
    const interval = said.low === null || said.low === undefined || said.high === null ? "" : ` (${num(said.low)} to ${num(said.high)})`;
    const open = box.querySelector("details")?.open ?? false;
    box.replaceChildren(
      terms([
        ["made after", `${plan.n_transitions} transitions`],
        ["nodes", said.nodes ? said.nodes.join(" × ") : null],
        ["placed", said.layout],
        ["steps held", said.mean_hold === undefined ? null : `${num(said.mean_hold, 3)} on average, at most ${said.hold}`],
        ["looks ahead", said.lookahead],
        ["expects to earn", said.expected === undefined ? null : `${num(said.expected)}${interval}`],
        ["tried", said.tried ? said.tried.map(([name, total]) => `${name}: ${num(total)}`).join("; ") : null],
        ["sweeps", `${plan.sweeps}, residual ${num(plan.residual)}${plan.converged ? "" : " (not converged)"}`],
        ["known", `${num(100 * (1 - plan.mean_uncertainty), 3)} %`],
        ["settled", plan.settled ? "yes: learning stops here" : "no"],
      ]),
      folded("the model, as it says itself", plan.model, open));
  };
  return made;
}

function taskCard(view) {
  const { header, names } = view.doc;
  const task = header.task;
  const box = el("div");
  const axes = task ? table(["coordinate", "from", "to", "periodic"], names.map((name, k) => [name, task.low[k], task.high[k], task.periodic[k] ? "yes" : "no"])) : null;
  const told = el("div", {}, axes, task ? terms([
    ["controls", task.control_low ? `any from (${controlName(task.control_low)}) to (${controlName(task.control_high)})` : null],
    [task.control_low ? "planned with" : "controls", task.controls.map((control) => `(${controlName(control)})`).join(" ")],
    ["discount", task.discount], ["best conceivable", task.optimistic_value], ["longest episode", `${task.max_steps} steps`],
  ]) : null);
  const made = card("What was told, what was found", null, told, box);
  made.redraw = () => {
    const believed = view.doc.plans[view.plan]?.rehearsal?.believed; // what nobody told is learned, plan by plan
    if (believed) told.replaceChildren(el("ul", {}, ...believed.slice(1).map((line) => el("li", {}, line.trim()))));
    const { marks, void: left, complaints, outside } = view.doc;
    const found = complaints.map((text) => el("li", { className: "warn" }, text));
    if (left.length) found.push(el("li", {}, `Not learned from: transitions ${left.join(", ")}.`));
    if (marks.length) found.push(el("li", {}, `Marks: ${marks.map(([number, isVoid, reason]) => `${number} ${isVoid ? "void" : "taken back"} (${reason})`).join("; ")}.`));
    if (outside) found.push(el("li", {}, `${outside} observations lay outside of the box; the plan saw them at its edge.`));
    box.replaceChildren(el("h2", {}, "Doubts and warnings"), found.length ? el("ul", {}, ...found) : el("p", { className: "note" }, "None."));
  };
  return made;
}

function settingsCard(view, versions) {
  const { header, format } = view.doc;
  const shown = new Set(["task", "settings", "axis_names", "format_version"]);
  const rest = Object.fromEntries(Object.entries(header).filter(([name]) => !shown.has(name)));
  const made = card("Settings and versions", null, tree({ ...rest, "format of the record": format, ...versions }), folded("all settings", header.settings));
  made.redraw = () => {};
  return made;
}

// One run: a slider through its plans, and everything as it was then.

class RunView {
  constructor(source, id, root) {
    Object.assign(this, { source, id, root, version: "", doc: null, steps: null, plan: -1, follow: true, map: null, maps: new Map() });
    this.action = -1;
    this.what = "value";
    this.shows = { visits: true, episode: true, rehearsed: true, nodes: false };
    this.cursor = null;
  }

  // --- data ---

  async poll() {
    let said = await this.source.run(this.id, this.version, this.steps?.count ?? 0);
    if (said.same) return false;
    const [file] = said.version.split(".");
    if (file !== "e" && file !== "none") {
      if (this.file !== undefined && this.file !== file) { this.reset(); said = await this.source.run(this.id, "", 0); }
      this.file = said.version.split(".")[0];
    }
    this.version = said.version;
    this.error = said.error;
    if (said.run) this.take(said);
    return true;
  }

  reset() {
    Object.assign(this, { doc: null, steps: null, map: null, plan: -1, follow: true, player: null });
    this.maps.clear();
    if (this.playing) this.playHistory();
  }

  take(said) {
    const fresh = this.doc === null;
    const before = this.doc?.plans.length ?? 0;
    this.doc = said.run;
    this.steps ??= new Steps(this.doc.names.length);
    if (said.steps && !this.steps.take(said.steps)) { this.steps.clear(); this.version = ""; }
    if (fresh) this.build();
    const count = this.doc.plans.length;
    if (this.follow) this.plan = count - 1;
    this.plan = Math.min(this.plan, count - 1);
    if (!fresh && count > before) byId("news").textContent = `Plan ${count} was made after ${this.doc.plans.at(-1).n_transitions} transitions.`;
    this.refresh();
  }

  atEnd() { return this.plan === this.doc.plans.length - 1; }

  until() { return this.atEnd() ? this.steps.count : this.doc.plans[this.plan]?.n_transitions ?? this.steps.count; }

  episodeNow() { return this.steps.episodes[this.until() - 1] ?? null; }

  // --- elements ---

  build() {
    const { names, header } = this.doc;
    const { low, high, controls } = header.task;
    this.axes = [0, Math.min(1, names.length - 1)];
    this.at = this.steps.states[0]?.slice() ?? low.map((value, k) => (value + high[k]) / 2);
    this.player = new Player(this);
    this.cards = [curveCard(this), this.valueCard(), this.unknownCard(), planCard(this), driftCard(this), timeCard(this), taskCard(this),
      settingsCard(this, this.source.data?.versions ?? {})];
    const [curve, value, unknown, plan, drift, time, task, settings] = this.cards;
    this.root.className = "grid";
    this.root.replaceChildren(this.timeBar(), this.lookCard(names, controls), value, unknown, this.player.element, ...[this.player.frame].filter(Boolean), curve, drift, time,
      ...[this.player.other, plan, task, settings].filter(Boolean));
    this.width = 0;
    new ResizeObserver(() => {
      if (this.width !== this.root.clientWidth && this.doc) { this.width = this.root.clientWidth; this.redraw(true); }
    }).observe(this.root);
  }

  timeBar() {
    const step = (change) => this.choose(this.plan + change);
    this.slider = el("input", { type: "range", id: "plan", min: 1, max: 1, value: 1, "aria-label": "plan, from the first to the last",
      oninput: () => this.choose(Number(this.slider.value) - 1) });
    this.when = el("span", { className: "state" });
    this.playButton = el("button", { type: "button", id: "history", onclick: () => this.playHistory() }, "play all plans");
    this.latest = el("button", { type: "button", id: "latest", onclick: () => this.choose(this.doc.plans.length - 1) }, "latest");
    return el("section", { className: "card bar", "aria-label": "time" }, el("div", { className: "row" }, this.when, el("div", { className: "steps" },
      el("button", { type: "button", id: "earlier", "aria-label": "the plan before", onclick: () => step(-1) }, "◀"), this.slider,
      el("button", { type: "button", id: "later", "aria-label": "the plan after", onclick: () => step(1) }, "▶")), this.latest, this.playButton));
  }

  choose(plan) {
    const last = this.doc.plans.length - 1;
    this.plan = Math.min(Math.max(plan, 0), last);
    this.follow = this.plan === last;
    this.refresh();
  }

  playHistory() {
    if (this.playing) { clearInterval(this.playing); this.playing = null; this.playButton.textContent = "play all plans"; return; }
    this.playButton.textContent = "stop";
    this.choose(0);
    this.playing = setInterval(() => {
      this.choose(this.plan + 1);
      if (this.follow) this.playHistory();
    }, 700);
  }

  lookCard(names, controls) {
    const axis = (which, title) => {
      const select = el("select", { id: `axis-${which}`, onchange: () => {
        const other = 1 - which;
        const chosen = Number(select.value);
        if (chosen === this.axes[other]) this.axes[other] = this.axes[which];
        this.axes[which] = chosen;
        this.fillLook();
        this.redraw();
      } }, ...names.map((name, k) => el("option", { value: k }, name)));
      return [el("label", {}, title, select), select];
    };
    const [across, first] = axis(0, "across");
    const [up, second] = axis(1, "up");
    this.axisSelects = [first, second];
    const action = el("select", { id: "action", onchange: () => { this.action = Number(action.value); this.redraw(); } },
      el("option", { value: -1 }, "over all"), ...controls.map((control, k) => el("option", { value: k }, `only ${controlName(control)}`)));
    const what = el("select", { id: "what", onchange: () => { this.what = what.value; this.redraw(); } },
      el("option", { value: "value" }, "value"), el("option", { value: "greedy" }, "best control"));
    const box = (name, title) => el("label", {}, el("input", { type: "checkbox", id: `show-${name}`, checked: this.shows[name],
      onchange: (event) => { this.shows[name] = event.target.checked; this.redraw(); } }),
      el("span", { className: `mark ${name}`, "aria-hidden": "true" }), title);
    this.held = el("div");
    const made = card("What the maps show", null, el("div", { className: "row" }, ...(names.length > 1 ? [across, up] : []),
      el("label", {}, "control", action), el("label", {}, "first map", what)),
    el("div", { className: "row" }, box("visits", "visited states"), box("episode", "path of the episode"), box("rehearsed", "rehearsed path"), box("nodes", "nodes of the grid")), this.held);
    made.classList.add("wide");
    this.fillLook();
    return made;
  }

  fillLook() {
    this.axisSelects.forEach((select, which) => { select.value = this.axes[which]; });
    this.held.replaceChildren(...this.doc.names.map((name, k) => {
      if (this.axes.includes(k)) return null;
      const out = el("output", {}, num(this.at[k], 3));
      const input = el("input", { type: "range", id: `held-${k}`, "aria-label": `${name} is held at`,
        oninput: () => { this.at[k] = Number(input.value); out.textContent = num(this.at[k], 3); this.redraw(); } });
      return el("label", { className: "slider" }, name, input, out);
    }).filter(Boolean));
    this.fitHeld();
  }

  // Sliders go as far as the plan does: bounds that nobody told grow with what is seen.
  fitHeld() {
    const { low, high } = this.map ?? this.doc.header.task;
    for (const input of this.held.querySelectorAll("input")) {
      const k = Number(input.id.slice("held-".length));
      Object.assign(input, { min: low[k], max: high[k], step: (high[k] - low[k]) / 200, value: this.at[k] });
    }
  }

  mapCard(title, note, id) {
    const canvas = el("canvas", { className: "map", id, role: "img", tabIndex: 0, "aria-label": title });
    const read = el("p", { className: "note read", "aria-live": "polite" }, "Point at the map, or move over it with the arrow keys, to read it.");
    const words = el("p", { className: "note" }, note);
    const line = el("div");
    const made = el("section", { className: "card", "aria-label": title }, el("h2", {}, title), words, el("div", {}, canvas), line, read);
    canvas.addEventListener("pointermove", (event) => this.point(canvas, read, event));
    canvas.addEventListener("keydown", (event) => this.key(canvas, read, event));
    return Object.assign(made, { canvas, read, line, words });
  }

  valueCard() {
    const made = this.mapCard("Value", "What the plan expects from here on: optimistic where little is known.", "map-value");
    made.redraw = () => {
      const { controls } = this.doc.header.task;
      if (!this.map) return this.blank(made);
      if (this.what === "greedy" && this.axes[0] !== this.axes[1]) {
        const rasters = controls.map((_, k) => this.map.raster(this.map.field("value", k), this.axes, this.at, POINTS));
        const raster = rasters[0].map((_, i) => rasters.reduce((best, one, k) => (one[i] > rasters[best][i] ? k : best), 0));
        return this.drawOn(made, { raster, low: 0, high: Math.max(controls.length - 1, 1), colours: cividis(), smooth: false,
          marks: controls.map((control, k) => [k, controlName(control)]), title: "best control" });
      }
      return this.field(made, "value", viridis());
    };
    return made;
  }

  unknownCard() {
    const made = this.mapCard("Uncertainty", "From 0 (known) to 1 (nothing is known here): terra incognita.", "map-unknown");
    made.redraw = () => (this.map ? this.field(made, "uncertainty", incognita(), 0, 1) : this.blank(made));
    return made;
  }

  field(made, what, colours, low, high) {
    const field = this.map.field(what, this.action);
    if (this.axes[0] === this.axes[1]) {
      made.canvas.hidden = true;
      chart(made.line, { series: [{ colour: "blue", points: this.map.line(field, 0, 201) }], whole: false, x: this.doc.names[0], y: what, says: `${what} along ${this.doc.names[0]}` });
      return;
    }
    const raster = this.map.raster(field, this.axes, this.at, POINTS);
    let [least, most] = [Infinity, -Infinity];
    for (const value of raster) { least = Math.min(least, value); most = Math.max(most, value); }
    this.drawOn(made, { raster, low: low ?? least, high: high ?? most, colours, title: what, span: [least, most] });
  }

  drawOn(made, { title, span, ...options }) {
    const { names, doc, axes, action } = { names: this.doc.names, doc: this.doc, axes: this.axes, action: this.action };
    const plan = doc.plans[this.plan];
    const held = names.map((name, k) => (axes.includes(k) ? null : `${name} ${num(this.at[k], 3)}`)).filter(Boolean).join(", ");
    const says = `${title} over ${names[axes[0]]} and ${names[axes[1]]}${held ? ` at ${held}` : ""}, `
      + `${action < 0 ? "over all controls" : `for control ${controlName(doc.header.task.controls[action])}`}, after ${plan.n_transitions} transitions`
      + (span ? `: from ${num(span[0])} to ${num(span[1])}` : "");
    drawMap(made.canvas, { ...options, names, axes, box: this.map, overlays: this.overlays(), says });
  }

  overlays() {
    const { shows, map, axes } = this;
    const [a, b] = axes;
    const found = [];
    if (shows.nodes) found.push((context, toX, toY) => {
      context.fillStyle = "rgba(255,255,255,0.75)";
      const ys = map.axes[b].map(toY);
      for (const x of map.axes[a].map(toX)) for (const y of ys) { context.fillStyle = "#000"; context.fillRect(x - 1, y - 1, 2, 2); context.fillStyle = "#fff"; context.fillRect(x - 0.5, y - 0.5, 1, 1); }
    });
    if (shows.visits) found.push((context, toX, toY) => {
      for (let k = 0; k < this.until(); k++) dotAt(context, toX(this.steps.states[k][a]), toY(this.steps.states[k][b]), 1.8, "#e66100");
    });
    if (shows.rehearsed) found.push(pathOverlay(map.path, axes, map, "#40e0ff", [6, 4]));
    if (shows.episode && this.episodeNow() !== null) found.push(pathOverlay(this.steps.path(this.episodeNow(), this.until()).states, axes, map, "#ffffff", []));
    if (this.cursor) found.push((context, toX, toY) => {
      dotAt(context, toX(this.cursor[a]), toY(this.cursor[b]), 5, "#ff2fa0");
    });
    return found;
  }

  blank(made) {
    const { context, width, height } = fitted(made.canvas, 0.4);
    const text = !this.doc.plans.length ? this.unplanned() : this.loading ? "…" : "No map of this plan was recorded.";
    context.fillStyle = theme.colour("muted");
    context.font = "14px system-ui, sans-serif";
    context.textAlign = "center";
    context.fillText(text, width / 2, height / 2);
    made.canvas.setAttribute("aria-label", text);
    made.canvas.places = null;
  }

  unplanned() { return this.doc.episodes.length ? "No plans of this agent are recorded." : "There is no plan yet."; }

  // --- reading a map ---

  point(canvas, read, event) {
    const places = canvas.places;
    if (!places || !this.map) return;
    const { edge, inner } = places;
    const share = [(event.offsetX - edge.left) / inner.width, 1 - (event.offsetY - edge.top) / inner.height];
    if (share.every((value) => value >= 0 && value <= 1)) this.readAt(read, share, false);
  }

  key(canvas, read, event) {
    const moves = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowDown: [0, -1], ArrowUp: [0, 1] };
    if (!(event.key in moves) || !this.map) return;
    event.preventDefault();
    const from = this.cursor ?? this.at;
    const share = this.axes.map((axis, k) => (from[axis] - this.map.low[axis]) / (this.map.high[axis] - this.map.low[axis]) + 0.025 * moves[event.key][k]);
    this.readAt(read, share.map((value) => Math.min(Math.max(value, 0), 1)), true);
    this.redraw();
  }

  readAt(read, share, kept) {
    const state = this.at.slice();
    this.axes.forEach((axis, k) => { state[axis] = this.map.low[axis] + share[k] * (this.map.high[axis] - this.map.low[axis]); });
    if (kept) this.cursor = state;
    const { names, header } = this.doc;
    const value = this.map.at(this.map.field("value", this.action), state);
    const unknown = this.map.at(this.map.field("uncertainty", this.action), state);
    read.textContent = `${names.map((name, k) => `${name} ${num(state[k], 3)}`).join(", ")}: value ${num(value)}, uncertainty ${num(unknown, 2)}, `
      + `best control ${controlName(header.task.controls[this.map.greedy(state)])}`;
  }

  // --- drawing ---

  refresh() {
    const { plans } = this.doc;
    this.slider.max = Math.max(plans.length, 1);
    this.slider.value = this.plan + 1;
    const plan = plans[this.plan];
    this.when.textContent = plan ? `plan ${this.plan + 1} of ${plans.length}, after ${plan.n_transitions} transitions` : this.unplanned();
    this.slider.setAttribute("aria-valuetext", this.when.textContent);
    this.latest.setAttribute("aria-pressed", String(this.follow));
    document.documentElement.dataset.plans = plans.length;
    document.documentElement.dataset.plan = this.plan + 1;
    this.tell();
    this.fetchMap(plan);
    this.redraw();
  }

  tell() {
    const { header, episodes, finished, wanted, plans, settled } = this.doc;
    const name = `${header.problem ?? "a run"} · ${header.agent} · seed ${header.seed}`;
    byId("title").textContent = name;
    document.title = `${name} – Optimist`;
    const done = wanted && finished >= wanted;
    const known = plans.length ? `; ${num(100 * (1 - plans.at(-1).mean_uncertainty), 3)} % known` : "";
    const state = done ? "done" : "so far"; // whether somebody still writes, a reader cannot know
    const count = this.steps.count || episodes.at(-1)?.[2] || 0;
    byId("status").textContent = `${state}: ${counted(finished, wanted)}, ${count} transitions, ${plans.length} plans${known}${settled ? ", settled" : ""}`;
  }

  async fetchMap(plan) {
    if (!plan) { this.map = null; return; }
    const { doc } = this;
    const key = plan.n_transitions;
    this.wanted = key;
    if (!this.maps.has(key)) {
      if (!plan.map) this.maps.set(key, null);
      else {
        this.loading = true;
        let said = null;
        try { said = await this.source.map(this.id, plan); } catch { /* the server is gone: the page says so */ return; } finally { this.loading = false; }
        if (this.doc === null) return;
        const { periodic, low, high } = doc.header.task;
        this.maps.set(key, said && new PlanMap(said[0], said[1], periodic, ...planned(said[0].axes, low, high, periodic)));
        while (this.maps.size > 24) this.maps.delete(this.maps.keys().next().value);
      }
    }
    if (this.wanted !== key || this.doc === null) return;
    this.map = this.maps.get(key) ?? null;
    this.fitHeld();
    document.documentElement.dataset.map = this.map ? key : "none";
    this.redraw();
  }

  redraw(anew = false) {
    if (!this.doc || this.queued) { this.anew ||= anew; return; }
    this.queued = true;
    this.anew ||= anew;
    requestAnimationFrame(() => {
      this.queued = false;
      if (!this.doc) return;
      for (const made of this.cards) made.redraw();
      this.player.refresh(this.anew);
      this.player.frame?.redraw();
      this.anew = false;
    });
  }

  tick(time) { this.player?.tick(time); }
}

// What of the task's box was planned on: nodes reach its edges, unless an axis is periodic.
function planned(axes, low, high, periodic) {
  return [low.map((value, k) => (periodic[k] ? value : axes[k][0])), high.map((value, k) => (periodic[k] ? value : axes[k].at(-1)))];
}

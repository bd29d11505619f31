// An episode played: the system moving, and its coordinates over time.

class Player {
  constructor(view) {
    this.view = view;
    this.step = 0;
    this.episode = "current";
    this.playing = !window.matchMedia("(prefers-reduced-motion: reduce)").matches;
    this.last = 0;
    this.path = { states: [], actions: [], rewards: [] };
    this.draw = SYSTEMS[view.doc.header.problem] ?? null;
    this.canvas = el("canvas", { role: "img", "aria-label": "" });
    this.choice = el("select", { onchange: () => { this.episode = this.choice.value; this.step = 0; this.refresh(true); } });
    this.of = null; // which episode is played
    this.button = el("button", { type: "button", onclick: () => this.toggle() }, "pause");
    this.slider = el("input", { type: "range", min: 0, max: 0, value: 0, "aria-label": "step of the episode",
      oninput: () => { this.playing = false; this.step = Number(this.slider.value); this.show(); } });
    this.speed = el("select", {}, ...[["0.5", "half speed"], ["1", "normal"], ["4", "fast"]].map(([value, name]) => el("option", { value }, name)));
    this.speed.value = "1";
    this.repeat = el("input", { type: "checkbox" });
    this.words = el("p", { className: "note read" });
    this.charts = view.doc.names.map(() => el("div"));
    const controls = el("div", { className: "row" }, el("label", {}, "episode", this.choice), this.button, el("label", {}, "speed", this.speed), el("label", {}, this.repeat, "again and again"));
    this.element = this.draw
      ? card("The system, moving", null, controls, el("div", {}, this.canvas), this.slider, this.words)
      : card("Coordinates over time", null, controls, this.slider, this.words, ...this.charts);
    this.frame = this.draw ? null : frameCard(view);
    this.other = this.draw ? card("Coordinates over time", "Of the episode that is played.", ...this.charts) : null;
  }

  toggle() {
    const over = this.step >= this.path.states.length - 1;
    this.playing = !this.playing || over;
    if (over) this.step = 0;
    this.show();
  }

  // The path that is chosen, as far as it goes at the time that is shown.
  refresh(anew = false) {
    const { view } = this;
    const now = view.episodeNow();
    const rehearsed = view.map?.path ?? [];
    const names = [["current", now ? `of that time (${now})` : "of that time"]];
    for (let k = 1; k <= Math.max(view.doc.episodes.length, now ?? 0); k++) names.push([String(k), `number ${k}`]);
    if (rehearsed.length) names.push(["rehearsed", "rehearsed"]);
    if (names.length !== this.choice.length || this.choice.options[0].textContent !== names[0][1]) {
      this.choice.replaceChildren(...names.map(([value, name]) => el("option", { value }, name)));
    }
    if (!names.some(([value]) => value === this.episode)) this.episode = "current";
    this.choice.value = this.episode;
    const before = this.path.states.length;
    if (this.episode === "rehearsed") this.path = { states: rehearsed, actions: [], rewards: [] };
    else if (this.episode === "current") this.path = view.steps.path(now, view.until());
    else this.path = view.steps.path(Number(this.episode));
    const of = `${this.episode} ${this.episode === "current" ? now : ""}`;
    if (of !== this.of) this.step = 0;
    this.of = of;
    if (anew || before !== this.path.states.length) this.drawCharts();
    this.show();
  }

  drawCharts() {
    const { names, header } = this.view.doc;
    this.points = this.charts.map((box, axis) => chart(box, {
      height: 92, y: "", x: "", now: 0, spread: [0, Math.max(this.path.states.length - 1, 1)],
      series: [{ colour: "blue", label: names[axis], turn: header.task.periodic[axis] ? header.task.high[axis] - header.task.low[axis] : Infinity, points: this.path.states.map((state, k) => [k, state[axis]]), kind: "line" }],
      says: `${names[axis]} over ${this.path.states.length} steps, ${spanned(this.path.states.map((state) => state[axis]))}; `
        + `its axis goes from ${num(header.task.low[axis])} to ${num(header.task.high[axis])}`,
    }));
  }

  show() {
    const { states, actions, rewards } = this.path;
    this.step = Math.min(this.step, Math.max(states.length - 1, 0));
    this.button.textContent = this.playing && this.step < states.length - 1 ? "pause" : "play";
    this.slider.max = Math.max(states.length - 1, 0);
    this.slider.value = this.step;
    const state = states[this.step];
    if (!state) {
      this.words.textContent = this.view.doc.episodes.length ? "No transitions of this episode are recorded." : "Nothing has happened yet.";
      return;
    }
    const action = actions[this.step];
    const control = Array.isArray(action) ? action : this.view.doc.header.task.controls[action]; // any, or a listed one
    if (this.draw) this.draw(this.canvas, state, control);
    const where = this.view.doc.names.map((name, axis) => `${name} ${num(state[axis], 3)}`).join(", ");
    const earned = rewards.slice(0, this.step).reduce((sum, reward) => sum + reward, 0);
    this.words.textContent = `step ${this.step} of ${states.length - 1}: ${where}`
      + (control ? `; control ${controlName(control)}` : "") + (rewards.length ? `; earned so far ${num(earned)}` : "");
    this.canvas.setAttribute("aria-label", `${this.view.doc.header.problem}, ${this.words.textContent}`);
    for (const point of this.points ?? []) point(this.step);
  }

  // Called with the time at every frame.
  tick(time) {
    const states = this.path.states.length;
    const pace = 1000 / (20 * Number(this.speed.value));
    if (!this.playing || states < 2 || time - this.last < pace) return;
    this.last = time;
    if (this.step >= states - 1) { // of a run that goes on more may come; drawing without end would slow it
      this.rest ??= time;
      if (!this.repeat.checked || time - this.rest < 1200) return;
      this.step = 0;
    } else this.step += 1;
    this.rest = undefined;
    this.show();
  }
}

// The system as its own environment drew it last, where it draws.
function frameCard(view) {
  const box = el("div");
  const made = card("The system itself", "As its environment drew it last.", box);
  made.hidden = true;
  let shown = -1;
  made.redraw = async () => {
    const { count } = view.steps;
    if (count === shown) return;
    shown = count;
    const bytes = await view.source.frame(view.id).catch(() => null);
    if (!bytes) return;
    const src = URL.createObjectURL(new Blob([bytes], { type: "image/png" }));
    box.replaceChildren(el("img", { src, alt: `The system as its environment drew it, after about ${count} transitions`,
      onload: () => URL.revokeObjectURL(src) }));
    made.hidden = false;
  };
  return made;
}

function spanned(values) {
  const found = values.filter(Number.isFinite);
  return found.length ? `from ${num(Math.min(...found))} to ${num(Math.max(...found))}` : "nothing";
}

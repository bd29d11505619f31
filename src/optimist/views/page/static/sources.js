// Where data come from: a server that is asked again and again, or the file itself (a report).

class Steps {
  constructor(n) { this.n = n; this.clear(); }

  clear() {
    Object.assign(this, { count: 0, states: [], actions: [], rewards: [], episodes: [], tips: new Map() });
  }

  // Add what a source says; false when it does not fit what is here.
  take(said) {
    if (said.since > this.count) return false;
    if (said.since < this.count) this.cut(said.since);
    if (!said.states) return true;
    const numbers = new Float32Array(fromBase64(said.states).buffer);
    for (let k = 0; k < said.actions.length; k++) this.states.push(Array.from(numbers.subarray(k * this.n, (k + 1) * this.n)));
    this.actions.push(...said.actions);
    this.rewards.push(...said.rewards);
    this.episodes.push(...said.episodes);
    for (const [row, state] of Object.entries(said.tips)) this.tips.set(Number(row), state);
    this.count = said.count;
    return true;
  }

  cut(count) {
    for (const name of ["states", "actions", "rewards", "episodes"]) this[name].length = count;
    this.count = count;
  }

  // The states of an episode [[...]] and their controls, as far as the first `until` transitions go.
  path(episode, until = this.count) {
    const states = [];
    const actions = [];
    const rewards = [];
    let first = this.episodes.indexOf(episode);
    for (let k = first; k >= 0 && k < until && this.episodes[k] === episode; k++) {
      if (!states.length) states.push(this.states[k]);
      actions.push(this.actions[k]);
      rewards.push(this.rewards[k]);
      states.push(this.episodes[k + 1] === episode ? this.states[k + 1] : this.tips.get(k) ?? this.states[k]);
    }
    return { states, actions, rewards };
  }
}

class Unreachable extends Error {}

async function asked(path) {
  let answer;
  try { answer = await fetch(path, { cache: "no-store" }); } catch { throw new Unreachable("it was stopped, or cannot be reached"); }
  if (!answer.ok && answer.status !== 404) throw new Unreachable(`it failed (${answer.status}), and says why where it was started`);
  return answer;
}

const server = {
  live: true,
  async runs() { return (await asked("api/runs")).json(); },
  async run(id, have, since) {
    return (await asked(`api/run?${new URLSearchParams({ id, have, since })}`)).json();
  },
  async map(id, plan) {
    const answer = await asked(`api/map?${new URLSearchParams({ id, n: plan.n_transitions })}`);
    if (!answer.ok) return null;
    const bytes = new Uint8Array(await answer.arrayBuffer());
    const size = new DataView(bytes.buffer).getUint32(0, true);
    const document = JSON.parse(new TextDecoder().decode(bytes.subarray(4, 4 + size)));
    return [document, await inflated(bytes.subarray(4 + size))];
  },
  async frame(id) {
    const answer = await asked(`api/frame?${new URLSearchParams({ id })}`);
    const bytes = new Uint8Array(await answer.arrayBuffer());
    return answer.ok && bytes.length ? bytes : null;
  },
};

function fileSource(data) {
  return {
    live: false,
    data,
    async runs() { return data.runs; },
    async run(id, have) {
      const found = data.run[id];
      return !found ? { version: "none", error: "This run is not in the report.", run: null }
        : have === found.version ? { same: true } : found;
    },
    async map(id, plan) {
      const found = data.run[id]?.maps[plan.n_transitions];
      return found ? [found.document, await inflated(fromBase64(found.content))] : null;
    },
    async frame(id) {
      const found = data.run[id]?.frame;
      return found ? fromBase64(found) : null;
    },
  };
}

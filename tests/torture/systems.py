"""Random smooth systems: fit, plan, act. No exception; uncertainty within [0, 1], values within their bounds.

`python -m tests.torture.systems [FIRST [COUNT]]` prints a table (minutes).

Each number is a system: one to four coordinates in boxes from 1e-3 to 1e3 wide, some of them angles; two to
four controls; displacements and rewards that are sums of sines, from hardly moving to crossing the box in a
few steps; with noise or without, with ends or without. An agent with few nodes learns it for two dozen
transitions.
"""

from __future__ import annotations

import sys
import warnings
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import get_args

import numpy as np

from optimist import Box, Discretisation, Task
from optimist.agents import GPRMaxAgent
from optimist.agents.settings import AgentSettings, KnownnessName, PlanningOptions
from optimist.arrays import BoolArray, FloatArray
from optimist.models import GPSettings
from optimist.transitions import Transition

STEPS = 12  # of an episode
EPISODES = 2
FIRST_PLANS = (8, 16)
NODES = {1: 9, 2: 5, 3: 4, 4: 3}  # per axis, by dimension
RULES: tuple[KnownnessName, ...] = get_args(KnownnessName)
WAVES = 4  # sines in a sum
ROUNDING = 1e-9  # of the size of the bounds


@dataclass(frozen=True, eq=False)
class Waves:
    """A smooth function: sums of sines, each of them at most 1 in size."""

    frequencies: FloatArray  # [n_outputs, WAVES, n_inputs]
    phases: FloatArray  # [n_outputs, WAVES]

    @classmethod
    def drawn(cls, stream: np.random.Generator, n_inputs: int, n_outputs: int) -> Waves:
        roughness = stream.uniform(0.2, 2.0)
        return cls(
            stream.normal(0.0, roughness, (n_outputs, WAVES, n_inputs)),
            stream.uniform(0.0, 2.0 * np.pi, (n_outputs, WAVES)),
        )

    def __call__(self, inputs: FloatArray) -> FloatArray:
        """[n, n_inputs] -> [n, n_outputs]"""
        angles = np.einsum("owi,ni->now", self.frequencies, inputs) + self.phases
        return np.asarray(np.sin(angles).mean(axis=2))


@dataclass(frozen=True, eq=False)
class Smooth:
    """A random system and its task."""

    task: Task
    speeds: FloatArray  # [d], share of the box in a step
    motion: Waves
    noise: float  # share of a step
    bounds: tuple[float, float]  # of all values

    @classmethod
    def drawn(cls, number: int) -> Smooth:
        stream = np.random.default_rng([number, 0x736D6F])
        n_dims = int(stream.choice([1, 2, 2, 2, 3, 4]))
        widths = 10.0 ** stream.uniform(-3.0, 3.0, n_dims)
        low = stream.uniform(-2.0, 1.0, n_dims) * widths
        box = Box(low, low + widths, stream.random(n_dims) < 0.3)
        strength = 10.0 ** stream.uniform(-2.0, 2.0)
        controls = strength * np.sort(stream.normal(0.0, 1.0, int(stream.integers(2, 5))))
        discount = float(stream.choice([0.8, 0.95, 0.99]))
        worst, best = np.sort(stream.normal(0.0, 1.0, 2)) * 10.0 ** stream.uniform(-3.0, 3.0)
        payment = Waves.drawn(stream, n_dims, 1)
        ending = Waves.drawn(stream, n_dims, 1) if stream.random() < 0.4 else None

        def reward(states: FloatArray, _: FloatArray, next_states: FloatArray) -> FloatArray:
            share = 0.5 * (1.0 + payment(_inside(box, next_states))[:, 0])
            return np.asarray(worst + (best - worst) * share)

        def is_terminal(states: FloatArray) -> BoolArray:
            assert ending is not None
            return np.asarray(ending(_inside(box, states))[:, 0] > 0.6)

        most = max(best, 0.0) / (1.0 - discount)
        task = Task(
            box=box,
            controls=controls,
            reward=reward,
            discount=discount,
            optimistic_value=float(most),
            is_terminal=None if ending is None else is_terminal,
            max_steps=STEPS,
        )
        return cls(
            task,
            10.0 ** stream.uniform(-3.0, -0.7, n_dims),
            Waves.drawn(stream, n_dims + 1, n_dims),
            float(stream.choice([0.0, 0.0, 0.1, 0.5])),
            (float(min(worst, 0.0) / (1.0 - discount)), float(most)),
        )

    def step(self, state: FloatArray, action: int, stream: np.random.Generator) -> FloatArray:
        """[d] -> [d]"""
        box, control = self.task.box, self.task.controls[action] / np.abs(self.task.controls).max()
        moved = self.motion(np.concatenate([_inside(box, state[np.newaxis])[0], control])[np.newaxis])[0]
        moved = moved + self.noise * stream.normal(0.0, 0.3, moved.size)
        after = state + moved * self.speeds * box.widths
        return np.asarray(box.clip(box.wrap(after)) if stream.random() < 0.9 else box.wrap(after))


def _inside(box: Box, states: FloatArray) -> FloatArray:
    """In widths of the box; around on angles.  [n, d]"""
    shares = (states - box.low) / box.widths
    return np.where(box.periodic, np.sin(2.0 * np.pi * shares), 3.0 * shares)


def agent_of(system: Smooth, number: int) -> GPRMaxAgent:
    """One with few nodes; of every third system the layout is its own choice."""
    n_dims = system.task.box.n_dims
    nodes = (NODES[n_dims],) * n_dims
    grid = Discretisation(nodes=nodes, hold=None if number % 3 == 0 else 1)
    settings = AgentSettings(
        grid=grid,
        first_plans=FIRST_PLANS,
        replan_every=STEPS,
        knownness=RULES[number % len(RULES)],
        model=GPSettings(kind="joint" if number % 5 else "per-action"),
        planning=PlanningOptions(depth=number % 2, rehearse=number % 3 == 0),
    )
    return GPRMaxAgent(system.task, settings, seed=number)


def wrongs(number: int) -> list[str]:
    """Learn such a system; what is wrong."""
    system = Smooth.drawn(number)
    task, stream = system.task, np.random.default_rng([number, 1])
    agent, wrong = agent_of(system, number), list[str]()
    for _ in range(EPISODES):
        state = stream.uniform(task.box.low, task.box.high)
        for step in range(STEPS):
            action = int(agent.act(state))
            after = system.step(state, action, stream)
            paid = float(task.reward(state[None], task.controls[[action]], after[None])[0])
            ends = task.is_terminal is not None and bool(task.is_terminal(after[None])[0])
            agent.observe(Transition(state, action, paid, after, ends, not ends and step == STEPS - 1))
            if agent.due:
                agent.update()
                wrong += _looked_at(agent, system, stream)
            if ends:
                break
            state = after
    if agent.knowledge is None:
        agent.update()
        wrong += _looked_at(agent, system, stream)
    return wrong


def _looked_at(agent: GPRMaxAgent, system: Smooth, stream: np.random.Generator) -> Iterator[str]:
    """What is wrong with what it knows, at the nodes and anywhere."""
    known, n_actions, (least, most) = agent.known(), system.task.n_actions, system.bounds
    box, slack = system.task.box, ROUNDING * max(abs(least), abs(most), 1e-300)
    states = stream.uniform(box.low - 0.2 * box.widths, box.high + 0.2 * box.widths, (20, box.n_dims))
    looks = [known.model.predict_on(agent.grid), *(known.flow(states, action) for action in range(n_actions))]
    looks += [known.model.predict_with_uncertainty(states, control[None]) for control in system.task.controls]
    for looked in looks:
        if looked.uncertainty is None or not _within(looked.uncertainty, 0.0, 1.0):
            yield f"uncertainty {looked.uncertainty}"
        if not np.isfinite(looked.next_states).all():
            yield "successors that are not finite"
    for name, plan in (("plan", known.plan), ("best", known.best.plan)):
        if not _within(plan.q_values, least - slack, most + slack):
            yield f"{name}: values {plan.q_values.min()} to {plan.q_values.max()}, not in {least} to {most}"
    actions = agent.policy.greedy(states)
    if not _within(actions.astype(np.float64), 0, n_actions - 1):
        yield "actions"


def _within(values: FloatArray, least: float, most: float) -> bool:
    return bool(np.isfinite(values).all() and (values >= least).all() and (values <= most).all())


def main(first: int = 0, count: int = 1000) -> int:
    """Print a table; how many systems went wrong."""
    counts: Counter[int] = Counter()
    harm: Counter[int] = Counter()
    for number in range(first, first + count):
        n_dims = Smooth.drawn(number).task.box.n_dims
        counts[n_dims] += 1
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error", RuntimeWarning)
                wrong = wrongs(number)
        except Exception as error:  # what is counted here
            wrong = [f"{type(error).__name__}: {error}"]
        harm[n_dims] += bool(wrong)
        for sentence in wrong:
            print(f"system {number} ({n_dims} dimensions): {sentence}", file=sys.stderr, flush=True)
    print("| dimensions | systems | wrong |\n|---|---|---|")
    for n_dims in sorted(counts):
        print(f"| {n_dims} | {counts[n_dims]} | {harm[n_dims]} |")
    return sum(harm.values())


if __name__ == "__main__":
    sys.exit(min(main(*map(int, sys.argv[1:])), 1))

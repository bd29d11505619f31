"""Transitions of a policy that knows nothing: controls drawn at random, each held for a while."""

from __future__ import annotations

import numpy as np

from optimist.systems.system import System
from optimist.transitions import Transition, Transitions

LONGEST_HOLD = 10  # steps


def random_transitions(system: System, count: int, *, seed: int) -> Transitions:
    """`count` transitions along episodes from the paper's starts; a smaller count gives the first of them.

    Holding reaches further than dithering.
    """
    stream = np.random.default_rng(seed)
    task = system.task
    rows: list[Transition] = []
    state, steps, action, held = system.starts[0], task.max_steps, 0, 0
    for _ in range(count):
        if steps == task.max_steps:
            state, steps, held = system.starts[stream.integers(len(system.starts))], 0, 0
        if held == 0:
            action, held = int(stream.integers(task.n_actions)), int(stream.integers(1, LONGEST_HOLD + 1))
        states, controls = state[np.newaxis], task.controls[action : action + 1]
        next_states = system.dynamics(states, controls)
        reward = float(task.rewards(states, controls, next_states)[0])
        ended = bool(task.terminal(next_states)[0])
        steps, held = steps + 1, held - 1
        rows.append(Transition(state, action, reward, next_states[0], ended, steps == task.max_steps))
        state = next_states[0]
        if ended:
            steps = task.max_steps
    return Transitions.of(rows)

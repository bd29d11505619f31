"""Data to learn from, and what a learned model gets wrong."""

from __future__ import annotations

import numpy as np

from optimist.arrays import FloatArray
from optimist.box import Box
from optimist.models import GPDynamics, GPSettings, fit_dynamics
from optimist.steps import Successors
from optimist.systems.system import System
from optimist.transitions import Transitions

# said here and not left to defaults: the paper's kind, and ours fitted as fast
PER_ACTION, JOINT = GPSettings(kind="per-action", subset=150), GPSettings(kind="joint", subset=150)


def scattered(system: System, count: int, *, seed: int) -> Transitions:
    """Steps from states all over the box, under random actions."""
    stream = np.random.default_rng([seed, count])
    box, controls = system.task.box, system.task.controls
    states = stream.uniform(box.low, box.high, size=(count, box.n_dims))
    actions = stream.integers(len(controls), size=count)
    return Transitions.stepped(states, actions, system.dynamics(states, controls[actions]))


def excursion(system: System, count: int, *, held: int, seed: int) -> Transitions:
    """A walk from the start under random actions, each held for some steps; anew from terminal states."""
    stream = np.random.default_rng([seed, count, held])
    task, start = system.task, system.starts[:1]
    actions = np.repeat(stream.integers(task.n_actions, size=-(-count // held)), held)[:count]
    states, next_states = np.empty((2, count, task.box.n_dims))
    here = start
    for step, action in enumerate(actions):
        states[step] = here
        here = system.dynamics(here, task.controls[action : action + 1])
        next_states[step] = here
        if task.terminal(here)[0]:
            here = start
    return Transitions.stepped(states, actions, next_states)


def of_kind(joint: bool) -> GPSettings:
    return JOINT if joint else PER_ACTION


def learned(
    system: System, transitions: Transitions, settings: GPSettings, *, knownness: str = "gp-variance"
) -> GPDynamics:
    task = system.task
    return fit_dynamics(transitions, task.box, task.controls, settings, knownness=knownness, fit_seed=0)


def unsure(found: Successors) -> FloatArray:
    """The uncertainty, which a learned model always tells."""
    assert found.uncertainty is not None
    return found.uncertainty


def inside(box: Box, transitions: Transitions) -> Transitions:
    """Those whose successor was not moved to an edge, told one by one."""
    rows = [
        row
        for row, state in enumerate(transitions.next_states)
        if all(
            periodic or low < x < high
            for x, low, high, periodic in zip(state, box.low, box.high, box.periodic, strict=True)
        )
    ]
    return Transitions.stepped(
        transitions.states[rows], transitions.actions[rows], transitions.next_states[rows]
    )


def normalised_error(model: GPDynamics, transitions: Transitions) -> FloatArray:
    """Root mean square error per coordinate, in standard deviations of the displacements.  [d]"""
    box = model.box
    predicted = model.predict(transitions.states, model.controls[transitions.actions])
    errors = box.displacement(transitions.next_states, predicted)
    displacements = box.displacement(transitions.states, transitions.next_states)
    return np.asarray(np.sqrt((errors**2).mean(axis=0)) / displacements.std(axis=0))


def error_of_no_change(box: Box, transitions: Transitions) -> FloatArray:
    """The same of the guess that nothing moves.  [d]"""
    displacements = box.displacement(transitions.states, transitions.next_states)
    return np.asarray(np.sqrt((displacements**2).mean(axis=0)) / displacements.std(axis=0))

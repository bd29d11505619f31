"""Catching: whether an end stops a step on its way, or is seen only by who is there when the step is over.

Many systems are moved in short steps within each step that is acted for, and are stopped at the first that
ends an episode. A model cannot know: it never learns from a step that ended. So it leads through an end and
out again, where the system has won, or crashed. But what such a model says of the steps that did end tells
it: they went the way that was foreseen, and less far.
"""

from __future__ import annotations

import numpy as np

from optimist.arrays import BoolArray
from optimist.models.change import foreseen
from optimist.models.edges import usual_move
from optimist.models.model import Model, noise_of
from optimist.task import Task
from optimist.transitions import Transitions

ENOUGH = 2  # steps that were stopped
MORE = 2  # times as many as those that were not
FAR = 4.0  # deviations: who was foreseen there went less far
SHORT = 0.9  # of the way
EXPLAINED = 0.5  # of what is missed is left at most where the way was stopped


def ends_catch(task: Task, model: Model, seen: Transitions) -> bool:
    """Whether ends stop steps on their way, by all that was `seen`. Not asked where there is no noise.

    Without noise a plan is followed exactly, and can be one that is at its end when a step is over.
    """
    if task.is_terminal is None or noise_of(model) is None or not seen.terminated.any():
        return False
    stopped, whole = _stopped(task, model, seen)
    n_stopped = int(stopped.sum())
    if n_stopped < ENOUGH:
        return False
    live = seen.only(~seen.terminated)
    n_whole = int(whole.sum()) + int(task.meets_end(live.states, live.next_states).sum())
    return n_stopped > MORE * n_whole


def _stopped(task: Task, model: Model, seen: Transitions) -> tuple[BoolArray, BoolArray]:
    """Which of the steps that ended went less far than foreseen, and which went on from an end on their way.

    [n_ended], [n_ended]
    """
    ended, box = seen.only(seen.terminated), task.box
    mean, variance = foreseen(ended, model, box, task.controls, usual_move(box, seen))
    led, went = box.displacement(ended.states, mean), box.displacement(ended.states, ended.next_states)
    with np.errstate(all="ignore"):
        share = (led * went / variance).sum(axis=1) / (led**2 / variance).sum(axis=1)
        missed = np.sqrt(((went - led) ** 2 / variance).max(axis=1))
        rest = np.sqrt(((went - share[:, np.newaxis] * led) ** 2 / variance).max(axis=1))
        far = missed > FAR
        stopped = (
            far
            & task.terminal(ended.next_states)
            & (share > 0.0)
            & (share < SHORT)
            & (rest < EXPLAINED * missed)
        )
    return stopped, ~far & task.meets_end(ended.states, ended.next_states)

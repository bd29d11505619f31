"""Sarsa(lambda) with tile coding (Sutton 1996; Sutton & Barto 1998, Fig. 8.8): the paper's model-free rival.

    d = r + discount Q(s', a') - Q(s, a)        (without Q(s', a') when s' ends the episode)
    e = 1 for the tiles of s and the action a   (replacing traces)
    w = w + step_size / n_tilings d e
    e = discount trace_decay e                  (forgotten below `trace_cutoff`)

An episode that is cut off by its limit of steps is not one that ended: its last step counts Q(s', a') too.
The agent is greedy, any of equal actions, save for a chance of `epsilon`. Weights begin at 0, which is
optimistic when rewards are costs: that alone explores.

It learns inside compiled code, so it is given compiled functions of its world, not an environment; it looks
at nothing but what they return. Choices are a function of (seed, episode), offsets of tilings of the seed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from optimist.agents.tile_coding import TileCoding, TilingGroup
from optimist.arrays import BoolArray, FloatArray
from optimist.compiled.dynamics import OUTCOME, STEP, Outcome, Step, compiled_for
from optimist.compiled.sarsa import ACCUMULATING, CLEARING, REPLACING, RUN_EPISODES, run_episodes
from optimist.documents import Settings
from optimist.task import Task

SARSA_STREAM = 0x736172  # purpose number of the agent's random numbers
MOST_WEIGHTS = 2**27  # 1 GB
KINDS = {"replacing": REPLACING, "clearing": CLEARING, "accumulating": ACCUMULATING}

Fraction = Annotated[float, Field(ge=0.0, le=1.0)]


class SarsaSettings(Settings):
    """All choices of a Sarsa(lambda) agent; the discount is the task's."""

    tilings: tuple[TilingGroup, ...] = Field(min_length=1)
    offsets: Literal["random", "even"] = "random"  # of the tilings; random ones go with the seed
    step_size: Annotated[float, Field(gt=0.0, allow_inf_nan=False)]  # shared among the tilings
    trace_decay: Fraction = 0.9  # lambda
    epsilon: Fraction = 0.0
    # what a step does to the traces of its tiles and action: they become 1; "clearing": and those of its
    # tiles and the other actions 0 (Singh & Sutton 1996); "accumulating": 1 is added instead
    traces: Literal["replacing", "clearing", "accumulating"] = "replacing"
    trace_cutoff: Annotated[float, Field(ge=0.0, lt=1.0)] = 1e-3


@dataclass(frozen=True, eq=False)
class Episodes:
    """How some episodes went."""

    steps: NDArray[np.int64]  # [n]
    total_rewards: FloatArray  # [n]
    terminated: BoolArray  # [n]; the others were cut off


class SarsaAgent:
    """Learns Q-values on tiles, from one transition at a time."""

    settled_at = None  # it never stops learning

    def __init__(self, task: Task, settings: SarsaSettings, *, seed: int) -> None:
        self.task = task
        self.settings = settings
        self.seed = seed
        self.n_episodes = 0
        offset_seed = seed if settings.offsets == "random" else None
        self.coding = TileCoding.of(task.box, settings.tilings, offset_seed=offset_seed)
        if self.coding.n_tiles * task.n_actions > MOST_WEIGHTS:
            raise ValueError(
                f"There must be at most {MOST_WEIGHTS} weights; got {self.coding.n_tiles} tiles x "
                f"{task.n_actions} actions. Take fewer or larger tiles."
            )
        self.weights = np.zeros((self.coding.n_tiles, task.n_actions))

    def learn(self, step: Step, outcome: Outcome, starts: FloatArray) -> Episodes:
        """Go through one episode from each of `starts` [n, d]."""
        task, settings, n = self.task, self.settings, len(starts)
        if starts.shape != (n, task.box.n_dims):
            raise ValueError(f"`starts` must have shape (n, {task.box.n_dims}); got {starts.shape}.")
        made = Episodes(np.empty(n, dtype=np.int64), np.empty(n), np.empty(n, dtype=np.bool_))
        keys = [episode_key(self.seed, self.n_episodes + k + 1) for k in range(n)]
        numbers = (
            task.discount,
            settings.step_size / self.coding.n_tilings,
            task.discount * settings.trace_decay,
            settings.trace_cutoff,
            settings.epsilon,
        )
        compiled_for(run_episodes, RUN_EPISODES)(
            compiled_for(step, STEP),
            compiled_for(outcome, OUTCOME),
            self.coding.geometry,
            task.controls,
            np.ascontiguousarray(starts, dtype=np.float64),
            np.array(keys, dtype=np.uint64),
            task.max_steps,
            numbers,
            KINDS[settings.traces],
            self.weights,
            made.steps,
            made.total_rewards,
            made.terminated,
        )
        self.n_episodes += n
        return made

    def q_values(self, states: FloatArray) -> FloatArray:
        """Q-values of all actions in `states` [n, d].  [n, n_actions]"""
        values: FloatArray = self.weights[self.coding.tiles(states)].sum(axis=1)
        return values

    def greedy(self, states: FloatArray) -> NDArray[np.int64]:
        """The action with the highest value; the first of equals.  [n]"""
        return np.asarray(self.q_values(states).argmax(axis=1))


def episode_key(seed: int, episode: int) -> int:
    """What the random numbers of an episode come from."""
    sequence = np.random.SeedSequence([seed, SARSA_STREAM, episode])
    return int(sequence.generate_state(1, np.uint64)[0])

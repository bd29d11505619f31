"""Sensors that read wrong: Gymnasium's Pendulum-v1, learned from nothing with default settings.

`python -m tests.torture.readings [FIRST_SEED [SEEDS]]` prints a table (a quarter of a minute for each of the
runs, of which there are eight per seed). With every seed the same is learned from a clean sensor, from one
that reads one rate wrong (as 0, 8, 20, 1e4, 1e8, 1e200, in one of the first 100 steps, which the seed
chooses), and from one that reads 1 % of all rates as 0. What counts is what the environment pays: it knows
the true state.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import gymnasium
import numpy as np

import optimist
from optimist import GPRMax
from optimist.arrays import FloatArray
from optimist.environments.adapter import AdaptedEnvironment, adapt

EPISODES, STEPS = 6, 200
FROM = 3  # the first episode that is compared
MOST = 0.10  # that a total may be off from that of the clean sensor
DROPOUTS = 0.01  # of all readings
ONE = (0.0, 8.0, 20.0, 1e4, 1e8, 1e200)  # rates that are read once
CLEAR = 0.25  # rad/s, a quarter of what a step changes at most: what is off by less need not be found
EARLY = 100  # steps, in one of which the one wrong reading is: most agents settle within them


@dataclass(frozen=True)
class Wrong:
    """A sensor: in which steps (from 1, of all episodes) the rate is read as what."""

    name: str
    readings: dict[int, float]


def conditions(seed: int) -> Iterator[Wrong]:
    """The clean sensor, then all others."""
    stream = np.random.default_rng([seed, 0x77726F6E67])
    yield Wrong("clean", {})
    for value in ONE:
        yield Wrong(f"one {value:g}", {int(stream.integers(5, EARLY)): value})
    dropped = 1 + np.flatnonzero(stream.random(EPISODES * STEPS) < DROPOUTS)
    yield Wrong("1 % dropouts", dict.fromkeys(dropped.tolist(), 0.0))


class Misread(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Angle and rate of the pendulum, as a sensor reads them."""

    def __init__(self, wrong: Wrong) -> None:
        super().__init__(gymnasium.make("Pendulum-v1"))
        bounds = np.array([np.pi, 8.0])
        self.observation_space = gymnasium.spaces.Box(-bounds, bounds, dtype=np.float64)
        self.wrong, self.count = wrong, 0
        self.off: dict[int, float] = {}  # by how much each wrong reading was

    def reset(self, **given: Any) -> Any:
        observation, info = self.env.reset(**given)
        return _state(observation), info

    def step(self, action: Any) -> Any:
        observation, *rest = self.env.step(action)
        state = _state(observation)
        self.count += 1
        if self.count in self.wrong.readings:
            self.off[self.count] = abs(state[1] - self.wrong.readings[self.count])
            state[1] = self.wrong.readings[self.count]
        return state, *rest


def _state(observation: FloatArray) -> FloatArray:
    cosine, sine, rate = np.asarray(observation, dtype=np.float64)
    return np.array([np.arctan2(sine, cosine), rate])


def swing_up(states: FloatArray, controls: FloatArray, next_states: FloatArray) -> FloatArray:
    """As Gymnasium documents it."""
    return np.asarray(-(states[:, 0] ** 2 + 0.1 * states[:, 1] ** 2 + 0.001 * controls[:, 0] ** 2))


def pendulum(sensor: Misread) -> AdaptedEnvironment:
    """As the tutorial tells it."""
    return adapt(
        sensor, reward=swing_up, controls=np.linspace(-2.0, 2.0, 5), periodic=[True, False], discount=0.98
    )


@dataclass(frozen=True)
class Learned:
    """What came of one sensor."""

    seed: int
    name: str
    totals: list[float]
    settled: int | None  # transitions after which it stopped learning, as it is at the end
    n_updates: int
    bad: set[int]  # transitions that lead to, or on from, a reading that is clearly wrong
    void: set[int]  # those that are marked

    @property
    def later(self) -> float:
        """Mean total of the episodes that are compared."""
        return float(np.mean(self.totals[FROM - 1 :]))


def learned(seed: int, wrong: Wrong) -> Learned:
    """Learn from such a sensor."""
    sensor = Misread(wrong)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that the environment pays for another state than was read
        learner = GPRMax(pendulum(sensor), seed=seed).learn(episodes=EPISODES)
    bad: set[int] = set()
    for number, off in sensor.off.items():
        if off > CLEAR:
            bad |= {number, number + 1} if number % STEPS else {number}  # an episode may end with it
    return Learned(
        seed,
        wrong.name,
        [row.total_reward for row in learner.episodes],
        learner.stopped_learning_at,
        learner._agent.knowledge.n_updates,  # type: ignore[union-attr]
        bad,
        set(learner.void),
    )


def main(first: int = 0, count: int = 10) -> int:
    """Print what every seed and sensor came to; how many fell short."""
    print(f"optimist {optimist.__version__}, Pendulum-v1, {EPISODES} episodes")
    print(
        "| seed | sensor | total of each episode | mean from 3 on | against clean | settled at | plans "
        "| wrong rows marked | others marked |\n|---|---|---|---|---|---|---|---|---|"
    )
    short = 0
    for seed in range(first, first + count):
        clean = None
        for wrong in conditions(seed):
            made = learned(seed, wrong)
            clean = clean or made
            off = made.later / clean.later - 1.0
            short += off > MOST or made.settled is None or not made.bad <= made.void
            totals = " ".join(f"{total:.0f}" for total in made.totals)
            print(
                f"| {seed} | {made.name} | {totals} | {made.later:.1f} | {off:+.1%} | {made.settled} "
                f"| {made.n_updates} | {len(made.bad & made.void)} of {len(made.bad)} "
                f"| {sorted(made.void - made.bad)} |",
                flush=True,
            )
    return short


if __name__ == "__main__":
    sys.exit(min(main(*map(int, sys.argv[1:])), 1))

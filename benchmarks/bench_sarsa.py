"""Sarsa(lambda) with tile coding on mountain car, 1000 episodes: ours and MushroomRL's, one thread each.

Both have the same tilings, step size and lambda, the same start and dynamics (ours). MushroomRL's traces
accumulate, so ours do too where the two are compared; what `sarsa-fine` does is shown beside. MushroomRL is
no part of our environment: without it, we are measured alone.

    python -m benchmarks.bench_sarsa --seeds 5 --episodes 300

compares the learning curves; the table of docs/background/sarsa.md.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from itertools import pairwise
from time import perf_counter
from typing import Any

import numpy as np
from scipy.stats import t as student

from benchmarks.measuring import Result, compared
from optimist.agents.sarsa import SarsaAgent, SarsaSettings, episode_key
from optimist.arrays import FloatArray
from optimist.compiled.sarsa import choose
from optimist.experiments.sarsa_settings import sarsa_settings
from optimist.systems.mountain_car import SYSTEM, outcome, step

FINE = sarsa_settings("mountain-car", "sarsa-fine")
# with accumulating traces 0.5 is too much
ALIKE = FINE.model_copy(update={"traces": "accumulating", "trace_cutoff": 0.0, "step_size": 0.1})
EPISODES = 1000
SAME_EPISODES = 40
BLOCKS = (1, 2, 6, 11, 21, 51, 101, 201, 301)  # first episodes of what is averaged


def run() -> dict[str, Result]:
    contestants: dict[str, Callable[[int, int], FloatArray]] = {
        "optimist": partial(ours, ALIKE),
        "optimist, replacing traces": partial(ours, FINE),
    }
    if find_spec("mushroom_rl") is None:
        print("  MushroomRL is not installed: it is left out.", file=sys.stderr)
    else:
        contestants["MushroomRL"] = theirs
    seconds = {}
    for name, learn in contestants.items():
        learn(0, 2)  # compile
        began = perf_counter()
        learn(0, EPISODES)
        seconds[name] = perf_counter() - began
    peer = "MushroomRL" if "MushroomRL" in seconds else "optimist, replacing traces"
    return {"1000 episodes of Sarsa, mountain car": compared(seconds, "optimist", peer)}


def ours(settings: SarsaSettings, seed: int, episodes: int) -> FloatArray:
    """Steps of each episode."""
    agent = SarsaAgent(SYSTEM.task, settings, seed=seed)
    made = agent.learn(step, outcome, np.tile(SYSTEM.starts, (episodes, 1)))
    return made.steps.astype(np.float64)


def theirs(seed: int, episodes: int, *, our_choices: bool = False) -> FloatArray:
    """The same by MushroomRL; with our random choices, if wanted, instead of its own."""
    from mushroom_rl.algorithms.value import SARSALambdaContinuous
    from mushroom_rl.approximators.parametric import LinearApproximator
    from mushroom_rl.core import Core
    from mushroom_rl.features import Features
    from mushroom_rl.policy import EpsGreedy
    from mushroom_rl.utils.callbacks import CollectDataset
    from mushroom_rl.utils.parameters import Parameter

    np.random.seed(seed)  # noqa: NPY002  # theirs is the global one
    features = Features(tilings=_their_tilings(seed))
    environment = _their_environment()
    policy = _our_choices(seed) if our_choices else EpsGreedy(epsilon=Parameter(ALIKE.epsilon))
    agent = SARSALambdaContinuous(
        environment.info,
        policy,
        LinearApproximator,
        learning_rate=Parameter(ALIKE.step_size / ALIKE.tilings[0].tilings),
        lambda_coeff=ALIKE.trace_decay,
        features=features,
        approximator_params={
            "input_shape": (features.size,),
            "output_shape": (SYSTEM.task.n_actions,),
            "n_actions": SYSTEM.task.n_actions,
        },
    )
    policy.agent = agent
    seen = CollectDataset()
    core = Core(agent, environment, callbacks_fit=[seen])
    core.learn(n_episodes=episodes, n_steps_per_fit=1, quiet=True)
    ends = np.flatnonzero([row[-1] for row in seen.get()])
    return np.diff(np.append(-1, ends)).astype(np.float64)


def _our_choices(seed: int) -> Any:
    """A policy that chooses among equals as ours does; every episode begins with a fresh choice."""
    from mushroom_rl.policy import EpsGreedy

    class Choices(EpsGreedy):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__(epsilon=0.0)
            self.episode = 0

        def reset(self) -> None:
            self.episode, self.moment = self.episode + 1, 0
            self.agent.next_action = None  # theirs keeps the action it drew for the last state

        def draw_action(self, state: FloatArray) -> FloatArray:
            q_values = self._approximator.predict(state).astype(np.float64)
            key = np.uint64(episode_key(seed, self.episode))
            action = choose(q_values, 0.0, key, 2 * self.moment)
            self.moment += 1
            return np.array([action])

    return Choices()


def _their_tilings(seed: int) -> list[Any]:
    """Our tilings in their form: ranges that begin before the box by the offset."""
    from mushroom_rl.features.tiles import Tiles

    coding = SarsaAgent(SYSTEM.task, ALIKE, seed=seed).coding
    counts = [count + 1 for count in ALIKE.tilings[0].intervals]
    lows = coding.low - coding.shifts / coding.scales  # [n_tilings, d]
    highs = lows + np.array(counts) / coding.scales
    return [
        Tiles([[float(a), float(b)] for a, b in zip(low, high, strict=True)], counts)
        for low, high in zip(lows, highs, strict=True)
    ]


def _their_environment() -> Any:
    """Our mountain car in their form."""
    from mushroom_rl.core import Environment, MDPInfo
    from mushroom_rl.utils.spaces import Box, Discrete

    task = SYSTEM.task

    class Car(Environment):  # type: ignore[misc]
        def __init__(self) -> None:
            observations, actions = Box(task.box.low, task.box.high), Discrete(task.n_actions)
            super().__init__(MDPInfo(observations, actions, task.discount, task.max_steps))

        def reset(self, state: object = None) -> FloatArray:
            start: FloatArray = SYSTEM.starts[0].copy()
            self._state = start
            return start

        def step(self, action: Any) -> tuple[FloatArray, float, bool, dict[str, object]]:
            control, next_state = task.controls[int(action[0])], np.empty(2)
            step(self._state, control, next_state)
            reward, ended = outcome(self._state, control, next_state)
            self._state = next_state
            return next_state, reward, ended, {}

    return Car()


def interval(steps: FloatArray) -> tuple[float, float]:
    """Mean over seeds of a block [n_seeds, n], and half of its 95 % interval (Student's)."""
    means = steps.mean(axis=1)
    half = student.ppf(0.975, len(means) - 1) * means.std(ddof=1) / np.sqrt(len(means))
    return float(means.mean()), float(half)


def main() -> None:
    parser = argparse.ArgumentParser(description="Learning curves of both.")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--episodes", type=int, default=300)
    given = parser.parse_args()
    both = [
        np.array([learn(seed, given.episodes) for seed in range(given.seeds)])
        for learn in (partial(ours, ALIKE), theirs)
    ]
    print("| episodes | ours, steps | MushroomRL, steps | intervals overlap |\n|---|---|---|---|")
    for first, last in pairwise(BLOCKS):
        if first > given.episodes:
            break
        (mean, half), (peer, peer_half) = (interval(steps[:, first - 1 : last - 1]) for steps in both)
        overlap = "yes" if abs(mean - peer) <= half + peer_half else "no"
        means = f"{mean:.1f} +- {half:.1f} | {peer:.1f} +- {peer_half:.1f}"
        print(f"| {first} to {last - 1} | {means} | {overlap} |")
    alike = [theirs(seed, SAME_EPISODES, our_choices=True) for seed in range(given.seeds)]
    same = np.array(alike) == both[0][:, :SAME_EPISODES]
    print(f"with the same random choices, {same.sum()} of {same.size} episodes have the same length")


if __name__ == "__main__":
    main()

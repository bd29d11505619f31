"""Other people's agents on the very same environments: how many transitions until they are near the best?

Stable-Baselines3's DQN with the settings rl-zoo tuned. It needs torch and is no part of `make install`; see
docs/results/paper.md for how to install it. After every `every` transitions the greedy policy is tried from
the paper's starts, outside the count, and that is what is recorded.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np

from optimist.experiments.statistics import transitions_until_near
from optimist.systems import System, find_system

# rl-zoo's tuned settings: of MountainCar-v0, and of Acrobot-v1 where there are none for the problem
MOUNTAIN_CAR: dict[str, Any] = {
    "learning_rate": 4e-3,
    "batch_size": 128,
    "buffer_size": 10_000,
    "learning_starts": 1000,
    "gamma": 0.98,
    "target_update_interval": 600,
    "train_freq": 16,
    "gradient_steps": 8,
    "exploration_fraction": 0.2,
    "exploration_final_eps": 0.07,
}
ACROBOT: dict[str, Any] = {
    "learning_rate": 6.3e-4,
    "batch_size": 128,
    "buffer_size": 50_000,
    "learning_starts": 0,
    "gamma": 0.99,
    "target_update_interval": 250,
    "train_freq": 4,
    "gradient_steps": -1,
    "exploration_fraction": 0.12,
    "exploration_final_eps": 0.1,
}
DQN = {"mountain-car": MOUNTAIN_CAR, "pendulum": ACROBOT, "bicycle": ACROBOT, "acrobot": ACROBOT}
NETWORK = [256, 256]


@dataclass(frozen=True)
class PeerRun:
    """Greedy totals of a peer as it learned."""

    peer: str
    problem: str
    seed: int
    transitions: list[int]  # when it was tried
    totals: list[float]  # mean over the paper's starts

    def near_from(self, best: float) -> dict[str, int | None]:
        """Transitions until within 5 % of `best`: for the first time, three times in a row, for good."""
        near = transitions_until_near(np.array(self.totals), np.array(self.transitions), best)
        return asdict(near)


def run_dqn(problem: str, *, seed: int, total: int, every: int, file: Path | None = None) -> PeerRun:
    """Stable-Baselines3's DQN for `total` transitions."""
    try:
        import stable_baselines3  # noqa: PLC0415
    except ImportError:
        raise ValueError(
            "DQN needs Stable-Baselines3, which is not installed: pip install torch==2.13.0, then "
            "pip install 'optimist[peers]'."
        ) from None
    system = find_system(problem)
    env = gymnasium.make(system.gymnasium_id)
    learner = stable_baselines3.DQN(
        "MlpPolicy", env, seed=seed, policy_kwargs={"net_arch": NETWORK}, device="cpu", **DQN[problem]
    )
    counts: list[int] = []
    totals: list[float] = []

    def try_out(_: dict[str, Any], __: dict[str, Any]) -> bool:
        if learner.num_timesteps % every == 0:
            counts.append(int(learner.num_timesteps))
            totals.append(_greedy_total(learner, system))
        return True

    learner.learn(total, callback=try_out, log_interval=None)
    made = PeerRun("dqn", problem, seed, counts, totals)
    if file is not None:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(asdict(made)) + "\n", encoding="utf-8")
    return made


def read_peer(file: Path) -> PeerRun:
    """A recorded peer."""
    return PeerRun(**json.loads(file.read_text(encoding="utf-8")))


def _greedy_total(learner: Any, system: System) -> float:
    env = gymnasium.make(system.gymnasium_id)
    totals = []
    for start in system.starts:
        observation, _ = env.reset(options={"state": start})
        total, over = 0.0, False
        while not over:
            action, _ = learner.predict(observation, deterministic=True)
            observation, reward, terminated, truncated, _ = env.step(int(action))
            total, over = total + float(reward), terminated or truncated
        totals.append(total)
    return float(np.mean(totals))

"""Other people's agents on the very same environments: how many transitions until they are near the best?

`dqn` is Stable-Baselines3's, with the settings rl-zoo tuned. `fqi` is MushroomRL's fitted Q-iteration with
extremely randomised trees, with the settings of its own example; a batch method, so it is given batches of
one-step transitions from states all over the box, which is more than an agent that must walk there gets. Both
need torch and are no part of `make install`: docs/usage/experiments.md says how to install them. Every now
and then the greedy policy is tried from the paper's starts, outside the count, and that is what is recorded.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

from optimist.arrays import FloatArray
from optimist.planning import roll_out
from optimist.systems import find_system
from optimist.systems.system import System

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
DQN_TOTAL = {"mountain-car": 120_000, "pendulum": 60_000, "bicycle": 100_000, "acrobot": 100_000}
DQN_EVERY = 500  # transitions

TREES = {"n_estimators": 50, "min_samples_split": 5, "min_samples_leaf": 2}
FQI_BATCHES = (250, 500, 1000, 2000, 4000, 8000)  # transitions
FQI_ITERATIONS = 120  # news travels one step in each; the best car takes 103
FQI_DISCOUNT = 0.99  # at most: with discount 1 the iteration need not converge


@dataclass(frozen=True)
class PeerRun:
    """Greedy totals of a peer as it learned."""

    peer: str
    problem: str
    seed: int
    transitions: list[int]  # when it was tried
    totals: list[float]  # mean over the paper's starts


def peer_file(peer: str, problem: str, seed: int, root: Path) -> Path:
    """Where it is recorded."""
    return root / "peers" / problem / peer / f"seed-{seed}.json"


def run_peer(peer: str, problem: str, seed: int, root: Path) -> PeerRun:
    """The recorded run, or else a new one, which is recorded."""
    file = peer_file(peer, problem, seed, root)
    if not file.exists():
        made = PEERS[peer](problem, seed=seed)
        file.parent.mkdir(parents=True, exist_ok=True)
        part = file.with_suffix(".part")
        part.write_text(json.dumps(asdict(made)) + "\n", encoding="utf-8")
        part.replace(file)
    return _read(file)


def _read(file: Path) -> PeerRun:
    try:
        return PeerRun(**json.loads(file.read_text(encoding="utf-8")))
    except (ValueError, TypeError) as error:
        raise ValueError(f"The record of a peer must be what `run_peer` wrote; got {file}.") from error


def run_dqn(problem: str, *, seed: int, total: int | None = None, every: int = DQN_EVERY) -> PeerRun:
    """Stable-Baselines3's DQN for `total` transitions."""
    try:
        import stable_baselines3  # noqa: PLC0415
    except ImportError:
        raise _missing("DQN", "Stable-Baselines3", "pip install 'optimist[peers]'") from None
    system = find_system(problem)
    env = gymnasium.make(system.gymnasium_id)
    learner = stable_baselines3.DQN(
        "MlpPolicy", env, seed=seed, policy_kwargs={"net_arch": NETWORK}, device="cpu", **DQN[problem]
    )
    counts: list[int] = []
    totals: list[float] = []

    def chosen(states: FloatArray) -> NDArray[np.int64]:
        return np.asarray(learner.predict(states, deterministic=True)[0])

    def try_out(_: dict[str, Any], __: dict[str, Any]) -> bool:
        if learner.num_timesteps % every == 0:
            counts.append(int(learner.num_timesteps))
            totals.append(_greedy_total(chosen, system))
        return True

    learner.learn(total or DQN_TOTAL[problem], callback=try_out, log_interval=None)
    return PeerRun("dqn", problem, seed, counts, totals)


def run_fqi(problem: str, *, seed: int, batches: Sequence[int] = FQI_BATCHES) -> PeerRun:
    """MushroomRL's fitted Q-iteration, for every number of transitions from nothing."""
    try:
        from mushroom_rl.algorithms.value import FQI  # noqa: PLC0415
        from mushroom_rl.core import MDPInfo  # noqa: PLC0415
        from mushroom_rl.policy import EpsGreedy  # noqa: PLC0415
        from mushroom_rl.utils import spaces  # noqa: PLC0415
        from sklearn.ensemble import ExtraTreesRegressor  # noqa: PLC0415
    except ImportError:
        needs = "opencv-python-headless tqdm pygame-ce matplotlib"
        command = f"pip install --no-deps mushroom-rl==1.10.2 and pip install {needs}"
        raise _missing("FQI", "MushroomRL", command) from None
    system = find_system(problem)
    task = system.task
    discount = min(task.discount, FQI_DISCOUNT)
    info = MDPInfo(
        spaces.Box(task.box.low, task.box.high), spaces.Discrete(task.n_actions), discount, task.max_steps
    )
    totals = []
    for count in batches:
        learner = FQI(
            info,
            EpsGreedy(epsilon=0.0),
            ExtraTreesRegressor,
            n_iterations=FQI_ITERATIONS,
            approximator_params={
                "input_shape": (task.box.n_dims,),
                "n_actions": task.n_actions,
                "random_state": seed,
                "n_jobs": 1,
                **TREES,
            },
            quiet=True,
        )
        learner.fit(_batch(system, count, seed))
        totals.append(_greedy_total(_maximiser(learner.approximator.predict), system))
    return PeerRun("fqi", problem, seed, list(batches), totals)


PEERS: dict[str, Callable[..., PeerRun]] = {"dqn": run_dqn, "fqi": run_fqi}
MODULES = {"dqn": "stable_baselines3", "fqi": "mushroom_rl"}


def is_installed(peer: str) -> bool:
    """Whether it can be run here."""
    return find_spec(MODULES[peer]) is not None


def _batch(system: System, count: int, seed: int) -> list[tuple[Any, ...]]:
    """Transitions from states and actions drawn uniformly, as MushroomRL wants them."""
    task = system.task
    stream = np.random.default_rng([seed, count])
    states = np.empty((0, task.box.n_dims))
    while len(states) < count:
        drawn = stream.uniform(task.box.low, task.box.high, size=(count, task.box.n_dims))
        states = np.vstack([states, drawn[~task.terminal(drawn)]])[:count]
    actions = stream.integers(task.n_actions, size=count)
    next_states = system.dynamics(states, task.controls[actions])
    rewards = task.rewards(states, task.controls[actions], next_states)
    over = task.terminal(next_states)
    return [
        (states[k], actions[k : k + 1], rewards[k], next_states[k], bool(over[k]), True) for k in range(count)
    ]


@dataclass(frozen=True)
class _Greedy:
    greedy: Callable[[FloatArray], NDArray[np.int64]]


def _maximiser(values: Callable[[FloatArray], FloatArray]) -> Callable[[FloatArray], NDArray[np.int64]]:
    return lambda states: values(states).argmax(axis=1)


def _greedy_total(chosen: Callable[[FloatArray], NDArray[np.int64]], system: System) -> float:
    rollouts = roll_out(system.task, system.dynamics, _Greedy(chosen), system.starts)
    return float(rollouts.total_rewards.mean())


def _missing(peer: str, package: str, command: str) -> ValueError:
    return ValueError(
        f"{peer} needs {package}, which is not installed: pip install torch==2.13.0, then {command}."
    )

"""A problem of somebody's own: my_cart.py, as a user would write it."""

from __future__ import annotations

from pathlib import Path

# It tells when its code is run (beside itself), and dies in the middle of a step if it is asked to.
MY_CART = '''
import os
import signal
from pathlib import Path

import gymnasium
import numpy as np

import optimist

with Path(__file__).with_name("executed").open("a") as told:
    told.write("x")


class Cart(gymnasium.Env):
    """A cart of 1 kg on a rail, pushed left or right for 0.2 s at a time; it is to stop at a mark."""

    observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (2,), np.float64)
    action_space = gymnasium.spaces.Discrete(2)
    n_steps = 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.state = np.array([[self.np_random.uniform(-1.0, 1.0), 0.0]])
        return self.state[0], {}

    def step(self, action):
        self.n_steps += 1
        if os.environ.get("CART_DIES_IN_STEP") == str(self.n_steps):
            os.kill(os.getpid(), signal.SIGKILL)
        paid = cost(self.state, None, None)[0]
        self.state = move(self.state, np.array([[(-1.0, 1.0)[action]]]))
        return self.state[0], paid, False, False, {}


def move(states, controls):
    velocity = np.clip(0.9 * states[:, 1] + 0.2 * controls[:, 0], -2.0, 2.0)
    position = np.clip(states[:, 0] + 0.2 * velocity, -2.0, 2.0)
    return np.column_stack([position, velocity])


def cost(states, controls, next_states):
    return -(states[:, 0] ** 2) - 0.1 * states[:, 1] ** 2


def make_blind_env(**more):
    return optimist.adapt(
        Cart(), low=[-2.0, -2.0], high=[2.0, 2.0], controls=[-1.0, 1.0], reward=cost, discount=0.95,
        max_steps=20, **more,
    )


def make_env():
    return make_blind_env(dynamics=move, axis_names=["position [m]", "velocity [m/s]"])
'''
STEPS = 20  # of an episode
QUICK = """
first_plans = [5, 15]
replan_every = 15
[grid]
nodes = [15, 15]
[planning]
depth = 1
"""


def write_my_cart(folder: Path) -> Path:
    """my_cart.py and quick.toml, settings with few nodes."""
    (folder / "my_cart.py").write_text(MY_CART, encoding="utf-8")
    (folder / "quick.toml").write_text(QUICK, encoding="utf-8")
    return folder / "my_cart.py"


def n_executed(file: Path) -> int:
    """How many times the code in the file was run."""
    told = file.with_name("executed")
    return len(told.read_text(encoding="utf-8")) if told.exists() else 0

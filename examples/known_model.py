"""Plan a problem of your own when the dynamics are known: a cart pushed to a mark.

Shows the whole path from a transition function to a policy: task, plan, episode, certificate.
"""

from __future__ import annotations

import numpy as np

import optimist
from optimist.arrays import FloatArray

STEP = 0.1


def dynamics(states: FloatArray, controls: FloatArray) -> FloatArray:
    """Position and velocity of a unit mass after 0.1 s of force."""
    velocity = np.clip(states[:, 1] + STEP * controls[:, 0], -2.0, 2.0)
    position = np.clip(states[:, 0] + STEP * velocity, -2.0, 2.0)
    return np.column_stack([position, velocity])


def reward(states: FloatArray, controls: FloatArray, next_states: FloatArray) -> FloatArray:
    """Squared distance from the mark, and a little for the force."""
    cost: FloatArray = states[:, 0] ** 2 + 0.1 * states[:, 1] ** 2 + 0.01 * controls[:, 0] ** 2
    return -cost


def main() -> None:
    task = optimist.Task(
        box=optimist.Box([-2.0, -2.0], [2.0, 2.0]),
        controls=np.array([-1.0, 0.0, 1.0]),
        reward=reward,
        discount=0.97,
        optimistic_value=0.0,
        max_steps=100,
    )
    made = optimist.plan(task, dynamics, optimist.Discretisation(nodes=(61, 61)), depth=0)
    episode = made.roll_out(np.array([[1.5, 0.0]]))
    print(f"converged: {made.plan.converged} after {made.plan.sweeps} sweeps")
    print(f"total reward from 1.5 m: {episode.total_rewards[0]:.2f}")
    print(f"ends at {np.round(episode.paths[-1, 0], 2).tolist()}")
    print(f"largest residual off the nodes: {made.certify().residual:.3f}")


if __name__ == "__main__":
    main()

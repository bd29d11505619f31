"""Plan a problem of your own when the dynamics are known: a cart pushed to a mark.

Shows the whole path from a transition function to a policy: Task, Grid, tables, plan, action.
"""

from __future__ import annotations

import numpy as np

from optimist import Box, Grid, Task
from optimist.arrays import FloatArray
from optimist.models import TrueDynamics
from optimist.planning import QFunction, certify, roll_out, solve, tabulate

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
    task = Task(
        box=Box([-2.0, -2.0], [2.0, 2.0]),
        controls=np.array([-1.0, 0.0, 1.0]),
        reward=reward,
        discount=0.97,
        optimistic_value=0.0,
        max_steps=100,
    )
    grid = Grid.uniform(task.box, (61, 61))
    tables = tabulate(grid, task, TrueDynamics(dynamics, task.controls).predict_on(grid))
    plan = solve(tables)
    policy = QFunction(grid, plan.q_values)
    episode = roll_out(task, dynamics, policy, np.array([[1.5, 0.0]]))
    bound = certify(policy, task, dynamics)
    print(f"converged: {plan.converged} after {plan.sweeps} sweeps")
    print(f"total reward from 1.5 m: {episode.total_rewards[0]:.2f}")
    print(f"ends at {np.round(episode.paths[-1, 0], 2).tolist()}")
    print(f"largest residual off the nodes: {bound.residual:.3f}")


if __name__ == "__main__":
    main()

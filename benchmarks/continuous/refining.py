"""Would a planner gain by the controls between those of its list?

`python -m benchmarks.continuous.refining`.

Plans are made with the true dynamics and longer and longer lists of controls: what their nodes are worth is
what a planner that refines its list would find. All are acted on in the same way, with any control between
those of the short list. What differs is the values alone. Prints one line of JSON for every system and list.
"""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import product
from time import process_time

import numpy as np

from benchmarks.continuous.members import MEMBERS
from optimist.arrays import FloatArray
from optimist.controls import finer
from optimist.discretisation import Discretisation
from optimist.environments.system_environment import SystemEnvironment
from optimist.planning import Chooser, Flow, Plan, Planner, roll_out
from optimist.runs.loop import begin
from optimist.steps import Dynamics, known
from optimist.task import Task

SYSTEMS = ("pendulum", "cart-pole", "planar-mass", "two-tanks")
LEVELS = {1: (5, 9, 17), 2: (3, 5, 9)}  # by the number of actuators; the first is what is planned with
STARTS = 20


def total(task: Task, dynamics: Dynamics, listed: FloatArray, starts: FloatArray) -> tuple[float, float]:
    """What a plan with the controls `listed` [n, k] earns, and the processor's seconds that it took."""
    began = process_time()
    layout = Chooser(task, Discretisation()).first()
    whole = replace(task, controls=listed, control_box=None)
    made = Planner(whole).plan(known(dynamics, listed), layout)
    took = process_time() - began
    values = np.repeat(made.plan.q_values.max(axis=1, keepdims=True), task.n_actions, axis=1)
    plan = Plan(values, made.plan.sweeps, made.plan.residual, made.plan.converged)
    flow = Flow.through(layout.grid, known(dynamics, task.controls), task.n_actions)
    acting = Planner(task).acting_on(plan, flow, layout).policy
    return float(roll_out(task, dynamics, acting, starts).total_rewards.mean()), took


def main() -> None:
    """Of all systems."""
    for name in SYSTEMS:
        env = MEMBERS[name](False)
        task = env.get_wrapper_attr("task")
        dynamics: Dynamics
        dynamics = (
            env.system.dynamics if isinstance(env, SystemEnvironment) else env.get_wrapper_attr("dynamics")
        )
        assert task.control_box is not None
        starts = np.array([begin(env, task, 0, episode) for episode in range(1, STARTS + 1)])
        spread = np.random.default_rng(0).uniform(-0.02, 0.02, starts.shape) * task.box.widths
        starts = task.box.clip(starts + spread)
        for count in LEVELS[task.control_box.n_dims]:
            listed = np.array(list(product(*finer(task.control_box, count))))
            earned, took = total(task, dynamics, listed, starts)
            row = {"member": name, "controls": len(listed), "total": earned, "cpu_seconds": round(took, 1)}
            print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()

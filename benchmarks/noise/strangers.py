"""Measurements on strangers: where the mean misleads, a change, stops, closed forms, a sweep's price."""

from __future__ import annotations

from time import perf_counter, process_time
from typing import Any

import numpy as np

import optimist
from benchmarks.noise import changing
from optimist.box import Box
from optimist.discretisation import ONE_STEP
from optimist.environments.system_environment import SystemEnvironment
from optimist.grid import Grid
from optimist.models import fit_dynamics
from optimist.planning.rollout import roll_out
from optimist.planning.solve import Limits, solve
from optimist.planning.tables import tabulate
from optimist.runs.loop import Updated
from optimist.steps import known
from optimist.systems import find_system
from optimist.task import Task
from optimist.transitions import Transition, Transitions

EPISODES, PLAYED = 6, 200
RAILS = {"stops": 1.8, "free": 1e9}


def estimate(problem: str, share: float, seed: int, *, n_transitions: int = 300) -> dict[str, Any]:
    """Learned noise variance against the true one, controls at random and held for three steps."""
    env = SystemEnvironment(problem, noise=share)
    seen = wandered(env, seed, n_transitions)
    model = fit_dynamics(seen, env.task.box, env.task.controls, fit_seed=seed)
    found = np.zeros(env.task.box.n_dims) if model.noise is None else model.noise
    return {"ratios": np.round((found / env.noise) ** 2, 3).tolist()}


def wandered(env: SystemEnvironment, seed: int, n_transitions: int) -> Transitions:
    """Controls at random, held for three steps."""
    stream, rows = np.random.default_rng(seed), list[Transition]()
    episode = 0
    while len(rows) < n_transitions:
        episode += 1
        options = {"state": env.system.nearby_starts(1, seed=episode)[0]} if episode % 2 == 0 else None
        state, _ = env.reset(seed=1000 * seed + episode, options=options)
        action = 0
        for number in range(40):
            action = int(stream.integers(env.task.n_actions)) if number % 3 == 0 else action
            after, reward, ended, _, _ = env.step(action)
            rows.append(Transition(state, action, reward, after, ended, number == 39))
            state = after
            if ended:
                break
    return Transitions.of(rows[:n_transitions])


def misled(problem: str, _share: float, seed: int) -> dict[str, Any]:
    """Planned with the mean and in expectation, dynamics known; and learned: failures, totals."""
    where = {
        "cliff": (changing.CLIFF, changing.walk, changing.CLIFF_START, changing.CLIFF_NOISE),
        "rocks": (changing.VEHICLE, changing.steer, changing.VEHICLE_START, changing.VEHICLE_NOISE),
    }
    task, dynamics, starts, noise = where[problem]
    said: dict[str, Any] = {}
    many = np.repeat(starts, PLAYED, axis=0)

    def play(name: str, policy: Any) -> None:
        totals = roll_out(task, dynamics, policy, many, noise=noise, seed=100 + seed).total_rewards
        failed = float((totals <= -30.0).mean())
        said[name] = {"mean": round(float(totals.mean()), 3), "failures": round(failed, 4)}

    play("with the mean", optimist.plan(task, dynamics, starts=starts).sights)
    play("in expectation", optimist.plan(task, dynamics, starts=starts, noise=noise).sights)
    env = changing.Stranger(task, dynamics, starts, noise)
    agent = changing.agent_of(env, seed)
    agent.learn(episodes=EPISODES)
    play("learned", agent.policy)
    return said | {"settled_at": agent.stopped_learning_at}


def changed(_problem: str, share: float, seed: int) -> dict[str, Any]:
    """A pendulum that weighs 30 % more after episode 5: totals since, and what is possible."""
    noise = share * np.array([0.4, 1.0])
    env = changing.Stranger(changing.PENDULUM, changing.pendulum(), changing.HANGING, noise)
    agent = changing.agent_of(env, seed)
    agent.learn(episodes=5)
    env.dynamics = changing.pendulum(1.3)
    agent.learn(episodes=12)
    plan = optimist.plan(
        changing.PENDULUM, env.dynamics, starts=changing.HANGING, noise=noise if share else None
    )
    many = np.repeat(changing.HANGING, PLAYED if share else 1, axis=0)
    possible = float(plan.roll_out(many).total_rewards.mean())
    totals = [row.total_reward for row in agent.episodes]
    near = [total >= possible - 0.1 * abs(possible) for total in totals[5:]]
    return {
        "totals": np.round(totals, 2).tolist(),
        "possible": round(possible, 2),
        "episodes": near.index(True) + 1 if any(near) else None,
        "faded": agent._agent.doubts.n_faded,
    }


def worn(_problem: str, share: float, seed: int) -> dict[str, Any]:
    """A pendulum that gets heavier, 3 % an episode from 6 to 15: totals, and what is possible then."""
    noise = share * np.array([0.4, 1.0])
    env = changing.Stranger(changing.PENDULUM, changing.pendulum(), changing.HANGING, noise)
    agent = changing.agent_of(env, seed)
    for number in range(1, 21):
        env.dynamics = changing.pendulum(1.0 + 0.03 * min(max(number - 5, 0), 10))
        agent.learn(episodes=number)
    plan = optimist.plan(
        changing.PENDULUM, env.dynamics, starts=changing.HANGING, noise=noise if share else None
    )
    many = np.repeat(changing.HANGING, PLAYED if share else 1, axis=0)
    return {
        "totals": [round(row.total_reward, 2) for row in agent.episodes],
        "possible": round(float(plan.roll_out(many).total_rewards.mean()), 2),
        "faded": agent._agent.doubts.n_faded,
    }


def stopped(problem: str, _share: float, seed: int) -> dict[str, Any]:
    """A cart on a rail with hard stops in the box, or none: when it settles, what it earns."""
    began = process_time()
    env = changing.Stranger(changing.RAIL, changing.rail(RAILS[problem]), changing.RAIL_START)
    agent, settled = changing.agent_of(env, seed), list[int]()

    def listen(event: object) -> None:
        if isinstance(event, Updated) and event.update.settled:
            settled.append(event.update.n_transitions)

    agent.learn(episodes=10, callback=listen)
    totals = [round(row.total_reward, 2) for row in agent.episodes]
    played = roll_out(changing.RAIL, env.dynamics, agent.policy, changing.RAIL_START).total_rewards
    return {
        "totals": totals,
        "settled_first": settled[0] if settled else None,
        "settled_at": agent.stopped_learning_at,
        "played": round(float(played.mean()), 2),
        "transitions": agent.num_timesteps,
        "seconds": round(process_time() - began, 1),
    }


def closed_forms() -> dict[str, Any]:
    """A chain and a linear system with quadratic cost: relative errors of values."""
    a, b, deviation, cost, discount = 0.95, 0.1, 0.05, 0.1, 0.95
    weight = 1.0
    for _ in range(10_000):
        gain = (discount * a * b * weight) ** 2 / (cost + discount * b**2 * weight)
        weight = 1.0 + discount * a**2 * weight - gain
    task = Task(
        box=Box([-2.0], [2.0]),
        controls=np.linspace(-2.0, 2.0, 801),
        reward=lambda states, controls, _after: -(states[:, 0] ** 2 + cost * controls[:, 0] ** 2),
        discount=discount,
        optimistic_value=0.0,
    )
    found = {}
    for nodes in (101, 201, 401):
        grid = Grid.uniform(task.box, [nodes])
        step = known(lambda states, controls: a * states + b * controls, task.controls)
        tables = tabulate(grid, task, step, holding=ONE_STEP, noise=np.array([deviation]))
        values = solve(tables, limits=Limits(1e-9, 20_000)).q_values.max(axis=1)
        x = grid.nodes[:, 0]
        true = -weight * (x**2 + discount / (1.0 - discount) * deviation**2)
        inner = np.abs(x) < 1.0
        found[str(nodes)] = float((np.abs(values - true) / np.abs(true))[inner].max())
    return found


def sweep_price(nodes: int = 25, deviation: float = 0.5) -> dict[str, Any]:
    """Seconds of a whole solve per sweep on nodes^4, with noise of half a cell and without."""
    system = find_system("acrobot")
    grid = Grid.uniform(system.task.box, [nodes] * 4)
    cells = grid.box.widths / nodes
    step, said = known(system.dynamics, system.task.controls), {}
    for name, noise in (("without", None), ("with", deviation * cells)):
        tables = tabulate(grid, system.task, step, noise=noise)
        best = np.inf
        for _ in range(3):
            began = perf_counter()
            plan = solve(tables, limits=Limits(1e-9, 60), threads=1)
            best = min(best, (perf_counter() - began) / plan.sweeps)
        plain = np.inf
        for _ in range(3):
            began = perf_counter()
            plan = solve(tables, limits=Limits(1e-9, 30), threads=1, accelerate=False, backup="v-plain")
            plain = min(plain, (perf_counter() - began) / plan.sweeps)
        said[name] = {"in place": best, "plain": plain}
    ratios = {kind: round(said["with"][kind] / said["without"][kind], 2) for kind in ("in place", "plain")}
    return said | {"ratios": ratios}

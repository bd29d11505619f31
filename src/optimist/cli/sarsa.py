"""Sarsa behind `optimist learn`, `resume` and `evaluate`: its runs are summarised per episode."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

from optimist.experiments.sarsa_online import resume_sarsa, run_sarsa, sarsa_learner
from optimist.experiments.sarsa_settings import SARSA_AGENTS
from optimist.planning import Rollouts, roll_out
from optimist.runs import EpisodeRow, RunStore
from optimist.systems import System

SHOWN = 10  # episodes told of, evenly spread


def is_sarsa(run: Path) -> bool:
    """Whether a recorded run is one of Sarsa's."""
    with RunStore.open(run, writing=False) as store:
        return store.header.get("agent") in SARSA_AGENTS


def learn_sarsa(problem: str, agent: str, *, seed: int, episodes: int, run: Path) -> dict[str, Any]:
    """A new run; what the command says of it."""
    run_sarsa(problem, agent, seed=seed, episodes=episodes, directory=run)
    return _result(run)


def go_on_sarsa(run: Path, episodes: int | None) -> dict[str, Any]:
    """A recorded run, longer."""
    resume_sarsa(run, episodes=episodes)
    return _result(run)


def evaluate_sarsa(run: Path) -> tuple[Rollouts, System]:
    """Greedy episodes from the paper's starts."""
    learner, system = sarsa_learner(run)
    return roll_out(system.task, system.dynamics, learner, system.starts), system


def print_sarsa(result: dict[str, Any]) -> None:
    """Some of its episodes."""
    rows = [EpisodeRow(**row) for row in result["episodes"]]
    print(f"{result['problem']}: {result['agent']}, seed {result['seed']}, recorded in {result['run']}")
    for row in rows[:: max(1, len(rows) // SHOWN)]:
        print(
            f"  episode {row.episode}: total reward {row.total_reward:.4g} in {row.steps} steps "
            f"({row.ending}), {row.transitions} transitions"
        )


def _result(run: Path) -> dict[str, Any]:
    with RunStore.open(run, writing=False) as store:
        header, rows = store.header, store.episodes()
    return {
        "run": str(run),
        "agent": header["agent"],
        "problem": header["problem"],
        "seed": header["seed"],
        "episodes": [asdict(row) for row in rows],
        "stopped_learning_at": None,
        "transitions": rows[-1].transitions if rows else 0,
    }

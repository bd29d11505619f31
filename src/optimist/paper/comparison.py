"""One table against everybody else: transitions until near the best, from recorded runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from optimist.experiments.efficiency import measure_efficiency
from optimist.experiments.specs import Experiment
from optimist.experiments.statistics import Near, median_transitions, transitions_until_near
from optimist.paper.figure4 import best_totals, run_figure4
from optimist.paper.order import Order
from optimist.paper.peers import PEERS, PeerRun, is_installed, peer_file, run_peer
from optimist.paper.runs import REFERENCE, Runs, recorded_runs
from optimist.runs import EpisodeRow, RunStore
from optimist.systems import find_system

PEER_PROBLEMS = ("mountain-car", "pendulum")
PEER_SEEDS = 3
PEER_MINUTES = 20  # for one seed of all, on one core

Say = Callable[[str], None]


def peers(order: Order) -> list[Path]:
    """Make it."""
    seeds = 1 if order.quick else PEER_SEEDS
    at_hand = peers_at_hand(order.results, seeds)
    for peer in sorted(set(PEERS) - set(at_hand)):
        order.say(f"{peer} is left out: it is not installed (docs/usage/experiments.md says how)")
    if at_hand:
        order.say(f"the peers: about {seeds * PEER_MINUTES} minutes on one core if not recorded")
    experiment = run_figure4(order)
    runs = recorded_runs(experiment, order.results)
    best = best_totals(runs, order)
    rows = list(
        near_rows(experiment, runs, order.results, best, peers=at_hand, peer_seeds=seeds, say=order.say)
    )
    return [order.written(order.named("peers"), near_as_markdown(rows))]


@dataclass(frozen=True)
class NearRow:
    """After how many transitions the runs of an agent came within 5 % of the best, and stayed."""

    problem: str
    agent: str
    how: str  # what was looked at
    runs: list[Near]


def peers_at_hand(root: Path, seeds: int) -> list[str]:
    """The peers that are installed, or have been recorded."""
    return [
        peer
        for peer in PEERS
        if is_installed(peer)
        or all(
            peer_file(peer, problem, seed, root).exists()
            for problem in PEER_PROBLEMS
            for seed in range(seeds)
        )
    ]


def near_rows(
    experiment: Experiment,
    runs: Runs,
    root: Path,
    best: dict[str, float],
    *,
    peers: Sequence[str],
    peer_seeds: int,
    say: Say,
) -> Iterator[NearRow]:
    """Ours and Sarsa's from recorded runs; the peers', which are run if they are not recorded."""
    for problem in dict.fromkeys(problem for problem, _ in runs):
        say(f"{problem}, {REFERENCE}")
        yield NearRow(problem, REFERENCE, "its plans, without bonus", _plans(experiment, root, problem))
        for (of, agent), seeds in runs.items():
            if of == problem:
                yield NearRow(problem, agent, "its episodes", [_online(rows, best[of]) for rows in seeds])
        for peer in peers if problem in PEER_PROBLEMS else ():
            made = []
            for seed in range(peer_seeds):
                say(f"{problem}, {peer}, seed {seed}")
                made.append(_greedy(run_peer(peer, problem, seed, root), best[problem]))
            yield NearRow(problem, peer, "its greedy policy", made)


def near_as_markdown(rows: Sequence[NearRow]) -> str:
    """One table: ours and theirs. The last column favours them: their first time against ours for good."""
    ours: dict[str, float | None] = {}
    for row in rows:
        if row.agent == REFERENCE:
            ours.setdefault(row.problem, median_transitions([near.for_good for near in row.runs]))
    lines = [
        "| problem | agent | judged by | seeds | near for the first time | three times in a row | for good "
        f"| first, against {REFERENCE}'s for good |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        found = [[getattr(near, name) for near in row.runs] for name in ("first", "lasting", "for_good")]
        cells = [row.problem, row.agent, row.how, str(len(row.runs)), *map(_said, found)]
        ratio = "" if row.agent == REFERENCE else _ratio(median_transitions(found[0]), ours[row.problem])
        lines.append(f"| {' | '.join([*cells, ratio])} |")
    return "\n".join(lines) + "\n"


def _ratio(theirs: float | None, ours: float | None) -> str:
    if ours is None:
        return ""
    return "never" if theirs is None else f"{theirs / ours:.3g}"


def _said(counts: Sequence[int | None]) -> str:
    """The median, the range, and how many never came there."""
    median = median_transitions(counts)
    reached = sorted(count for count in counts if count is not None)
    missed = len(counts) - len(reached)
    if not reached:
        return "never"
    spread = f"{reached[0]:,} to {reached[-1]:,}" if reached[0] != reached[-1] else f"{reached[0]:,}"
    never = f", never in {missed}" if missed else ""
    return f"{'never' if median is None else f'{median:,.0f}'} ({spread}{never})"


def _plans(experiment: Experiment, root: Path, problem: str) -> list[Near]:
    found = []
    for spec in experiment.specs():
        if (spec.problem, spec.agent) == (problem, REFERENCE):
            with RunStore.open(spec.directory(root), writing=False) as store:
                found.append(measure_efficiency(store, find_system(problem)).near)
    return found


def _online(rows: Sequence[EpisodeRow], best: float) -> Near:
    totals = np.array([row.total_reward for row in rows])
    return transitions_until_near(totals, np.array([row.transitions for row in rows]), best)


def _greedy(run: PeerRun, best: float) -> Near:
    return transitions_until_near(np.array(run.totals), np.array(run.transitions), best)

"""Transitions until near the best: the table, from rows made by hand and from recorded runs."""

from __future__ import annotations

import json
from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path

import pytest

from optimist.agents import PRESETS, AgentSettings
from optimist.agents.settings import PlanningOptions
from optimist.discretisation import Discretisation
from optimist.experiments.campaign import run_campaign
from optimist.experiments.specs import Experiment, Group
from optimist.experiments.statistics import Near
from optimist.paper.comparison import PEER_PROBLEMS, NearRow, near_as_markdown, near_rows, peers_at_hand
from optimist.paper.peers import MODULES, PEERS, PeerRun, peer_file
from optimist.paper.runs import recorded_runs


def cells(table: str) -> list[list[str]]:
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()]


def test_the_table_says_medians_ranges_never_and_ratios() -> None:
    rows = [
        NearRow("pendulum", "gp-rmax-exp", "its plans", [Near(20, 20, 20), Near(40, 40, 40)]),
        NearRow("pendulum", "gp-rmax-exp", "its episodes", [Near(500, 500, 500), Near(500, 500, 500)]),
        NearRow("pendulum", "dqn", "x", [Near(3000, None, None), Near(6000, 6000, 6000)]),
        NearRow("pendulum", "fqi", "x", [Near(None, None, None)] * 2),
        NearRow("pendulum", "sarsa-fine", "x", [Near(900, 900, 1500), Near(1000, 1000, 4500)]),
    ]
    head, rule, plans, online, dqn, fqi, sarsa = cells(near_as_markdown(rows))
    assert len({len(line) for line in (head, rule, plans, online, dqn, fqi, sarsa)}) == 1
    assert plans == ["pendulum", "gp-rmax-exp", "its plans", "2", *["30 (20 to 40)"] * 3, ""]
    assert online[4:] == ["500 (500)", "500 (500)", "500 (500)", ""]
    assert dqn[4:] == ["4,500 (3,000 to 6,000)", *["never (6,000, never in 1)"] * 2, "150"]
    assert fqi[4:] == ["never"] * 4
    assert sarsa[4:] == ["950 (900 to 1,000)", "950 (900 to 1,000)", "3,000 (1,500 to 4,500)", "31.7"]


QUICK = AgentSettings(
    first_plans=(20, 50, 100),
    replan_every=100,
    grid=Discretisation(nodes=(61, 61), hold=1),
    planning=PlanningOptions(depth=1, rehearse=False),
)


def test_rows_come_from_what_is_recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(PRESETS, "quick", QUICK)
    experiment = Experiment(
        name="trial",
        runs=(
            Group(problems=("mountain-car",), agents=("gp-rmax-exp",), seeds=2, episodes=2, preset="quick"),
            Group(problems=("mountain-car",), agents=("sarsa-coarse",), seeds=2, episodes=3),
        ),
    )
    assert {outcome.status for outcome in run_campaign(experiment.specs(), tmp_path, workers=1)} == {"done"}
    for peer in PEERS:
        made = PeerRun(peer, "mountain-car", 0, [500, 1000, 1500], [-500.0, -103.0, -120.0])
        file = tmp_path / "peers" / "mountain-car" / peer / "seed-0.json"
        file.parent.mkdir(parents=True)
        file.write_text(json.dumps(asdict(made)), encoding="utf-8")
    best = {"mountain-car": -103.0}
    said: list[str] = []
    runs = recorded_runs(experiment, tmp_path)
    rows = list(
        near_rows(experiment, runs, tmp_path, best, peers=["dqn", "fqi"], peer_seeds=1, say=said.append)
    )
    assert [row.agent for row in rows] == ["gp-rmax-exp", "gp-rmax-exp", "sarsa-coarse", "dqn", "fqi"]
    plans, online, sarsa, dqn, _ = rows
    for near, seeds in zip(
        online.runs, recorded_runs(experiment, tmp_path)["mountain-car", "gp-rmax-exp"], strict=True
    ):
        first = next(row.transitions for row in seeds if row.total_reward >= -103.0 * 1.05)
        assert near.first == first
    assert all(near.for_good is not None and near.for_good <= 200 for near in plans.runs)
    assert sarsa.runs == [Near(None, None, None)] * 2
    assert dqn.runs == [Near(1000, None, None)]
    assert len(said) == 3


def test_peers_at_hand_are_those_installed_or_recorded(tmp_path: Path) -> None:
    installed = [peer for peer, module in MODULES.items() if find_spec(module) is not None]
    assert peers_at_hand(tmp_path, 1) == installed
    for problem in PEER_PROBLEMS:
        file = peer_file("fqi", problem, 0, tmp_path)
        file.parent.mkdir(parents=True)
        file.write_text("", encoding="utf-8")
    assert "fqi" in peers_at_hand(tmp_path, 1)
    assert ("fqi" in peers_at_hand(tmp_path, 2)) == ("fqi" in installed)

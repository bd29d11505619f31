"""Seeded runs, compared with recorded ones: nobody changes what an agent does unawares.

Remake the record with `python -m tests.agents.make_golden` after a change that is meant to change it; with
`--check` it compares all of it, here are only the quick ones.
"""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import numpy as np
import pytest

from optimist.experiments.kinds import KINDS
from optimist.systems import PAPER
from tests.agents.make_golden import DIGESTS, FILE, RUNS, STEPS, golden_run, recorded_runs, short_run

run = cache(golden_run)

# By measured time (20 s in all), with every system and every kind of agent among them: whole runs, ...
QUICK: dict[str, int | None] = dict.fromkeys(name for name in RUNS if "sarsa" in name)
QUICK |= {
    "mountain-car/gp-rmax-exp/paper": None,
    "pendulum/gp-rmax-exp/paper": None,
    # ... or so many transitions
    "mountain-car/gp-rmax-noexp/ours": 20,
    "pendulum/gp-rmax-exp/ours": 12,
    "bicycle/gp-rmax-grid/ours": 20,
    "acrobot/gp-rmax-exp/ours": 12,
    "cart-pole/gp-rmax-exp/ours": 26,
}


@cache
def recorded() -> dict[str, Any]:
    document: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))
    return document


def test_the_record_is_of_a_run_worth_recording() -> None:
    """Default grid, more than one episode, every action tried."""
    assert np.prod(recorded()["nodes"]) > 10_000
    assert len(recorded()["actions"]) == STEPS
    assert set(recorded()["actions"]) == set("012")
    assert recorded()["episodes"][0][3] == "terminated"


def test_the_same_actions_are_taken() -> None:
    assert run()["actions"] == recorded()["actions"]


def test_the_same_states_are_passed() -> None:
    np.testing.assert_allclose(run()["states"], recorded()["states"], rtol=0.0, atol=1e-9)


def test_the_same_plans_are_made_and_episodes_ended() -> None:
    assert run()["plans"] == recorded()["plans"]
    assert run()["episodes"] == recorded()["episodes"]


def test_the_same_values_are_found() -> None:
    np.testing.assert_allclose(run()["q_values"], recorded()["q_values"], rtol=0.0, atol=1e-6)


def test_a_run_of_every_agent_on_every_system_is_recorded() -> None:
    assert sorted(recorded_runs()) == sorted(RUNS)
    assert {tuple(name.split("/")[:2]) for name in RUNS} >= {(s, a) for s in PAPER for a in KINDS}
    for part in (0, 1):
        assert {name.split("/")[part] for name in QUICK} == {name.split("/")[part] for name in RUNS}
    for name, document in recorded_runs().items():
        if "sarsa" not in name:
            assert len(document["actions"]) == document["episodes"][-1][3]
            assert set(DIGESTS) <= set(document)


@pytest.mark.parametrize("name", QUICK)
def test_runs_go_as_they_did(name: str) -> None:
    most = QUICK[name]
    found, expected = short_run(name, most), recorded_runs()[name]
    assert set(found) == set(expected)
    if "actions" in expected:
        assert found["actions"] == expected["actions"][:most]
        assert found["plans"] == [at for at in expected["plans"] if most is None or at <= most]
        assert found["layouts"] == expected["layouts"][: len(found["plans"])]
    ended = [row for row in expected["episodes"] if most is None or row[3] <= most]
    # but for the total reward, which may differ by rounding, an episode is whole numbers and a word
    for row, (episode, steps, total, transitions, ending) in zip(found["episodes"], ended, strict=True):
        assert [*row[:2], *row[3:]] == [episode, steps, transitions, ending]
        assert row[2] == pytest.approx(total, rel=1e-9, abs=0.0)

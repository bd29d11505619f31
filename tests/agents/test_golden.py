"""A seeded run of 200 steps, compared with the recorded one: nobody changes what the agent does unawares.

Remake the record with `python -m tests.agents.make_golden` after a change that is meant to change it.
"""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import numpy as np

from tests.agents.make_golden import FILE, STEPS, golden_run

run = cache(golden_run)


@cache
def recorded() -> dict[str, Any]:
    document: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))
    return document


def test_the_record_is_of_a_run_worth_recording() -> None:
    """Default grid, more than one episode, every action tried."""
    assert recorded()["nodes"] == [100, 100]
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

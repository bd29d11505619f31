"""`optimist problems`."""

from __future__ import annotations

from optimist.systems import NAMES, SYSTEMS
from tests.cli.running import Say, SayJson, run


def test_json_has_the_contract_keys(say_json: SayJson) -> None:
    problems = say_json("problems")["problems"]
    assert [entry["name"] for entry in problems] == list(NAMES)
    (cart_pole,) = [entry for entry in problems if entry["name"] == "cart-pole"]
    assert cart_pole["gymnasium_id"] == "optimist/CartPole-v0"
    assert cart_pole["state_dim"] == 4
    for entry in problems:
        assert set(entry) == {"name", "gymnasium_id", "state_dim", "n_actions", "discount", "best_known"}


def test_every_problem_is_listed_for_people(say: Say) -> None:
    _, listed, _ = say("problems")
    assert "cart-pole" in listed
    for system in SYSTEMS.values():
        assert system.name in listed
        assert system.gymnasium_id in listed


def test_help_and_version(say: Say) -> None:
    assert "plan" in say("--help")[1]
    assert run("--version").stdout.startswith("optimist ")

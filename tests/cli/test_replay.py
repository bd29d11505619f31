"""`optimist replay`: the contract, anybody's environment, bad input; `--axes` wherever pictures are drawn."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from PIL import Image

from optimist.experiments.online import start_run
from optimist.experiments.problems import find_problem
from tests.cli.running import Say, SayJson, require_refused
from tests.experiments.own_problem import write_my_cart
from tests.quick import short_episodes

SETTINGS = "first_plans = [5]\nreplan_every = 12\n[grid]\nnodes = [11, 11]\n[planning]\ndepth = 1\n"
STEPS = 16


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Runs of mountain car, of Sarsa on it, and of somebody's cart; episodes are short meanwhile."""
    folder = tmp_path_factory.mktemp("replayed")
    (folder / "settings.toml").write_text(SETTINGS, encoding="utf-8")
    path = sys.path.copy()
    with short_episodes(STEPS):
        for problem, agent, name, file in (
            ("mountain-car", "gp-rmax-exp", "car", folder / "settings.toml"),
            ("mountain-car", "sarsa-coarse", "sarsa", None),
            (f"{write_my_cart(folder)}:make_env", "gp-rmax-exp", "cart", folder / "settings.toml"),
        ):
            made = start_run(find_problem(problem), agent, seed=0, run=folder / name, episodes=1, file=file)
            with made as learner:
                learner.learn(episodes=1)
        yield folder
    sys.path[:] = path


def test_replay_says_which_file_it_wrote(place: Path, tmp_path: Path, say_json: SayJson) -> None:
    file = tmp_path / "film.gif"
    result = say_json("replay", str(place / "car"), "--episode", "1", "--out", str(file), "--fps", "20")
    assert result["file"] == str(file)
    assert (result["problem"], result["episode"], result["steps"]) == ("mountain-car", 1, STEPS)
    with Image.open(file) as film:
        assert film.n_frames == STEPS + 1  # type: ignore[attr-defined]
        assert film.info["duration"] == 50


def test_without_json_it_tells_in_words(
    place: Path, tmp_path: Path, say: Say, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    code, out, err = say("replay", str(place / "car"), "--now")
    assert (code, err) == (0, "")
    assert (
        out == f"mountain-car, episode 1: total reward -16 in {STEPS} steps (truncated)\n  film: replay.gif\n"
    )
    assert (tmp_path / "replay.gif").is_file()


def test_of_somebodys_own_environment_coordinates_are_shown(
    place: Path, tmp_path: Path, say_json: SayJson
) -> None:
    named = ("--problem", f"{place / 'my_cart.py'}:make_env")
    result = say_json(
        "replay", str(place / "cart"), *named, "--axes", "1,0", "--out", str(tmp_path / "a.gif")
    )
    assert result["problem"] == "my_cart.py:make_env"
    assert (tmp_path / "a.gif").is_file()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["car", "--episode", "2"], "The episode must be from 1 to 1; got 2"),
        (["car", "--axes", "0,2"], "--axes must be two different axes from 0 to 1; got '0,2'"),
        (["car", "--axes", "1"], "--axes must be two different axes from 0 to 1; got '1'"),
        (["car", "--axes", "0,-1"], "--axes must be two different axes from 0 to 1; got '0,-1'"),
        (["car", "--fps", "-1"], "`fps` must be above 0"),
        (["car", "--out", "film.png"], "The film must end in .gif, .mp4; got 'film.png'"),
        (["car", "--out", "nowhere/film.gif"], "must go to a directory that exists; got nowhere"),
        (["sarsa"], "got episodes without their transitions"),
        (["cart"], "must be named again, since it is somebody's own code"),
        (["nothing"], "must hold a run"),
    ],
)
def test_bad_input_is_refused_in_one_sentence(
    place: Path, say: Say, arguments: list[str], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(place)
    before = {file.name for file in place.iterdir()}
    assert said in require_refused(say("replay", *arguments))
    assert {file.name for file in place.iterdir()} == before


def test_its_own_rendering_is_asked_for_and_refused_where_there_is_none(place: Path, say: Say) -> None:
    own = ("--problem", f"{place / 'my_cart.py'}:make_env", "--render", "--now")
    assert 'render_mode="rgb_array"' in require_refused(say("replay", str(place / "cart"), *own))


@pytest.mark.parametrize("command", ["learn", "resume"])
def test_two_axes_are_checked_before_anything_is_learned(place: Path, say: Say, command: str) -> None:
    what = ["mountain-car", "--run", str(place / "new")] if command == "learn" else [str(place / "car")]
    said = require_refused(say(command, *what, "--axes", "0,0", "--plot", str(place / "picture.png")))
    assert "--axes must be two different axes from 0 to 1; got '0,0'" in said
    assert not (place / "new").exists()
    assert not (place / "picture.png").exists()


def test_the_help_of_sweep_shows_the_tables_of_a_file(say: Say) -> None:
    code, out, _ = say("sweep", "--help")
    assert code == 0
    assert "[[runs]]" in out

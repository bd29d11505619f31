"""A replay shows what was recorded, and what the agent knew then: as an agent does that knows no more."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from PIL import Image

from optimist import GPRMax
from optimist.agents import GPRMaxAgent
from optimist.arrays import FloatArray
from optimist.runs.loop import catch_up
from optimist.views import replay as replaying
from optimist.views.film_figure import Picture, Stage
from optimist.views.knowledge import Episode, Maps
from optimist.views.plan_figure import Slice
from optimist.views.replay import Look, replay
from tests.runs.recording import SMALL, Line, ShortLine, ShortSystem, learned

STEPS = 30


def car() -> ShortSystem:
    return ShortSystem("mountain-car", STEPS)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two short episodes of mountain car."""
    place = tmp_path_factory.mktemp("replayed") / "run"
    with GPRMax(car(), settings=SMALL, seed=0, run=place) as learner:
        learner.learn(episodes=2)
    return place


@pytest.fixture(scope="module")
def line(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return learned(tmp_path_factory.mktemp("line") / "run", problem="line", episodes=2)


def staged(monkeypatch: pytest.MonkeyPatch, *given: Any, **choices: Any) -> list[Stage]:
    """The stages of a replay; no film is written."""
    found: list[Stage] = []

    class Seen(Stage):
        def __init__(self, *arguments: Any) -> None:
            super().__init__(*arguments)
            found.append(self)

    monkeypatch.setattr(replaying, "Stage", Seen)
    monkeypatch.setattr(replaying, "write_film", lambda *arguments, **more: None)
    replay(*given, **choices)
    return found


def test_the_film_has_a_picture_of_every_step(finished: Path, tmp_path: Path) -> None:
    heard: list[tuple[str, int, int]] = []
    with GPRMax.resume(finished, car(), writing=False) as run:
        before = run.value([[-0.5, 0.0]])
        look = Look(fps=25.0)
        made = replay(
            run, tmp_path / "film.gif", episode=1, look=look, on_progress=lambda *said: heard.append(said)
        )
        np.testing.assert_array_equal(run.value([[-0.5, 0.0]]), before)  # it is as it was
    with Image.open(made) as film:
        assert film.n_frames == STEPS + 1  # type: ignore[attr-defined]
        assert film.info["duration"] == 40
    assert {what for what, _, _ in heard} == {"making its plans again", "drawing"}
    assert all(0 <= done <= total for _, done, total in heard)


def test_what_it_knew_then_is_what_an_agent_knows_that_saw_no_more(
    finished: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with GPRMax.resume(finished, car(), writing=False) as run:
        (stage,) = staged(monkeypatch, run, "film.gif", episode=1)
        transitions = list(run._agent.transitions)
        states = Slice((0, 1), np.zeros(2), ("", "")).lattice(run.box, replaying.RESOLUTION)[2]
    agent = GPRMaxAgent(car().task, SMALL, seed=0)
    changed = 0
    for step in range(STEPS):
        list(catch_up(agent, None))
        maps = stage.scene.maps[step]
        if agent.knowledge is None:
            assert maps.values is maps.unknown is None
        else:
            assert maps.values is not None
            assert maps.unknown is not None
            known = agent.known()
            values = known.planned.q_function.value(states)
            np.testing.assert_array_equal(maps.values.ravel(), values)
            np.testing.assert_array_equal(maps.unknown.ravel(), known.flow.uncertainty(states).mean(axis=1))
            changed += step > 0 and not _same(maps, stage.scene.maps[step - 1])
        agent.observe(transitions[step])
    assert changed >= 3  # terra incognita shrinks while one watches


def _same(one: Maps, other: Maps) -> bool:
    return other.values is not None and np.array_equal(one.values, other.values)  # type: ignore[arg-type]


def test_now_is_the_plan_it_has_and_nothing_is_planned(
    finished: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with GPRMax.resume(finished, car(), writing=False) as run:
        monkeypatch.setattr(GPRMaxAgent, "update", None)
        (stage,) = staged(monkeypatch, run, "film.gif", episode=1, look=Look(now=True))
        states = Slice((0, 1), np.zeros(2), ("", "")).lattice(run.box, replaying.RESOLUTION)[2]
        for maps in stage.scene.maps:
            assert maps.values is not None
            np.testing.assert_array_equal(maps.values.ravel(), run.value(states))


def coloured_at(stage: Stage, picture: Picture, name: str, colour: tuple[int, int, int]) -> FloatArray:
    """Where in the units of a panel that colour is, on average.  [2]"""
    rows, columns = np.nonzero(np.abs(picture.astype(int) - colour).max(axis=2) < 12)
    places = np.column_stack([columns + 0.5, picture.shape[0] - rows - 0.5])
    panel = stage.drawn[name]
    inside = panel.bbox.padded(6.0)
    places = np.array([place for place in places if inside.contains(*place)])
    found: FloatArray = panel.transData.inverted().transform(places.mean(axis=0))
    return found


def test_the_mark_is_where_the_system_is(finished: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with GPRMax.resume(finished, car(), writing=False) as run:
        (stage,) = staged(monkeypatch, run, "film.gif", episode=2, look=Look(now=True))
        shown = Episode.of(run, 2)
        for k in (0, 12, STEPS):
            place = coloured_at(stage, stage.picture(k), "values", (213, 94, 0))
            assert (np.abs(place - shown.states[k]) < 0.012 * run.box.widths).all()


def test_the_system_is_drawn_as_its_environment_draws_it(
    finished: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with GPRMax.resume(finished, car(), writing=False) as run:
        (stage,) = staged(monkeypatch, run, "film.gif", look=Look(now=True))
        shown = Episode.of(run)
        assert shown.row.episode == 2  # the last
        assert stage.pictures is not None
        np.testing.assert_array_equal(stage.pictures(7), car().picture(shown.states[7], shown.actions[7]))
        np.testing.assert_array_equal(stage.pictures(STEPS), car().picture(shown.states[STEPS]))


def test_long_episodes_leave_steps_out_and_end_with_the_last(
    finished: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with GPRMax.resume(finished, car(), writing=False) as run:
        (stage,) = staged(monkeypatch, run, "film.gif", look=Look(now=True, pictures=10))
        assert stage.scene.steps == [0, 4, 8, 12, 16, 20, 24, 28, 30]


# --- anybody's environment


class Rendered(ShortLine):
    """It renders what it is in: a picture of one colour."""

    render_mode = "rgb_array"

    def render(self) -> Any:
        return np.full((30, 40, 3), int(100 + 50 * self.state[0]), dtype=np.uint8)


class Forgetful(Rendered):
    """It never begins twice in the same place."""

    def reset(self, **choices: Any) -> tuple[Any, Any]:
        return super().reset(seed=None)


def test_of_an_environment_nobody_can_draw_coordinates_are_shown(
    line: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with GPRMax.resume(line, Line(), writing=False) as run:
        env: Any = run.env
        (stage,) = staged(monkeypatch, run, "film.gif", look=Look(now=True))
        assert env.n_steps == 0  # it is not moved
        assert stage.pictures is None
        (first, second, cursor) = stage.drawn["system"].lines
        shown = Episode.of(run)
        for axis, drawn in ((0, first), (1, second)):
            heights = np.asarray(drawn.get_ydata(), dtype=float) - (1.0 - axis)
            scaled = (run.box.clip(shown.states)[:, axis] - run.box.low[axis]) / run.box.widths[axis]
            np.testing.assert_allclose(heights, 0.1 + 0.8 * scaled)
        before, after = stage.picture(2), stage.picture(5)
        assert np.asarray(cursor.get_xdata()).tolist() == [5, 5]
        assert not np.array_equal(before, after)


def test_on_request_it_does_the_same_again_and_shows_what_it_renders(
    line: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with GPRMax.resume(line, Rendered(), writing=False) as run:
        (stage,) = staged(monkeypatch, run, "film.gif", episode=1, look=Look(now=True, render=True))
        shown = Episode.of(run, 1)
        assert stage.pictures is not None
        seen = [int(stage.pictures(k)[0, 0, 0]) for k in range(len(shown.states))]
        assert seen == [int(100 + 50 * state[0]) for state in shown.states]


@pytest.mark.parametrize(
    ("env", "said"),
    [
        (Forgetful(), "must do the same again .* got another state at step 0 of episode 2"),
        (ShortLine(), 'must be made with render_mode="rgb_array" .* got None'),
    ],
)
def test_what_cannot_be_shown_is_refused(line: Path, env: gymnasium.Env[Any, Any], said: str) -> None:
    with GPRMax.resume(line, env, writing=False) as run, pytest.raises(ValueError, match=said):
        replay(run, "film.gif", look=Look(now=True, render=True))


# --- what is refused


def test_episodes_that_are_not_there_are_refused(finished: Path, tmp_path: Path) -> None:
    with GPRMax.resume(finished, car(), writing=False) as run:
        for number in (0, 3):
            with pytest.raises(ValueError, match=f"must be from 1 to 2; got {number}"):
                replay(run, tmp_path / "film.gif", episode=number)
    with pytest.raises(ValueError, match="`fps` must be above 0 and at most 1000; got 0"):
        Look(fps=0.0)
    with pytest.raises(ValueError, match="`pictures` must be at least 2; got 1"):
        Look(pictures=1)
    with pytest.raises(ValueError, match="must have recorded an episode that has ended; got none"):
        replay(GPRMax(car(), settings=SMALL), tmp_path / "film.gif")


def test_only_what_is_recorded_can_be_lived_again() -> None:
    with pytest.raises(ValueError, match="must have a recorded run"):
        next(GPRMax(car(), settings=SMALL).relive())

"""Pictures that environments draw of themselves: kept as they are, and nothing a run depends on."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from optimist import GPRMax
from optimist.runs.files import FRAME
from optimist.runs.frames import keep_frame, png, read_frame
from tests.runs.recording import Line, recorded

image = pytest.importorskip("PIL.Image")


class Drawn(Line):
    """Draws itself, or fails to."""

    render_mode = "rgb_array"

    def __init__(self, *, fails: bool = False) -> None:
        super().__init__()
        self.fails, self.count = fails, 0

    def render(self) -> Any:
        self.count += 1
        if self.fails:
            raise RuntimeError("no screen")
        return np.full((4, 6, 3), [250, 120, 0], dtype=np.uint8)


def test_a_picture_is_the_same_when_it_is_read_by_others() -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (7, 5, 3), dtype=np.uint8)
    np.testing.assert_array_equal(np.asarray(image.open(io.BytesIO(png(pixels)))), pixels)


@pytest.mark.parametrize(
    "pixels", [np.zeros((3, 3), np.uint8), np.zeros((3, 3, 3)), np.zeros((3, 3, 4), np.uint8)]
)
def test_what_is_no_picture_is_refused(pixels: Any) -> None:
    with pytest.raises(ValueError, match=r"must be \[height, width, 3\] of uint8"):
        png(pixels)


def test_a_run_keeps_the_last_picture_and_learns_the_same(tmp_path: Path) -> None:
    for name, env in {"drawn": Drawn(), "fails": Drawn(fails=True), "plain": Line()}.items():
        with GPRMax(env, run=tmp_path / name, seed=3) as learner:
            learner.learn(12)
    found = read_frame(tmp_path / "drawn")
    assert found is not None
    assert np.asarray(image.open(io.BytesIO(found))).tolist()[0][0] == [250, 120, 0]
    assert read_frame(tmp_path / "fails") is read_frame(tmp_path / "plain") is None
    assert recorded(tmp_path / "drawn") == recorded(tmp_path / "fails") == recorded(tmp_path / "plain")


def test_who_fails_to_draw_is_not_asked_again_and_who_is_not_recorded_never(tmp_path: Path) -> None:
    for run, count in ((tmp_path / "run", 1), (None, 0)):
        env = Drawn(fails=True)
        with GPRMax(env, run=run) as learner:
            learner.learn(6)
        assert env.count == count


def test_nothing_is_written_through_a_link(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("mine")
    (tmp_path / FRAME).symlink_to(victim)
    with pytest.raises(ValueError, match="a link"):
        keep_frame(tmp_path / FRAME, np.zeros((2, 2, 3), np.uint8))
    assert read_frame(tmp_path) is None
    assert victim.read_text() == "mine"

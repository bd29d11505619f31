"""In a notebook things show themselves: what they say is true, escaped, and needs nothing from elsewhere."""

from __future__ import annotations

import io
import re
from base64 import b64decode
from html.parser import HTMLParser
from pathlib import Path

import matplotlib.image
import numpy as np
import pytest

import optimist
from optimist import Discretisation, GPRMax, Task
from optimist.runs import RunStore
from optimist.shown import COLOURS, block, curve, heat, over_two_axes, png
from tests.runs.recording import LINE, SMALL, ShortLine


class Texts(HTMLParser):
    """The text of a page, and whether its tags are closed in the order in which they were opened."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.texts: list[str] = []
        self.open: list[str] = []
        self.feed(page)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag not in {"script", "link", "iframe"}
        for name, value in attrs:
            assert name != "src" or (value or "").startswith("data:")
            assert not name.startswith("on")
        if tag not in {"br", "img"}:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        pass

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def test_pixels_are_those_that_were_given() -> None:
    pixels = np.random.default_rng(0).integers(0, 256, size=(5, 7, 3), dtype=np.uint8)
    read = matplotlib.image.imread(io.BytesIO(png(pixels)), format="png")
    np.testing.assert_array_equal((read[..., :3] * 255).round().astype(np.uint8), pixels)


def test_a_map_is_dark_where_little_is_and_light_where_much_is() -> None:
    page = heat(np.array([[0.0, 0.5], [1.0, 7.0]]), "of <what>", 0.0, 1.0)
    content = re.search(r"base64,([^']+)'", page)
    assert content is not None
    read = matplotlib.image.imread(io.BytesIO(b64decode(content[1])), format="png")[..., :3] * 255
    np.testing.assert_allclose(read[0, 0], COLOURS[0])
    np.testing.assert_allclose(read[1], [COLOURS[-1]] * 2)
    np.testing.assert_allclose(read[0, 1], COLOURS[3:5].mean(axis=0), atol=0.6)
    assert "of &lt;what&gt;: from 0 (dark) to 1 (light)" in page
    assert heat(np.zeros((2, 2)), "nothing")  # no division by zero


def test_points_over_two_axes_begin_at_the_top_left() -> None:
    low, high = np.array([0.0, 10.0, -1.0]), np.array([1.0, 20.0, 1.0])
    points, shape = over_two_axes(low, high, np.array([9.0, 9.0, 0.25]), across=3, down=2)
    assert shape == (2, 3)
    expected = [[0, 20, 0.25], [0.5, 20, 0.25], [1, 20, 0.25], [0, 10, 0.25], [0.5, 10, 0.25], [1, 10, 0.25]]
    np.testing.assert_array_equal(points, expected)
    points, shape = over_two_axes(low[:1], high[:1], low[:1], across=4)
    assert shape == (1, 4)
    np.testing.assert_allclose(points[:, 0], np.array([0.0, 1 / 3, 2 / 3, 1.0]))


def test_a_curve_goes_up_where_values_do() -> None:
    page = curve([1.0, 3.0, 2.0], [None, 2.0, 2.5], "totals")
    dashed, line = re.findall(r"points='([^']+)'", page)
    heights = [float(point.split(",")[1]) for point in line.split()]
    assert heights[1] < heights[2] < heights[0]
    assert len(dashed.split()) == 2
    assert curve([1.0], [None], "totals") == ""


def test_what_comes_from_outside_is_escaped() -> None:
    page = block(
        "<b>", {"<script>": "</table><script>alert(1)</script>", "left out": None, "numbers": np.eye(2)}
    )
    assert Texts(page).texts == [
        "<b>",
        "<script>",
        "</table><script>alert(1)</script>",
        "numbers",
        "1, 0, 0, 1",
    ]


def test_a_task_shows_what_was_told() -> None:
    texts = Texts(LINE._repr_html_()).texts
    assert texts[0] == "Task of 2 coordinates and 2 actions"
    assert texts[texts.index("controls") + 1] == "-0.1; 0.1"
    assert texts[texts.index("discount") + 1] == "0.95"

    class Payment:
        def __call__(self, states: object, controls: object, next_states: object) -> object:
            return np.zeros(1)

    strange = Task(optimist.Box([0.0], [1.0]), np.array([1.0]), Payment(), 0.5, 0.0)  # type: ignore[arg-type]
    assert "Payment" in Texts(strange._repr_html_()).texts


def test_plans_show_their_values() -> None:
    made = optimist.plan(LINE, lambda states, controls: states, Discretisation(nodes=(5, 7)), depth=0)
    texts = Texts(made._repr_html_()).texts
    assert texts[texts.index("nodes") + 1] == "5 x 7"
    assert texts[texts.index("converged") + 1] == "yes"
    assert "nodes" in Texts(made.plan._repr_html_()).texts


@pytest.mark.parametrize("steps", [0, 3, 40])
def test_agents_and_runs_show_how_far_they_are(steps: int, tmp_path: Path) -> None:
    folder = tmp_path / "<i>run</i>"
    with GPRMax(ShortLine(), settings=SMALL, run=folder) as learner:
        if steps:
            learner.learn(steps)
        page = learner._repr_html_()
    texts = Texts(page).texts
    assert texts[0] == "GPRMax: gp-rmax-exp"
    assert texts[texts.index("transitions") + 1] == str(steps)
    assert texts[texts.index("recorded in") + 1] == str(folder)
    assert page.count("<img") == (2 if steps > 4 else 0)
    assert page.count("<svg") == (steps > 24)
    with RunStore.open(folder, writing=False) as store:
        recorded = Texts(store._repr_html_()).texts
    assert recorded[recorded.index("transitions") + 1] == str(steps)

"""The picture of a grid says where its nodes are, and where the states were."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.patches import StepPatch

from optimist.arrays import FloatArray
from optimist.box import Box
from optimist.grid import Grid
from optimist.views.axes_figure import draw_axes

BOX = Box([-np.pi, -2.0, 0.0], [np.pi, 6.0, 10.0], periodic=[True, False, False])
GRID = Grid(
    BOX,
    [np.array([-3.0, -1.0, 0.0, 0.1, 2.5]), np.linspace(-2.0, 6.0, 9), np.array([0.0, 0.5, 1.0, 10.0])],
)
NAMES = ("angle", "rate", "height")
NOTHING = np.empty((0, 3))


def drawn(grid: Grid, states: FloatArray, names: tuple[str, ...] = NAMES) -> Axes:
    panel: Axes = Figure().subplots()
    draw_axes(panel, grid, states, names, "the nodes")
    return panel


def strips(panel: Axes) -> list[FloatArray]:
    """The node lines of every axis, from the top: x, lower end, upper end.  [n_nodes, 3] each"""
    found = []
    for lines in panel.collections:
        assert isinstance(lines, LineCollection)
        ends = np.array(lines.get_segments())
        np.testing.assert_array_equal(ends[:, 0, 0], ends[:, 1, 0])  # upright
        found.append(np.column_stack([ends[:, 0, 0], ends[:, :, 1]]))
    return sorted(found, key=lambda strip: -strip[0, 1])


def visits(panel: Axes) -> list[tuple[FloatArray, FloatArray]]:
    """Heights above the strip's baseline, and edges, of every axis from the top."""
    found = []
    for patch in panel.patches:
        assert isinstance(patch, StepPatch)
        values, edges, baseline = patch.get_data()
        found.append((float(np.min(baseline)), np.asarray(values) - baseline, np.asarray(edges)))
    return [(heights, edges) for _, heights, edges in sorted(found, key=lambda one: -one[0])]


def legend(panel: Axes) -> list[str]:
    drawn_legend = panel.get_legend()
    assert drawn_legend is not None
    return [text.get_text() for text in drawn_legend.get_texts()]


def some(count: int = 200) -> FloatArray:
    return np.random.default_rng(0).uniform(BOX.low, BOX.high, (count, 3))


@pytest.mark.parametrize("states", [NOTHING, some()], ids=["no-states", "states"])
def test_every_axis_has_a_strip_with_a_line_at_every_node(states: FloatArray) -> None:
    found = strips(drawn(GRID, states))
    assert [len(strip) for strip in found] == list(GRID.shape) == [5, 9, 4]
    for axis, strip in enumerate(found):
        places = BOX.low[axis] + strip[:, 0] * BOX.widths[axis]
        np.testing.assert_allclose(places, GRID.axes[axis], atol=1e-12)


def test_strips_lie_one_below_the_other_beside_their_names() -> None:
    panel = drawn(GRID, some())
    said = [tick.get_text() for tick in panel.get_yticklabels()]
    labels = dict(zip(said, panel.get_yticks(), strict=True))
    assert list(labels) == list(NAMES)
    low, high = panel.get_ylim()
    for name, strip in zip(NAMES, strips(panel), strict=True):
        assert np.ptp(strip[:, 1]) == np.ptp(strip[:, 2]) == 0.0
        assert low < strip[0, 1] < strip[0, 2] < high
        assert strip[0, 1] < labels[name] < strip[0, 1] + 1.0
    lower = [strip[0, 1] for strip in strips(panel)]
    np.testing.assert_allclose(np.diff(lower), -1.0)
    assert not panel.get_xticks().size
    assert panel.get_title() == "the nodes"


def test_edges_of_the_box_are_told_at_both_ends() -> None:
    panel = drawn(GRID, NOTHING)
    said = {text.get_text(): text.xy[0] for text in panel.texts}  # type: ignore[attr-defined]
    assert said == {"-3.14": 0.0, "3.14": 1.0, "-2": 0.0, "6": 1.0, "0": 0.0, "10": 1.0}


# --- periodic axes -------------------------------------------------------------------------------------


@pytest.mark.parametrize("periodic", [False, True])
@pytest.mark.parametrize("count", [2, 8])
def test_the_seam_of_a_periodic_axis_is_one_node(periodic: bool, count: int) -> None:
    """Drawn where it is, and not at the other end again."""
    grid = Grid.uniform(Box([0.0], [360.0], [periodic]), [count])
    (strip,) = strips(drawn(grid, np.empty((0, 1)), ("angle",)))
    cells = count if periodic else count - 1
    np.testing.assert_allclose(strip[:, 0], np.arange(count) / cells)
    assert (strip[-1, 0] < 1.0) == periodic


def test_states_beyond_the_seam_are_counted_where_they_are_on_the_circle() -> None:
    states = some()
    around = states + np.array([4.0 * np.pi, 0.0, 0.0])
    for (heights, _), (same, _) in zip(visits(drawn(GRID, states)), visits(drawn(GRID, around)), strict=True):
        np.testing.assert_array_equal(heights > 0.0, same > 0.0)
        np.testing.assert_allclose(heights, same, atol=1e-9)


# --- where the states were -----------------------------------------------------------------------------


def test_without_states_only_the_nodes_are_drawn() -> None:
    panel = drawn(GRID, NOTHING)
    assert not panel.patches
    assert legend(panel) == ["nodes"]


def test_nodes_and_visits_are_in_the_legend_once() -> None:
    panel = drawn(GRID, some())
    assert len(panel.patches) == 3
    assert legend(panel) == ["nodes", "visits"]


def test_visits_are_high_where_the_states_were_and_stay_within_their_strip() -> None:
    often, once = [1.0, 5.0, 2.0], [-2.0, -1.0, 9.0]
    panel = drawn(GRID, np.array([often] * 4 + [once]))
    for axis, (heights, edges) in enumerate(visits(panel)):
        np.testing.assert_allclose(edges[[0, -1]], [0.0, 1.0])
        scaled = (np.array([often[axis], once[axis]]) - BOX.low[axis]) / BOX.widths[axis]
        bins = np.searchsorted(edges, scaled, side="right") - 1
        assert np.flatnonzero(heights > 1e-12).tolist() == sorted(bins)
        assert heights[bins[0]] == pytest.approx(2.0 * heights[bins[1]])  # roots: four times as often
    nodes = strips(panel)
    for axis, patch in enumerate(panel.patches):
        assert isinstance(patch, StepPatch)
        values, _, baseline = patch.get_data()
        assert np.min(baseline) > nodes[axis][0, 2]  # above the nodes
        assert np.max(values) < nodes[axis][0, 1] + 0.95  # below the next strip


def test_states_outside_the_planned_box_are_counted_at_its_edge() -> None:
    panel = drawn(GRID, np.array([[0.0, -50.0, 99.0]]))
    (_, _), (rates, _), (heights, _) = visits(panel)
    assert np.flatnonzero(rates > 1e-12).tolist() == [0]
    assert np.flatnonzero(heights > 1e-12).tolist() == [len(heights) - 1]


def test_a_single_axis_is_drawn_too() -> None:
    grid = Grid.uniform(Box([-1.0], [1.0]), [7])
    panel = drawn(grid, np.array([[0.3]]), ("place",))
    assert [len(strip) for strip in strips(panel)] == [7]
    assert [tick.get_text() for tick in panel.get_yticklabels()] == ["place"]
    assert len(panel.patches) == 1

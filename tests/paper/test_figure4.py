"""Figure 4 and its statistics, from numbers made by hand: they must say the same as the numbers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from optimist.arrays import FloatArray
from optimist.paper.figure4 import STYLES, draw_figure4, statistics_as_markdown
from optimist.paper.runs import Curve
from optimist.runs import EpisodeRow
from optimist.systems import PAPER
from optimist.views.plan_figure import save_figure

# Okabe & Ito, Color universal design (2008): told apart by colour-blind readers
SAFE = {"#000000", "#e69f00", "#56b4e9", "#009e73", "#f0e442", "#0072b2", "#d55e00", "#cc79a7"}
EXPLORERS = ("gp-rmax-exp", "gp-rmax-grid", "gp-rmax-noexp")
SARSAS = ("sarsa-fine", "sarsa-coarse")
BEST = {"mountain-car": -103.0, "bicycle": -2.35}
BEST_LABEL = "best possible (true model)"


def curve(agent: str, median: FloatArray, *, n_seeds: int = 3, width: float = 5.0) -> Curve:
    return Curve(agent, n_seeds, median, median - width, median + 0.5 * width)


def falling(n: int, first: float, last: float) -> FloatArray:
    return np.linspace(first, last, n)


CURVES = {
    "mountain-car": [
        *(curve(agent, falling(6, -200.0 - 20.0 * k, -105.0)) for k, agent in enumerate(EXPLORERS)),
        curve("sarsa-fine", falling(300, -500.0, -120.0), n_seeds=10),
        curve("sarsa-coarse", falling(100, -500.0, -150.0), n_seeds=10),
    ],
    "bicycle": [
        curve("gp-rmax-exp", falling(6, -10.0, -3.0), width=1.0),
        curve("sarsa-fine", falling(8, -12.0, -6.0), width=1.0),
    ],
}


@pytest.fixture(scope="module")
def figure4() -> Figure:
    return draw_figure4(CURVES, BEST, "what was done")


def panels(figure: Figure) -> list[list[Axes]]:
    axes = figure.axes
    return [axes[row : row + 2] for row in range(0, len(axes), 2)]


def labelled(axes: Axes, label: str) -> Line2D:
    (line,) = [line for line in axes.get_lines() if line.get_label() == label]
    return line


def names(axes: Axes) -> list[str]:
    return [str(line.get_label()) for line in axes.get_lines()]


def xy(line: Line2D) -> tuple[FloatArray, FloatArray]:
    return np.asarray(line.get_xdata(), dtype=np.float64), np.asarray(line.get_ydata(), dtype=np.float64)


def test_figure4_has_two_panels_for_every_problem(figure4: Figure) -> None:
    assert len(figure4.axes) == 4
    for (left, right), problem in zip(panels(figure4), CURVES, strict=True):
        assert problem in left.get_title()
        assert "GP-RMAX" in left.get_title()
        assert "Sarsa" in right.get_title()
        assert left.get_ylim() == right.get_ylim()
        assert left.get_ylabel() == "total reward"
        assert left.get_xlabel() == right.get_xlabel() == "episode"


def test_figure4_of_all_problems_has_eight_panels() -> None:
    one = [curve(agent, falling(3, -9.0, -8.0)) for agent in (*EXPLORERS, *SARSAS)]
    figure = draw_figure4(dict.fromkeys(PAPER, one), dict.fromkeys(PAPER, -7.0), "")
    assert len(figure.axes) == 8


def test_agents_are_on_their_sides(figure4: Figure) -> None:
    (left, right), (lower_left, lower_right) = panels(figure4)
    assert names(left) == [*EXPLORERS, BEST_LABEL]
    assert names(right) == [*SARSAS, BEST_LABEL]
    assert names(lower_left) == ["gp-rmax-exp", BEST_LABEL]
    assert names(lower_right) == ["sarsa-fine", BEST_LABEL]


def test_a_black_line_is_at_the_best_possible(figure4: Figure) -> None:
    for row, best in zip(panels(figure4), BEST.values(), strict=True):
        for axes in row:
            line = labelled(axes, BEST_LABEL)
            assert set(xy(line)[1].tolist()) == {best}
            assert to_hex(line.get_color()) == "#000000"
            assert axes.get_ylim()[0] < best < axes.get_ylim()[1]


def test_short_curves_are_drawn_episode_by_episode(figure4: Figure) -> None:
    (left, right), _ = panels(figure4)
    episodes, totals = xy(labelled(left, "gp-rmax-grid"))
    assert episodes.tolist() == [1, 2, 3, 4, 5, 6]
    assert np.array_equal(totals, CURVES["mountain-car"][1].median)
    episodes, totals = xy(labelled(right, "sarsa-coarse"))
    assert np.array_equal(episodes, np.arange(1.0, 101.0))
    assert np.array_equal(totals, CURVES["mountain-car"][4].median)


def test_long_curves_are_medians_of_blocks(figure4: Figure) -> None:
    (_, right), _ = panels(figure4)
    episodes, totals = xy(labelled(right, "sarsa-fine"))
    assert np.array_equal(episodes, np.arange(2.0, 300.0, 3.0))  # the middle of 1-3, 4-6, ...
    blocks = CURVES["mountain-car"][3].median.reshape(100, 3)
    np.testing.assert_allclose(totals, np.median(blocks, axis=1))


def test_bands_reach_from_the_lower_to_the_upper_end(figure4: Figure) -> None:
    (left, right), _ = panels(figure4)
    assert len(left.collections) == 3
    for band, found in zip(left.collections, CURVES["mountain-car"], strict=False):
        corners = np.asarray(band.get_paths()[0].vertices)
        for episode, low, high in zip(range(1, 7), found.low, found.high, strict=True):
            at = corners[corners[:, 0] == episode, 1]
            assert (at.min(), at.max()) == (low, high)
    long = np.asarray(right.collections[0].get_paths()[0].vertices)
    low = np.median(CURVES["mountain-car"][3].low.reshape(100, 3), axis=1)
    at = long[long[:, 0] == 2.0, 1]
    assert at.min() == pytest.approx(low[0])


def test_colours_are_safe_and_different_and_so_are_the_dashes(figure4: Figure) -> None:
    (left, right), _ = panels(figure4)
    lines = [labelled(left, name) for name in EXPLORERS] + [labelled(right, name) for name in SARSAS]
    colours = [to_hex(line.get_color()) for line in lines]
    assert len(set(colours)) == 5
    assert set(colours) <= SAFE - {"#000000"}
    for axes, count in ((left, 3), (right, 2)):  # told apart in print
        drawn = [line for line in axes.get_lines() if line.get_label() != BEST_LABEL]
        assert len({line.get_linestyle() for line in drawn}) == count


def test_of_curves_that_coincide_all_can_be_seen() -> None:
    """Where the three are one line, its pixels have the colours of all three; nothing of it is black."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    median = np.full(6, -103.0)
    same = [curve(agent, median, width=0.0) for agent in EXPLORERS]
    figure = draw_figure4({"mountain-car": same}, {"mountain-car": -103.0}, "")
    canvas = FigureCanvasAgg(figure)
    figure.axes[0].legend_ = None
    canvas.draw()  # type: ignore[no-untyped-call]
    pixels: FloatArray = np.asarray(canvas.buffer_rgba())[..., :3].astype(float)  # type: ignore[no-untyped-call]
    left, right = (figure.axes[0].transData.transform((x, -103.0)) for x in (2.1, 2.9))  # between markers
    row = pixels.shape[0] - round(left[1])
    strip = pixels[row - 4 : row + 5, round(left[0]) : round(right[0])].reshape(-1, 3)
    for name in EXPLORERS:
        colour = np.array([int(to_hex(STYLES[name][0])[k : k + 2], 16) for k in (1, 3, 5)])
        near = (np.abs(strip - colour).max(axis=1) < 20).sum()
        assert near > 0.03 * len(strip), name
    assert not (strip.max(axis=1) < 40).any()


def test_an_agent_has_one_colour_in_all_panels(figure4: Figure) -> None:
    (left, _), (lower_left, _) = panels(figure4)
    assert labelled(left, "gp-rmax-exp").get_color() == labelled(lower_left, "gp-rmax-exp").get_color()


def test_legends_name_agents_and_best(figure4: Figure) -> None:
    (left, right), _ = panels(figure4)
    for axes, agents in ((left, EXPLORERS), (right, SARSAS)):
        legend = axes.get_legend()
        assert legend is not None
        assert [text.get_text() for text in legend.get_texts()] == [*agents, BEST_LABEL]


def test_titles_and_the_note_say_seeds_and_settings(figure4: Figure) -> None:
    (left, right), _ = panels(figure4)
    assert "3 seeds" in left.get_title()
    assert "10 seeds" in right.get_title()
    assert figure4.get_supxlabel() == "what was done"


def test_nothing_is_cut_off_below(figure4: Figure) -> None:
    for row, found in zip(panels(figure4), CURVES.values(), strict=True):
        assert row[0].get_ylim()[0] < min(float(one.low.min()) for one in found)


@pytest.mark.parametrize("median", [-90.0, -102.0], ids=["above the line", "a wide band"])
def test_what_is_better_than_the_best_from_the_papers_starts_is_not_cut_off(median: float) -> None:
    """The line is the worst of the paper's starts; a run may begin elsewhere, and a band reach above."""
    better = curve("gp-rmax-exp", np.full(4, median), width=30.0)
    figure = draw_figure4({"mountain-car": [better]}, {"mountain-car": -103.0}, "")
    low, high = figure.axes[0].get_ylim()
    assert low < -103.0 < high
    assert low < better.low.min()
    assert better.high.max() < high


def test_a_problem_without_runs_of_sarsa_can_be_drawn() -> None:
    one = [curve("gp-rmax-exp", falling(3, -9.0, -8.0))]
    figure = draw_figure4({"acrobot": one}, {"acrobot": -7.0}, "")
    assert names(figure.axes[1]) == [BEST_LABEL]
    assert ",  seeds" not in figure.axes[1].get_title()


@pytest.mark.parametrize("suffix", ["pdf", "svg", "png"])
def test_figure4_can_be_saved(suffix: str, figure4: Figure, tmp_path: Path) -> None:
    save_figure(figure4, tmp_path / f"figure.{suffix}")
    assert [path.name for path in tmp_path.iterdir()] == [f"figure.{suffix}"]
    assert (tmp_path / f"figure.{suffix}").stat().st_size > 5_000


# --- the statistics beside it ---


def episodes(totals: Sequence[float]) -> list[EpisodeRow]:
    """Ten transitions each."""
    return [EpisodeRow(k + 1, 10, total, 10 * (k + 1), "truncated") for k, total in enumerate(totals)]


def cells(table: str) -> list[list[str]]:
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()]


def test_the_statistics_say_first_and_last_episode_and_how_probably_ours_is_better() -> None:
    runs = {
        ("pendulum", "gp-rmax-exp"): [episodes([-9.0, -2.0]), episodes([-7.0, -2.0])],
        ("pendulum", "sarsa-fine"): [episodes([-9.0, -8.0, -3.0]), episodes([-9.0, -8.0, -1.0])],
    }
    head, rule, ours, theirs = cells(statistics_as_markdown(runs, {"pendulum": -1.5}))
    assert len(head) == len(rule) == len(ours) == len(theirs)
    assert ours[:6] == ["pendulum", "gp-rmax-exp", "2", "-8", "2", "-2 [-2, -2]"]
    assert ours[7:] == ["", "-1.5"]
    assert theirs[:5] == ["pendulum", "sarsa-fine", "2", "-9", "3"]
    assert theirs[5] == "-2 [-3, -1]"  # two seeds: the interval is the range
    assert theirs[7].startswith("0.50 [")


def test_a_sure_improvement_is_said_to_be_sure() -> None:
    runs = {
        ("pendulum", "gp-rmax-exp"): [episodes([-1.0]), episodes([-2.0])],
        ("pendulum", "sarsa-fine"): [episodes([-3.0]), episodes([-4.0])],
    }
    assert cells(statistics_as_markdown(runs, {"pendulum": 0.0}))[3][7] == "1.00 [1, 1]"

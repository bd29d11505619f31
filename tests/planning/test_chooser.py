"""Which layouts are tried, and that the best of them is kept."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import optimist
from optimist.arrays import BoolArray, FloatArray
from optimist.box import Box
from optimist.discretisation import ONE_STEP, Discretisation, Holding, Layout
from optimist.grid import Grid
from optimist.planning import Chooser, Planned, Planner, plan
from optimist.planning.rehearsal import from_around
from optimist.steps import known
from optimist.task import Task

BOX = Box([-np.pi, -3.0], [np.pi, 3.0], periodic=[True, False])


def swing(states: FloatArray, controls: FloatArray) -> FloatArray:
    rates = 0.97 * states[:, 1] + 0.1 * np.sin(states[:, 0]) + 0.06 * controls[:, 0]
    return BOX.wrap(np.column_stack([states[:, 0] + 0.1 * rates, rates]))


def effort(states: FloatArray, controls: FloatArray, next_states: FloatArray) -> FloatArray:
    return -1.0 - 0.1 * next_states[:, 1] ** 2


def upright(states: FloatArray) -> BoolArray:
    done: BoolArray = np.cos(states[:, 0]) < -0.95
    return done


TASK = Task(BOX, np.array([-1.0, 1.0]), effort, 0.97, 0.0, upright, max_steps=60)
STEP = known(swing, TASK.controls)
STARTS = np.array([[0.1, 0.0], [1.0, -0.5]])
VISITED = np.random.default_rng(0).normal([0.5, -0.5], [0.4, 0.3], size=(300, 2))


CROSSING = Holding(16, until_crossed=True)


def kept_by(chooser: Chooser, **changes: Any) -> Planned:
    """A plan on the first layout, or on one that was changed since."""
    return Planner(chooser.task).plan(STEP, replace(chooser.first(), **changes))


def challenger(chooser: Chooser, kind: str, kept: Planned) -> Layout:
    """One that there is."""
    layout = chooser.challenger(kind, kept, VISITED)
    assert layout is not None
    return layout


# --- what is tried -------------------------------------------------------------------------------------


def test_first_comes_the_uniform_layout_that_is_told_or_follows_from_the_budget() -> None:
    layout = Chooser(TASK, Discretisation(budget=500), depth=2).first()
    assert layout.grid.shape == (21, 21)
    assert layout.holding == Holding(16, until_crossed=True)
    assert (layout.depth, layout.placement, layout.polished) == (2, "uniform", False)
    assert layout.name == "uniform, looking 2 ahead"
    told = Chooser(TASK, Discretisation(nodes=(8, 9), spacing=(1.0, 1.5), limits=(9.0, 2.0), hold=3)).first()
    expected = Grid.spaced(Box([-np.pi, -2.0], [np.pi, 2.0], BOX.periodic), (8, 9), (1.0, 1.5))
    assert told.grid.box == expected.box
    for axis, same in zip(told.grid.axes, expected.axes, strict=True):
        np.testing.assert_array_equal(axis, same)
    assert told.holding == Holding(3)
    assert (told.depth, told.name) == (None, "spaced, 3 steps held")


@pytest.mark.parametrize(
    ("spacing", "placement"),
    [
        (None, "uniform"),
        ((1.0, 1.0), "uniform"),
        ((1.0, 1.5), "spaced"),
        ((0.5, 1.0), "spaced"),
        ((2.0, 2.0), "spaced"),
    ],
)
def test_a_layout_whose_nodes_are_spaced_says_so(spacing: tuple[float, float] | None, placement: str) -> None:
    layout = Chooser(TASK, Discretisation(nodes=(8, 9), spacing=spacing)).first()
    assert (layout.placement, layout.name) == (placement, placement)
    assert (np.ptp(np.diff(layout.grid.axes[1])) < 1e-12) == (spacing is None or spacing[1] == 1.0)


@pytest.mark.parametrize("depth", [None, 0, 2])
@pytest.mark.parametrize(
    "fixed",
    [
        {},
        {"nodes": (7, 7)},
        {"spacing": (1.0, 1.0)},
        {"hold": 1},
        {"nodes": (7, 7), "spacing": (1.0, 1.0)},
        {"nodes": (7, 7), "hold": 2},
        {"spacing": (1.0, 1.0), "hold": 2},
        {"nodes": (7, 7), "spacing": (1.0, 1.0), "hold": 2},
    ],
)
def test_what_is_fixed_is_not_tried(fixed: dict[str, Any], depth: int | None) -> None:
    chooser = Chooser(TASK, Discretisation(budget=200, **fixed), depth)
    kinds = chooser.kinds
    kept, first = kept_by(chooser), chooser.first()
    assert len(set(kinds)) == len(kinds)
    layouts = {kind: challenger(chooser, kind, kept) for kind in kinds if kind != "uniform"}
    for layout in layouts.values():
        if "nodes" in fixed:
            assert layout.grid.shape == (7, 7)
        if "spacing" in fixed:
            for axis, same in zip(layout.grid.axes, first.grid.axes, strict=True):
                np.testing.assert_array_equal(axis, same)
        if "hold" in fixed:
            assert layout.holding == Holding(fixed["hold"])
        if depth is not None:
            assert layout.depth == depth
    assert chooser.placed == tuple(kind for kind in kinds if "placed" in kind)
    assert any("placed" in kind for kind in kinds) == ("spacing" not in fixed)
    assert ("placed by need" in kinds) == (not {"spacing", "nodes"} & set(fixed))
    assert ("single steps" in kinds) == ("hold" not in fixed)
    assert chooser.last == () or chooser.last[-1] == "polished"
    assert not set(chooser.placed) & set(chooser.last)  # those are tried before, in rounds
    assert set(kinds) <= {*chooser.placed, *chooser.last}
    assert ("uniform" in kinds) == ("spacing" not in fixed)  # to come back to
    if set(fixed) >= {"spacing", "hold"}:
        assert kinds == ()  # nothing is left to take turns
        assert depth is None or chooser.last == ()


@pytest.mark.parametrize("budget", [200, 1000, 3000])
@pytest.mark.parametrize("limits", [None, (9.0, 2.0)])
def test_challengers_keep_to_the_budget_and_to_the_box(
    budget: int, limits: tuple[float, float] | None
) -> None:
    chooser = Chooser(TASK, Discretisation(budget=budget, limits=limits))
    planner, first = Planner(TASK), kept_by(chooser)
    placed = planner.plan(STEP, challenger(chooser, "closely placed", first))
    for kept in (first, placed):
        for kind in chooser.kinds:
            if kept is first and kind == "uniform":
                continue  # as it is
            layout = challenger(chooser, kind, kept)
            assert layout.grid.n_nodes <= budget
            assert layout.grid.box == chooser.first().grid.box
            assert not layout.polished
            planner.require_fits(layout)


def test_challengers_are_named_after_what_is_different() -> None:
    chooser = Chooser(TASK, Discretisation(budget=200))
    first = kept_by(chooser)
    assert first.layout.name == "uniform"
    kinds = [kind for kind in (*chooser.placed, *chooser.last) if kind != "uniform"]
    names = {kind: challenger(chooser, kind, first).name for kind in kinds}
    assert names == {
        "closely placed": "closely placed",
        "loosely placed": "loosely placed",
        "placed by need": "placed by need",
        "single steps": "uniform, single steps",
        "polished": "uniform, polished",
    }
    other = kept_by(chooser, holding=ONE_STEP, depth=5, placement="closely placed")
    assert challenger(chooser, "polished", other).name == f"{other.layout.name}, polished"
    assert other.layout.name == "closely placed, single steps, looking 5 ahead"


def test_placed_nodes_are_where_the_states_are() -> None:
    chooser = Chooser(TASK, Discretisation(budget=1000))
    first = kept_by(chooser)
    placed = Planner(TASK).plan(STEP, challenger(chooser, "loosely placed", first))
    assert chooser.placed == chooser.kinds[:3] == ("closely placed", "loosely placed", "placed by need")
    layouts = [challenger(chooser, kind, kept) for kept in (first, placed) for kind in chooser.placed]
    for layout in [*layouts, challenger(chooser, "uniform", placed), first.layout]:
        near = [
            (np.abs(axis - centre) < 0.15 * width).mean()
            for axis, centre, width in zip(layout.grid.axes, (0.5, -0.5), BOX.widths, strict=True)
        ]
        if "placed" in layout.placement:
            assert min(near) > 0.5
        else:
            assert max(near) < 0.35


@pytest.mark.parametrize("depth", [None, 3])
@pytest.mark.parametrize("holding", [ONE_STEP, CROSSING], ids=["single", "held"])
def test_nodes_are_moved_and_the_rest_of_the_layout_in_use_stays(holding: Holding, depth: int | None) -> None:
    chooser = Chooser(TASK, Discretisation(budget=200))
    kept = kept_by(chooser, holding=holding, depth=depth, placement="something else")
    for kind in ("closely placed", "loosely placed", "placed by need", "uniform"):
        layout = challenger(chooser, kind, kept)
        assert layout.grid is not kept.grid
        assert (layout.holding, layout.depth) == (holding, depth)
        assert (layout.placement, layout.polished) == (kind, False)
        again = challenger(chooser, kind, kept)
        for axis, same in zip(layout.grid.axes, again.grid.axes, strict=True):
            np.testing.assert_array_equal(axis, same)
    back = challenger(chooser, "uniform", kept)
    for axis, same in zip(back.grid.axes, chooser.first().grid.axes, strict=True):
        np.testing.assert_array_equal(axis, same)


@pytest.mark.parametrize("changes", [{}, {"holding": ONE_STEP}, {"depth": 3}])
def test_what_is_uniform_is_not_challenged_by_the_uniform_layout(changes: dict[str, Any]) -> None:
    chooser = Chooser(TASK, Discretisation(budget=200))
    assert chooser.challenger("uniform", kept_by(chooser, **changes), VISITED) is None


def test_single_steps_are_the_layout_in_use_but_for_that() -> None:
    chooser = Chooser(TASK, Discretisation(budget=200))
    kept = kept_by(chooser, placement="closely placed")
    single = challenger(chooser, "single steps", kept)
    assert single.grid is kept.grid
    assert (single.holding, single.depth, single.placement) == (ONE_STEP, None, "closely placed")


@pytest.mark.parametrize("depth", [None, 5])
def test_from_single_steps_the_challenger_goes_back_to_holding_until_crossed(depth: int | None) -> None:
    chooser = Chooser(TASK, Discretisation(budget=200))
    kept = kept_by(chooser, holding=ONE_STEP, depth=depth, placement="loosely placed")
    back = challenger(chooser, "single steps", kept)
    assert back.grid is kept.grid
    assert back.holding == CROSSING == chooser.first().holding
    assert (back.depth, back.placement) == (depth, "loosely placed")
    assert "single steps" in kept.layout.name
    assert "single steps" not in back.name
    there = challenger(chooser, "single steps", Planner(TASK).plan(STEP, back))
    assert (there.holding, there.name) == (ONE_STEP, kept.layout.name)


def test_nodes_go_to_the_axis_that_needs_them() -> None:
    """Values that bend along the rate only."""
    chooser = Chooser(TASK, Discretisation(budget=1000))
    kept = kept_by(chooser)
    bent = np.repeat(kept.grid.nodes[:, 1:] ** 4, 2, axis=1)
    kept = replace(kept, plan=replace(kept.plan, q_values=bent))
    counts = challenger(chooser, "placed by need", kept).grid.shape
    assert counts[1] > 3 * counts[0]
    assert counts[0] >= 5


@pytest.mark.parametrize("n_dims", [1, 2, 3])
def test_a_layout_is_polished_once_and_goes_back_to_its_size(n_dims: int) -> None:
    box = Box([-1.0] * n_dims, [1.0] * n_dims, [False, True, False][:n_dims])
    task = Task(box, np.array([0.0]), lambda s, u, n: -np.ones(len(s)), 0.9, 0.0)
    chooser, step = Chooser(task, Discretisation(budget=600)), known(lambda s, u: s, task.controls)
    layout = replace(chooser.first(), holding=Holding(2), depth=1, placement="by hand")
    kept = Planner(task).plan(step, layout)
    polished = challenger(chooser, "polished", kept)
    assert "polished" not in chooser.kinds  # never in turn
    assert polished.grid.n_nodes == pytest.approx(3.0 * layout.grid.n_nodes, rel=0.35)
    assert polished.grid.box == box
    assert (polished.holding, polished.depth, polished.placement) == (Holding(2), 1, "by hand")
    assert polished.polished
    assert polished.name == f"{layout.name}, polished"
    assert chooser.challenger("polished", Planner(task).plan(step, polished), np.zeros((1, n_dims))) is None
    back = chooser.unpolished(polished)
    assert back.grid.shape == layout.grid.shape
    assert back.name == layout.name == "by hand, 2 steps held, looking 1 ahead"
    assert not back.polished
    for axis, same in zip(back.grid.axes, layout.grid.axes, strict=True):
        np.testing.assert_allclose(axis, same, atol=1e-12)
    assert chooser.unpolished(layout) is layout
    told = Chooser(task, Discretisation(nodes=(5,) * n_dims))
    assert told.challenger("polished", kept, np.zeros((1, n_dims))) is None


# --- what is kept --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def chosen() -> optimist.planning.KnownPlan:
    return optimist.plan(TASK, swing, Discretisation(budget=150), starts=STARTS)


def test_a_chosen_plan_expects_the_most_of_all_that_was_tried(
    chosen: optimist.planning.KnownPlan,
) -> None:
    names = [name for name, _ in chosen.tried]
    totals = [total for _, total in chosen.tried]
    assert names[0] == "uniform"
    assert len(set(names)) > 3
    assert names[-1].endswith(", polished")  # once, of the best
    assert [name for name in names if "polished" in name] == names[-1:]
    assert chosen.layout.name in names
    won = max(total for name, total in chosen.tried if name == chosen.layout.name)
    assert won == max(totals)
    assert chosen.expected is not None
    assert won <= chosen.expected + 1e-9  # with the second, where that is better


def test_what_is_expected_is_what_happens(chosen: optimist.planning.KnownPlan) -> None:
    """With known dynamics imagination is no other than the truth."""
    starts, weights, _ = from_around(TASK, STARTS)
    earned = chosen.roll_out(starts).total_rewards
    assert chosen.expected == pytest.approx(float(weights @ earned), rel=1e-12)


def test_choosing_again_chooses_the_same(chosen: optimist.planning.KnownPlan) -> None:
    again = plan(TASK, swing, Discretisation(budget=150), starts=STARTS)
    assert again.tried == chosen.tried
    assert again.expected == chosen.expected
    assert again.layout.name == chosen.layout.name
    np.testing.assert_array_equal(again.plan.q_values, chosen.plan.q_values)


def test_where_nothing_is_left_open_nothing_is_tried() -> None:
    fixed = Discretisation(nodes=(9, 9), spacing=(1.0, 1.2), hold=1)
    made = plan(TASK, swing, fixed, starts=STARTS, depth=1)
    plain = plan(TASK, swing, fixed, depth=1)
    assert [name for name, _ in made.tried] == ["spaced, single steps, looking 1 ahead"]
    assert made.expected == made.tried[0][1]
    np.testing.assert_array_equal(made.plan.q_values, plain.plan.q_values)
    assert (plain.expected, plain.tried) == (None, ())


def test_one_start_need_not_be_a_list_of_one() -> None:
    flat, listed = (
        plan(TASK, swing, Discretisation(nodes=(7, 7), hold=1), starts=starts, depth=1)
        for starts in ([0.1, 0.0], [[0.1, 0.0]])
    )
    assert flat.tried == listed.tried


@pytest.mark.parametrize("budget", [9, 20])
def test_the_smallest_budgets_are_chosen_from_too(budget: int) -> None:
    made = plan(TASK, swing, Discretisation(budget=budget), starts=STARTS)
    assert made.expected is not None
    assert made.expected >= made.tried[0][1]


# --- starts that nobody meant --------------------------------------------------------------------------

FEW = Discretisation(nodes=(7, 7), hold=1)


@pytest.mark.parametrize("rate", [3.0 + 1e-9, -4.0, 30.0, 3e3])
def test_a_start_beyond_the_edge_is_planned_for_from_where_it_is(rate: float) -> None:
    """The others around it are moved to the edge. An episode begins outside, as it would."""
    made = plan(TASK, swing, FEW, starts=[0.1, rate], depth=1)
    starts, weights, _ = from_around(TASK, np.array([[0.1, rate]]))
    assert starts[0].tolist() == [0.1, rate]
    assert BOX.contains(starts[1:]).all()
    assert made.expected is not None
    assert made.expected >= max(total for _, total in made.tried) - 1e-9
    assert made.expected == pytest.approx(float(weights @ made.roll_out(starts).total_rewards), rel=1e-12)
    assert np.isfinite(made.expected)


@pytest.mark.parametrize("starts", [[[np.nan, 0.0]], [[0.0, 0.0, 0.0]], np.empty((0, 2))])
def test_episodes_begin_in_states(starts: Any) -> None:
    made = plan(TASK, swing, FEW, depth=1)
    with pytest.raises(ValueError, match="`starts` must"):
        made.roll_out(starts)
    one, many = made.roll_out([0.1, 0.0]), made.roll_out(np.array([[0.1, 0.0]]))
    np.testing.assert_array_equal(one.total_rewards, many.total_rewards)


@pytest.mark.parametrize("turns", [-2, 3])
def test_a_start_some_turns_away_is_where_it_would_be_without_them(turns: int) -> None:
    near, far = (plan(TASK, swing, FEW, starts=[0.1 + 2.0 * np.pi * n, 0.0], depth=1) for n in (0, turns))
    assert near.expected is not None
    assert [name for name, _ in near.tried] == [name for name, _ in far.tried]
    assert far.expected == pytest.approx(near.expected, rel=1e-6)


@pytest.mark.parametrize("rate", [1e5, -1e12, 1e100])
def test_of_a_start_beyond_all_bounds_nothing_is_expected(rate: float) -> None:
    """There is a plan all the same, the first: no layout does better."""
    made = plan(TASK, swing, FEW, starts=[[0.1, 0.0], [0.1, rate]], depth=1)
    assert made.expected == -np.inf
    assert made.layout.name == made.tried[0][0] == "uniform, single steps, looking 1 ahead"
    assert {total for _, total in made.tried} == {-np.inf}
    assert np.isfinite(made.plan.q_values).all()


def test_a_start_that_has_ended_earns_nothing_whatever_is_planned() -> None:
    made = plan(TASK, swing, FEW, starts=[np.pi, 0.0], depth=1)
    assert made.expected == 0.0
    assert made.layout.name == made.tried[0][0]

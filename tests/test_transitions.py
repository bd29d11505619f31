"""Rows in, columns out, and nothing that is not a transition."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from optimist.transitions import Transition, Transitions

NUMBER = st.floats(allow_nan=False, allow_infinity=False)


def columns(count: int = 5, n_dims: int = 2) -> dict[str, Any]:
    return {
        "states": np.arange(count * n_dims, dtype=np.float64).reshape(count, n_dims),
        "actions": np.zeros(count, dtype=np.int64),
        "rewards": np.zeros(count),
        "next_states": np.ones((count, n_dims)),
        "terminated": np.zeros(count, dtype=np.bool_),
        "truncated": np.zeros(count, dtype=np.bool_),
    }


@st.composite
def rows(draw: st.DrawFn) -> list[Transition]:
    n_dims = draw(st.integers(1, 4))
    state = st.lists(NUMBER, min_size=n_dims, max_size=n_dims).map(np.array)
    one = st.builds(
        Transition,
        state=state,
        action=st.integers(0, 9),
        reward=NUMBER,
        next_state=state,
        terminated=st.booleans(),
        truncated=st.booleans(),
    )
    return draw(st.lists(one, min_size=1, max_size=6))


@given(rows())
def test_columns_hold_what_the_rows_held_in_their_order(given_rows: list[Transition]) -> None:
    made = Transitions.of(iter(given_rows))
    assert len(made) == len(given_rows)
    for number, row in enumerate(given_rows):
        assert made.states[number].tolist() == row.state.tolist()
        assert made.next_states[number].tolist() == row.next_state.tolist()
        assert made.actions[number] == row.action
        assert made.rewards[number] == row.reward
        assert made.terminated[number] == row.terminated
        assert made.truncated[number] == row.truncated


def test_columns_of_rows_have_the_types_they_are_said_to_have() -> None:
    row = Transition(np.array([1, 2]), 1, -1, np.array([3, 4]), terminated=False, truncated=True)
    made = Transitions.of([row])
    assert [made.states.dtype, made.next_states.dtype, made.rewards.dtype] == [np.float64] * 3
    assert made.actions.dtype == np.int64
    assert [made.terminated.dtype, made.truncated.dtype] == [np.bool_] * 2


def test_columns_do_not_change_when_the_rows_do() -> None:
    state = np.array([1.0, 2.0])
    made = Transitions.of([Transition(state, 0, 0.0, state, terminated=False, truncated=False)])
    state[0] = 9.0
    assert made.states.tolist() == [[1.0, 2.0]]
    assert made.next_states.tolist() == [[1.0, 2.0]]


def test_no_rows_are_refused() -> None:
    with pytest.raises(ValueError, match="columns of transitions must be"):
        Transitions.of([])


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("row", [0, 3, 4])
@pytest.mark.parametrize("name", ["states", "next_states", "rewards"])
def test_numbers_that_are_not_finite_are_refused_with_column_and_row(name: str, row: int, bad: float) -> None:
    given_columns = columns()
    given_columns[name][row:] = bad
    with pytest.raises(ValueError, match=rf"`{name}` must be finite; got \[.*{bad}.*\] in row {row}\."):
        Transitions(**given_columns)


@pytest.mark.parametrize("axis", [0, 1])
def test_one_bad_coordinate_is_enough(axis: int) -> None:
    given_columns = columns()
    given_columns["next_states"][2, axis] = np.nan
    with pytest.raises(ValueError, match=r"in row 2\."):
        Transitions(**given_columns)


@pytest.mark.parametrize("row", [0, 2, 4])
def test_negative_actions_are_refused_with_the_row(row: int) -> None:
    given_columns = columns()
    given_columns["actions"][row] = -1
    with pytest.raises(ValueError, match=rf"`actions` must not be negative; got -1 in row {row}\."):
        Transitions(**given_columns)


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("states", (5,)),
        ("states", (4, 2)),
        ("states", (5, 3)),
        ("next_states", (5, 1)),
        ("next_states", (6, 2)),
        ("actions", (4,)),
        ("actions", (5, 1)),
        ("rewards", (5, 1)),
        ("rewards", ()),
        ("terminated", (6,)),
        ("truncated", (1,)),
    ],
)
def test_columns_of_unequal_shape_are_refused(name: str, shape: tuple[int, ...]) -> None:
    given_columns = columns()
    given_columns[name] = np.zeros(shape, dtype=given_columns[name].dtype)
    with pytest.raises(ValueError, match=r"must be states and next states \[n, d\] and others \[n\]; got"):
        Transitions(**given_columns)


def test_stepped_transitions_earn_nothing_and_end_nothing() -> None:
    states, actions, next_states = np.eye(3), np.array([2, 0, 1]), np.ones((3, 3))
    made = Transitions.stepped(states, actions, next_states)
    assert len(made) == 3
    np.testing.assert_array_equal(made.states, states)
    np.testing.assert_array_equal(made.actions, actions)
    np.testing.assert_array_equal(made.next_states, next_states)
    assert not made.rewards.any()
    assert not made.terminated.any()
    assert not made.truncated.any()


def test_stepped_transitions_are_checked_too() -> None:
    with pytest.raises(ValueError, match=r"`states` must be finite; got \[nan\] in row 1\."):
        Transitions.stepped(np.array([[0.0], [np.nan]]), np.zeros(2, dtype=np.int64), np.zeros((2, 1)))
    with pytest.raises(ValueError, match="must be states and next states"):
        Transitions.stepped(np.zeros((2, 1)), np.zeros(3, dtype=np.int64), np.zeros((2, 1)))


def chain_of(*ends: bool) -> Transitions:
    """Transitions along a line, some of which end an episode; the next begins elsewhere."""
    n = len(ends)
    states = np.arange(n, dtype=np.float64)[:, np.newaxis]
    return Transitions(
        states, np.zeros(n, dtype=np.int64), np.ones(n), states + 1.0, np.array(ends), np.zeros(n, bool)
    )


def test_without_leaves_out_what_is_named_and_begins_no_episode_by_that() -> None:
    whole = chain_of(False, False, False, True, False, False)
    assert whole.begins.tolist() == [True, False, False, False, True, False]
    left = whole.without({2, 6})
    assert left.states[:, 0].tolist() == [0.0, 2.0, 3.0, 4.0]
    assert left.begins.tolist() == [True, False, False, True]
    assert left.without({1}).begins.tolist() == [False, False, True]
    assert whole.without(set()) is whole


def test_without_all_beginnings_the_first_begins() -> None:
    left = chain_of(False, False, False).without({1})
    assert left.begins.tolist() == [True, False]
    assert len(chain_of(False, False).without({1, 2})) == 0

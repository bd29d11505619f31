"""Where episodes are believed to end: compiled loops against one state and one place at a time."""

from __future__ import annotations

import numpy as np
import pytest

from optimist.box import Box
from optimist.models.curves import Curve, polynomial
from optimist.models.ends import REACH, Ends, Near
from tests.naive import ends as naive

DIMS = range(1, 7)


def some_box(dims: int) -> Box:
    """Axes of different size, some of them angles."""
    stream = np.random.default_rng(dims)
    low = stream.uniform(-5.0, 1.0, dims)
    return Box(low, low + 10.0 ** stream.uniform(-1.0, 1.5, dims), stream.random(dims) < 0.5)


@pytest.mark.parametrize("dims", DIMS)
@pytest.mark.parametrize("n_lived", [0, 1, 40])
def test_near_ends_and_nearer_to_them_than_to_any_who_lived(dims: int, n_lived: int) -> None:
    box, stream = some_box(dims), np.random.default_rng([dims, n_lived])
    ended = stream.uniform(box.low, box.high, size=(3, dims))
    around = np.where(stream.random((n_lived, 1)) < 0.7, 0.15, 1.0) * box.widths
    lived = ended[stream.integers(3, size=n_lived)] + stream.uniform(-1.0, 1.0, (n_lived, dims)) * around
    offsets = stream.uniform(-0.12, 0.12, (300, dims)) * box.widths
    asked = np.vstack([ended[stream.integers(3, size=300)] + offsets, box.low, box.high, ended])
    near = Near.of(box, np.arange(dims), ended, lived)
    said = [naive.near_an_end(box, state, ended, lived, REACH) for state in asked]
    assert near(asked).tolist() == said
    assert any(said)
    assert not all(said)
    assert near.n_ends == 3


def test_near_in_some_coordinates_whatever_the_others_are() -> None:
    box, stream, axes = some_box(4), np.random.default_rng(1), np.array([1, 3])
    ended, lived = (stream.uniform(box.low, box.high, size=(count, 4)) for count in (3, 40))
    asked = stream.uniform(box.low, box.high, size=(400, 4))
    part = Box(box.low[axes], box.high[axes], box.periodic[axes])
    seen = ended[:, axes], lived[:, axes], REACH
    said = [naive.near_an_end(part, state, *seen) for state in asked[:, axes]]
    assert Near.of(box, axes, ended, lived)(asked).tolist() == said
    assert 0 < sum(said) < len(said)


@pytest.mark.parametrize("axes", [(0,), (1,), (0, 1), (1, 3), (2, 4)])
def test_beyond_a_curve(axes: tuple[int, ...]) -> None:
    box = Box([-1.0, 0.0, 5.0, -np.pi, 0.0], [1.0, 4.0, 6.0, np.pi, 1.0], [False, True, False, True, False])
    stream = np.random.default_rng(sum(axes))
    n_columns = polynomial(box, axes, box.low[np.newaxis]).shape[1]
    weights = stream.standard_normal((n_columns,))
    asked = stream.uniform(box.low - box.widths, box.high + box.widths, size=(200, 5))
    heights = np.array([naive.height(box, state, axes, weights) for state in asked])
    np.testing.assert_allclose(polynomial(box, axes, asked) @ weights, heights, atol=1e-12)
    bound = float(np.median(heights))
    curve = Curve(box, axes, weights, bound + 1e-9, 3)
    assert curve(asked).tolist() == (heights >= bound + 1e-9).tolist()


def test_what_was_asked_last_is_answered_again_and_nothing_else() -> None:
    box = some_box(2)
    ended = box.low[np.newaxis] + 0.5 * box.widths
    ends = Ends((), Near.of(box, np.arange(2), ended, ended[:0]), 1)
    asked = np.vstack([ended, box.low])
    first = ends(asked)
    assert first.tolist() == [True, False]
    first[:] = False  # the answer is the caller's own
    assert ends(asked.copy()).tolist() == [True, False]
    asked[:] = asked[::-1].copy()  # and so is the question
    assert ends(asked).tolist() == [False, True]

"""Noise that depends on the place: found where it does, and only there."""

from __future__ import annotations

import numpy as np

from optimist.arrays import FloatArray
from optimist.box import Box
from optimist.grid import Grid
from optimist.models import fit_dynamics
from optimist.models.model import imagined_by, motion_on, noise_of
from optimist.models.uneven import Uneven, find_uneven
from optimist.steps import Noisy
from optimist.transitions import Transitions

BOX = Box([-1.0, -np.pi], [1.0, np.pi], [False, True])
CONTROLS = np.array([[-1.0], [1.0]])


def rough(states: FloatArray) -> FloatArray:
    """Standard deviations: the first by a factor of 7.4 across the box, the second the same everywhere."""
    return np.column_stack([0.02 * np.exp(states[:, 0]), np.full(len(states), 0.05)])


def drawn(count: int, seed: int, *, even: bool = False) -> tuple[FloatArray, FloatArray]:
    stream = np.random.default_rng(seed)
    states = stream.uniform(BOX.low, BOX.high, (count, 2))
    deviations = np.full((count, 2), 0.03) if even else rough(states)
    return states, deviations * stream.standard_normal((count, 2))


def found(count: int, seed: int, *, even: bool = False) -> Uneven | None:
    states, errors = drawn(count, seed, even=even)
    free = np.ones(states.shape, dtype=np.bool_)
    return find_uneven(BOX, states, errors, free, np.sqrt((errors**2).mean(axis=0)))


def test_even_noise_is_not_called_uneven() -> None:
    assert [found(300, seed, even=True) for seed in range(300)] == [None] * 300


def test_uneven_noise_is_found_and_how_it_depends_on_the_place() -> None:
    for seed in range(10):
        uneven = found(300, seed)
        assert uneven is not None
        assert not uneven.weights[:, 1].any()
        states = np.column_stack([np.linspace(-0.9, 0.9, 7), np.zeros(7)])
        ratios = uneven(states) / rough(states)
        assert (np.abs(np.log(ratios)) < np.log(1.5)).all()


def test_beyond_what_was_seen_it_is_as_at_the_edge() -> None:
    uneven = found(400, 3)
    assert uneven is not None
    far, edge = uneven(np.array([[50.0, 0.0], [uneven.places.high[0], 0.0]]))
    np.testing.assert_allclose(far, edge)


def test_a_few_say_nothing() -> None:
    assert found(60, 0) is None


def test_a_model_knows_it_and_hands_it_on() -> None:
    stream = np.random.default_rng(1)
    states = stream.uniform(BOX.low, BOX.high, (300, 2))
    actions = stream.integers(2, size=300)
    after = states + 0.1 * CONTROLS[actions] + rough(states) * stream.standard_normal((300, 2))
    model = fit_dynamics(Transitions.stepped(states, actions, BOX.wrap(after)), BOX, CONTROLS, fit_seed=0)
    grid = Grid.uniform(BOX, [11, 8])
    noise = motion_on(model, grid)
    assert noise is not None
    assert noise.shape == (88, 2)
    assert noise[:, 0].max() > 3.0 * noise[:, 0].min()
    imagined = imagined_by(model)
    assert isinstance(imagined, Noisy)
    one = imagined.astray(0, np.zeros(2, dtype=np.intp), np.array([[-0.9, 0.0], [0.9, 0.0]]))
    assert abs(one[1, 0]) > 3.0 * abs(one[0, 0])
    assert "uneven" in model.record()


def test_of_even_noise_a_model_says_one_number() -> None:
    stream = np.random.default_rng(1)
    states = stream.uniform(BOX.low, BOX.high, (300, 2))
    actions = stream.integers(2, size=300)
    after = states + 0.1 * CONTROLS[actions] + 0.03 * stream.standard_normal((300, 2))
    model = fit_dynamics(Transitions.stepped(states, actions, BOX.wrap(after)), BOX, CONTROLS, fit_seed=0)
    noise = motion_on(model, Grid.uniform(BOX, [11, 8]))
    assert noise is noise_of(model)
    assert "uneven" not in model.record()

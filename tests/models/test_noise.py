"""Noise that is learned, systems that change, stops inside the box."""

from __future__ import annotations

import numpy as np
import pytest

from optimist.arrays import FloatArray
from optimist.box import Box
from optimist.models import fit_dynamics
from optimist.models.change import changed_at, evidence
from optimist.models.edges import usable
from optimist.models.model import Model, imagined_by, noise_of
from optimist.models.stops import find_stops
from optimist.steps import Noisy
from optimist.transitions import Transitions

BOX = Box([-2.0, -2.0], [2.0, 2.0])
CONTROLS = np.array([[-1.0], [0.0], [1.0]])
USUAL = np.array([0.1, 0.12])


def swing(states: FloatArray, controls: FloatArray, mass: float = 1.0) -> FloatArray:
    rates = states[:, 1] + 0.1 * (np.sin(states[:, 0]) + controls[:, 0]) / mass
    return np.column_stack([states[:, 0] + 0.1 * rates, rates])


def seen_of(
    count: int, seed: int, share: float = 0.0, *, change: int | None = None, stop: float = np.inf
) -> Transitions:
    """Episodes of 20 steps; from row `change` on it is twice as heavy; at `stop` it stands."""
    stream, rows = np.random.default_rng(seed), []
    state = np.zeros(2)
    for number in range(count):
        if number % 20 == 0:
            state = stream.uniform(-1.0, 1.0, 2)
        action = int(stream.integers(3))
        mass = 2.0 if change is not None and number >= change else 1.0
        after = swing(state[np.newaxis], CONTROLS[[action]], mass)[
            0
        ] + share * USUAL * stream.standard_normal(2)
        if abs(after[0]) >= stop:
            after = np.array([np.sign(after[0]) * stop, 0.0])
        rows.append((state, action, after))
        state = after
    states, actions, next_states = zip(*rows, strict=True)
    return Transitions.stepped(np.array(states), np.array(actions), np.array(next_states))


def fitted(seen: Transitions) -> Model:
    return fit_dynamics(seen, BOX, CONTROLS, fit_seed=0)


@pytest.mark.parametrize("share", [0.03, 0.1, 0.5])
def test_the_variance_of_noise_is_learned(share: float) -> None:
    noise = noise_of(fitted(seen_of(200, 1, share)))
    assert noise is not None
    ratios = (noise / (share * USUAL)) ** 2
    assert (ratios > 1 / 1.5).all()
    assert (ratios < 1.5).all()


def test_without_noise_there_is_none_and_nothing_is_drawn() -> None:
    model = fitted(seen_of(120, 1))
    assert noise_of(model) is None
    assert not isinstance(imagined_by(model), Noisy)
    assert noise_of(fitted(seen_of(20, 1, 0.1))) is None  # of a few nobody can tell
    assert isinstance(imagined_by(fitted(seen_of(100, 1, 0.1))), Noisy)


@pytest.mark.parametrize("share", [0.0, 0.05])
def test_a_change_is_found_where_it_happened_and_none_where_it_did_not(share: float) -> None:
    for seed in range(3):
        for change in (None, 140):
            seen = seen_of(190, seed, share, change=change)
            found = changed_at(seen, np.asarray(usable(BOX, seen).all(axis=1)), fitted, BOX, CONTROLS)
            assert (found == 0) if change is None else (abs(found - change) <= 12)


def test_a_few_wrong_readings_are_no_change() -> None:
    off = np.ones((40, 2))
    off[30:32] = 1e9
    assert evidence(off, np.ones(40, dtype=np.bool_))[1] < 20.0
    off[25:] = 15.0
    since, much = evidence(off, np.ones(40, dtype=np.bool_))
    assert (since, much > 50.0) == (25, True)


def test_a_stop_is_found_and_what_is_predicted_beyond_it_is_held() -> None:
    seen = seen_of(400, 2, stop=0.9)
    stops = find_stops(BOX, seen)
    assert stops is not None
    np.testing.assert_allclose([stops.low[0], stops.high[0]], [-0.9, 0.9])
    assert not np.isfinite(stops.low[1])
    assert stops.at_high[0, 1] == 0.0
    arrived = np.abs(seen.next_states[:, 0]) == 0.9
    assert arrived.sum() > 5
    assert not usable(BOX, seen, stops)[arrived].all(axis=1).any()
    after = fitted(seen).predict(np.array([[0.85, 1.0], [0.0, 0.5]]), np.array([[1.0]]))
    np.testing.assert_allclose(after[0], [0.9, 0.0])
    np.testing.assert_allclose(after[1], swing(np.array([[0.0, 0.5]]), np.array([[1.0]]))[0], atol=5e-3)


def test_free_systems_have_no_stops() -> None:
    assert find_stops(BOX, seen_of(200, 0)) is None
    assert find_stops(BOX, seen_of(200, 0, 0.1)) is None

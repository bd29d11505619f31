"""Controls between those of a lattice, against scipy and numpy."""

from __future__ import annotations

import numpy as np
import pytest

from optimist.box import Box
from optimist.compiled.between import judge, mix, peak
from tests.naive.between import mixed, peaked, smoothed


@pytest.mark.parametrize(("n_actuators", "n_levels"), [(1, 5), (2, 3), (3, 3)])
def test_successors_are_interpolated_as_scipy_does(n_actuators: int, n_levels: int) -> None:
    stream = np.random.default_rng(n_actuators)
    box = Box([-1.0, -np.pi], [1.0, np.pi], periodic=[False, True])
    states = np.array([[0.3, 3.1], [-0.2, -3.1]])
    n_actions = n_levels**n_actuators
    listed = box.wrap(states[:, np.newaxis] + stream.uniform(-0.4, 0.4, size=(2, n_actions, 2)))
    unsure = stream.uniform(size=(2, n_actions))
    levels = np.sort(stream.uniform(-2.0, 2.0, size=(n_actuators, n_levels)), axis=1)
    controls = stream.uniform(levels[:, 0], levels[:, -1], size=(2, 20, n_actuators))
    controls[:, 0], controls[:, 1] = levels[:, 0], levels[:, -1]
    found, how = np.empty((2, 20, 2)), np.empty((2, 20))
    mix(states, listed, unsure, levels, controls, box.low, np.array([0.0, 2.0 * np.pi]), found, how)
    for i in range(2):
        for j in range(20):
            state, said = mixed(box, states[i], listed[i], unsure[i], levels, controls[i, j])
            np.testing.assert_allclose(box.displacement(found[i, j], state), 0.0, atol=1e-12)
            np.testing.assert_allclose(how[i, j], said, rtol=1e-12)


@pytest.mark.parametrize(("n_actuators", "n_tried"), [(1, 9), (2, 5), (3, 3)])
def test_values_are_smoothed_and_the_vertex_is_a_fitted_parabolas(n_actuators: int, n_tried: int) -> None:
    stream = np.random.default_rng(n_actuators)
    count = n_tried**n_actuators
    axes = np.sort(stream.uniform(-1.0, 1.0, size=(n_actuators, n_tried)), axis=1)
    for _ in range(20):
        rewards, futures = stream.normal(size=count), stream.normal(size=(count, 1))
        unsure, ended = stream.uniform(size=count), stream.uniform(size=count) < 0.2
        raw = (1.0 - unsure) * (rewards + np.where(ended, 0.0, 0.9 * futures[:, 0])) + unsure * 2.0
        values, best = np.empty((1, count)), np.empty((1, n_actuators))
        judge(rewards, ended, unsure, futures, 0.9, 2.0, 3, n_tried, values)
        np.testing.assert_allclose(values[0], smoothed(raw, n_tried, n_actuators), atol=1e-12)
        peak(values, np.array([values[0].argmax()]), axes, best)
        np.testing.assert_allclose(best[0], peaked(values[0], axes), atol=1e-9)


def test_equals_stay_where_they_are() -> None:
    best = np.empty((1, 1))
    peak(np.zeros((1, 9)), np.array([3]), np.linspace(-1.0, 1.0, 9)[np.newaxis], best)
    assert best[0, 0] == -0.25

"""Noise that is learned, systems that change."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from optimist.arrays import BoolArray, FloatArray
from optimist.box import Box
from optimist.models import fit_dynamics
from optimist.models.change import (
    BLOCK,
    ENOUGH,
    LAST_ASKED,
    LITTLE,
    MOST_ASKED,
    SHIFTED,
    _asked,
    been_near,
    changed_at,
    deviations,
    evidence,
    shifted_at,
)
from optimist.models.edges import usable
from optimist.models.model import ERRS, CovaryingModel, Model, imagined_by, noise_of
from optimist.models.regressor import FEWEST_DATA
from optimist.steps import Noisy
from optimist.transitions import Transitions

BOX = Box([-2.0, -2.0], [2.0, 2.0])
CONTROLS = np.array([[-1.0], [0.0], [1.0]])
USUAL = np.array([0.1, 0.12])


def swing(states: FloatArray, controls: FloatArray, mass: float = 1.0) -> FloatArray:
    rates = states[:, 1] + 0.1 * (np.sin(states[:, 0]) + controls[:, 0]) / mass
    return np.column_stack([states[:, 0] + 0.1 * rates, rates])


def seen_of(
    count: int, seed: int, share: float = 0.0, *, change: int | None = None, heavier: float = 2.0
) -> Transitions:
    """Episodes of 20 steps; from row `change` on it is so many times as heavy."""
    stream, rows = np.random.default_rng(seed), []
    state = np.zeros(2)
    for number in range(count):
        if number % 20 == 0:
            state = stream.uniform(-1.0, 1.0, 2)
        action = int(stream.integers(3))
        mass = heavier if change is not None and number >= change else 1.0
        after = swing(state[np.newaxis], CONTROLS[[action]], mass)[
            0
        ] + share * USUAL * stream.standard_normal(2)
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


@pytest.mark.parametrize(("share", "told"), [(0.004, True), (0.0005, False)])
def test_little_noise_is_noise_and_what_processes_leave_unexplained_is_none(share: float, told: bool) -> None:
    """The spread of displacements is about what is usual here."""
    noise = noise_of(fitted(seen_of(300, 1, share)))
    assert (noise is not None) == told
    if noise is not None:
        np.testing.assert_allclose(noise, share * USUAL, rtol=0.2)


def test_what_is_imagined_may_err() -> None:
    imagined = imagined_by(fitted(seen_of(120, 0, 0.05)))
    assert isinstance(imagined, Noisy)
    assert imagined.errs == ERRS > 0.0


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


@pytest.mark.parametrize("seed", range(3))
def test_where_nobody_was_before_nothing_can_have_changed(seed: int) -> None:
    """On the right there is a wind, and there always was: seven episodes had begun on the left."""
    stream, rows = np.random.default_rng(seed), []
    for number in range(200):
        if number % 20 == 0:
            state = np.array([stream.uniform(-1.8, -1.0) if number < 140 else stream.uniform(1.3, 1.8), 0.0])
        action = int(stream.integers(3))
        after = swing(state[np.newaxis], CONTROLS[[action]])[0]
        after += np.array([0.1, 1.0]) * 0.2 * max(0.0, state[0] - 0.8)
        rows.append((state, action, after))
        state = after
    states, actions, next_states = (np.array(part) for part in zip(*rows, strict=True))
    seen = Transitions.stepped(states, actions, next_states)
    model = fitted(seen.only(np.arange(200) < 140))
    applied = CONTROLS[actions[140:]]
    missed = np.abs(model.predict(states[140:], applied) - next_states[140:]).max(axis=1)
    assert (missed > 0.05).mean() > 0.9  # it did not know that
    free = np.asarray(usable(BOX, seen).all(axis=1))
    assert changed_at(seen, free, fitted, BOX, CONTROLS) == 0
    there, before = seen.only(np.arange(200) >= 140), seen.only(np.arange(200) < 140)
    assert not been_near(there, before, BOX, CONTROLS).any()
    assert been_near(before, before, BOX, CONTROLS).all()


def test_what_does_not_count_is_not_since_a_change() -> None:
    off = np.where(np.arange(60) < 40, 0.5, 100.0)[:, np.newaxis]
    counts = (np.arange(60) < 25) | (np.arange(60) >= 40)
    since, much = evidence(off, counts)
    assert since == 40
    assert much > ENOUGH


def test_near_is_near_across_the_seam_of_an_angle_and_for_a_coordinate_that_hardly_moves() -> None:
    box = Box([-np.pi, -2.0], [np.pi, 2.0], periodic=[True, False])
    angles = np.mod(np.linspace(np.pi - 0.15, np.pi + 0.15, 40) + np.pi, 2.0 * np.pi) - np.pi
    still = np.linspace(0.0, 4e-17, 40)

    def seen(angles: FloatArray, rates: FloatArray) -> Transitions:
        states = np.column_stack([angles, rates])
        return Transitions.stepped(states, np.zeros(len(states), dtype=np.int64), states)

    asked = seen(np.array([np.pi - 0.1, -np.pi + 0.1, np.pi - 0.45, 0.0]), np.full(4, 1e-9, dtype=np.float64))
    assert been_near(asked, seen(angles, still), box, CONTROLS).tolist() == [True, True, False, False]


def test_a_few_wrong_readings_are_no_change() -> None:
    off = np.ones((40, 2))
    off[30:32] = 1e9
    assert evidence(off, np.ones(40, dtype=np.bool_))[1] < ENOUGH
    off[25:] = 15.0
    since, much = evidence(off, np.ones(40, dtype=np.bool_))
    assert (since, much > ENOUGH) == (25, True)


@pytest.mark.parametrize("apart", [2, 3, 4, 5, 6])
@pytest.mark.parametrize("far", [14.0, 25.0, 1e9])
def test_wrong_readings_in_quick_succession_are_no_change(apart: int, far: float) -> None:
    """Each spoils two transitions; what lies between and around them is as it should be."""
    for n_after in range(8):
        off = np.full((300, 2), 1e-3)
        first = len(off) - n_after - apart - 2
        off[[first, first + 1, first + apart, first + apart + 1], 1] = far
        assert evidence(off, np.ones(300, dtype=np.bool_))[1] < ENOUGH
        off[[first - 3, first - 2], 1] = far
        assert evidence(off, np.ones(300, dtype=np.bool_))[1] < ENOUGH


@pytest.mark.parametrize("far", [9.0, 1e9, np.inf])
def test_a_moderate_shift_in_nearly_all_is_a_change(far: float) -> None:
    """However far: eight that are all off are enough, and of more a few may be as they should be."""
    off = np.full((300, 2), 1e-3)
    off[-8:, 1] = far
    since, much = evidence(off, np.ones(300, dtype=np.bool_))
    assert (since, much > ENOUGH) == (292, True)
    off[-20:, 1] = far
    off[-18:-2:4, 1] = 1e-3
    since, much = evidence(off, np.ones(300, dtype=np.bool_))
    assert (since, much > ENOUGH) == (280, True)


@pytest.mark.parametrize("wrong", [(182, 184), (180, 185), (181, 184, 187)])
def test_rates_read_as_nothing_in_quick_succession_are_no_change(wrong: tuple[int, ...]) -> None:
    for seed in range(3):
        seen = seen_of(190, seed)
        states, next_states = seen.states.copy(), seen.next_states.copy()
        for row in wrong:
            next_states[row, 1] = states[row + 1, 1] = 0.0
        read = Transitions.stepped(states, seen.actions, next_states)
        assert changed_at(read, np.ones(190, dtype=np.bool_), fitted, BOX, CONTROLS) == 0


# --- a change that no single step shows ---


def everywhere(seen: Transitions) -> BoolArray:
    return np.asarray(usable(BOX, seen).all(axis=1))


def test_a_small_change_shows_in_all_that_came_since() -> None:
    """A mass of 1.3 instead of 1 does less to a step than noise of a tenth of it."""
    alone = []  # what single steps say of it
    for seed in range(4):
        for change in (None, 140):
            seen = seen_of(240, seed, 0.1, change=change, heavier=1.3)
            model = fitted(seen.only(np.arange(240) < 140))
            since, much = shifted_at(seen, everywhere(seen), model, BOX, CONTROLS)
            if change is None:
                assert much < 0.5 * ENOUGH
            else:
                assert (since, much > ENOUGH) == (change, True)
                lately = seen.only(np.arange(240) >= change)
                usual = np.quantile(np.abs(BOX.displacement(seen.states, seen.next_states)), 0.9, axis=0)
                off = deviations(lately, model, BOX, CONTROLS, usual)
                alone.append(evidence(off, everywhere(lately))[1])
    assert min(alone) < 0.5 * ENOUGH


def test_steps_that_nothing_explains_are_no_small_change() -> None:
    seen = seen_of(240, 0, 0.05)
    next_states = seen.next_states.copy()
    next_states[[200, 220], 1] += 40.0 * 0.05 * USUAL[1]
    kicked = Transitions.stepped(seen.states, seen.actions, next_states)
    model = fitted(seen.only(np.arange(240) < 180))
    assert shifted_at(kicked, everywhere(kicked), model, BOX, CONTROLS)[1] < 0.5 * ENOUGH


def test_who_knows_no_noise_asks_for_no_small_change() -> None:
    seen = seen_of(240, 0, change=140)
    model = fitted(seen.only(np.arange(240) < 140))
    assert shifted_at(seen, everywhere(seen), model, BOX, CONTROLS) == (0, 0.0)


def likelier(covariance: FloatArray, noise: FloatArray, targets: FloatArray, off: BoolArray) -> float:
    """If some are off by a smooth function, by scipy's normal density."""
    plain, none = covariance + np.diag(noise), np.zeros(len(targets))
    shifted = plain + SHIFTED * covariance * np.outer(off, off)
    said = [multivariate_normal(none, one).logpdf(targets) for one in (shifted, plain)]
    return float(said[0] - said[1])


def lasting(covariance: FloatArray, noise: FloatArray, targets: FloatArray) -> float:
    """How much what each is off, foretold by the others, goes on from one to the next."""
    off = []
    for row in range(len(targets)):
        rest = np.arange(len(targets)) != row
        gain = np.linalg.solve(covariance[np.ix_(rest, rest)] + np.diag(noise[rest]), covariance[rest, row])
        variance = covariance[row, row] + noise[row] - gain @ covariance[rest, row]
        off.append((targets[row] - gain @ targets[rest]) / np.sqrt(variance))
    first, second = np.array(off[:-1]), np.array(off[1:])
    return max(0.0, float(first @ second / np.sqrt((first @ first) * (second @ second))))


def test_the_evidence_is_a_ratio_of_likelihoods() -> None:
    """Less that of what came before, and of independent noise as large as what is left says."""
    seen = seen_of(160, 1, 0.1, change=100, heavier=1.5)
    assert everywhere(seen).all()
    model = fitted(seen.only(np.arange(160) < 100))
    since, much = shifted_at(seen, everywhere(seen), model, BOX, CONTROLS)
    late = np.arange(160) >= 100
    near = been_near(seen.only(late), seen.only(~late), BOX, CONTROLS)
    asked = np.concatenate([np.ones(100, dtype=np.bool_), near])
    assert isinstance(model, CovaryingModel)
    usual = np.sqrt((BOX.displacement(seen.states, seen.next_states) ** 2).mean(axis=0))
    found = []
    for covariance, noise, targets in model.covariances(seen, LITTLE * usual):
        before = covariance[:100, :100], noise[:100], targets[:100]
        shared = lasting(*before)
        larger = noise * (1.0 + shared) / (1.0 - shared)
        some = covariance[np.ix_(asked, asked)], larger[asked], targets[asked]
        stretch = likelier(before[0], larger[:100], before[2], np.arange(100) >= 40)
        found.append(likelier(*some, late[asked]) - max(0.0, stretch))
    assert since == 100
    assert much == pytest.approx(max(found), rel=1e-8)


def test_noise_that_lasts_is_no_small_change() -> None:
    """What is off goes on for five steps or so: every stretch differs from the others."""
    for seed in range(3):
        stream, seen = np.random.default_rng(seed), seen_of(240, seed)
        drifting = np.zeros((240, 2))
        for row in range(1, 240):
            drifting[row] = 0.8 * drifting[row - 1] + 0.6 * stream.standard_normal(2)
        moved = Transitions.stepped(seen.states, seen.actions, seen.next_states + 0.1 * USUAL * drifting)
        model = fitted(moved.only(np.arange(240) < 140))
        assert noise_of(model) is not None
        assert shifted_at(moved, everywhere(moved), model, BOX, CONTROLS)[1] <= ENOUGH


def test_of_many_transitions_all_times_are_asked() -> None:
    asked = _asked(np.arange(3, 2003))
    assert len(asked) == MOST_ASKED
    assert (np.diff(asked) > 0).all()
    assert asked[0] < 3 + 2 * BLOCK
    assert (asked[-LAST_ASKED:] == np.arange(2003 - LAST_ASKED, 2003)).all()
    assert (np.diff(asked[:-LAST_ASKED]) == 1).sum() == (MOST_ASKED - LAST_ASKED) * (BLOCK - 1) // BLOCK
    for count in (0, 7, 150, MOST_ASKED):
        assert (_asked(np.arange(count)) == np.arange(count)).all()
    assert len(_asked(np.arange(MOST_ASKED + 3))) == MOST_ASKED


def test_of_few_transitions_nothing_is_asked(capfd: pytest.CaptureFixture[str]) -> None:
    seen = seen_of(160, 0, 0.1)
    model, nothing = fitted(seen), np.zeros(160, dtype=np.bool_)
    assert shifted_at(seen, nothing, model, BOX, CONTROLS) == (0, 0.0)
    few = seen.only(np.arange(160) < 30)
    assert shifted_at(few, everywhere(few), model, BOX, CONTROLS) == (0, 0.0)
    assert capfd.readouterr().err == ""  # LAPACK complains there


def test_what_was_as_different_before_counts_against_a_small_change(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three episodes light, three heavy, and so on: the last ones are less of a news."""
    light, heavy = (seen_of(240, 1, 0.1, change=change, heavier=1.5) for change in (None, 0))
    on = np.arange(240) % 120 >= 60
    states = np.where(on[:, np.newaxis], heavy.states, light.states)
    next_states = np.where(on[:, np.newaxis], heavy.next_states, light.next_states)
    seen = Transitions.stepped(states, np.where(on, heavy.actions, light.actions), next_states)
    asked = seen, everywhere(seen), fitted(light.only(np.arange(240) < 120)), BOX, CONTROLS
    much = shifted_at(*asked)[1]
    monkeypatch.setattr("optimist.models.change.STRETCHES", 0)
    assert much < 0.75 * shifted_at(*asked)[1]


def test_enough_is_left_to_learn_noise_from() -> None:
    seen = seen_of(240, 0, 0.05, change=220, heavier=2.0)
    model = fitted(seen.only(np.arange(240) < 220))
    assert shifted_at(seen, everywhere(seen), model, BOX, CONTROLS)[0] <= 240 - FEWEST_DATA

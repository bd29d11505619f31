"""Adapted environments: states mean what the documentation says, contradictions are told, gaps refused."""

from __future__ import annotations

import warnings
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

from optimist import Discretisation, GPRMax, plan
from optimist.agents import AgentSettings
from optimist.agents.settings import PlanningOptions
from optimist.arrays import BoolArray, FloatArray
from optimist.box import Box
from optimist.environments.adapter import AdaptedEnvironment, adapt

POLE_LIMIT = 12.0 * 2.0 * np.pi / 360.0
TORQUES = np.linspace(-2.0, 2.0, 5)


class Spot(gymnasium.Env[Any, Any]):
    """Shows what it is given to show, pays 0, and remembers what it was told to do."""

    def __init__(
        self,
        shown: Any = (0.0, 0.0),
        observation_space: spaces.Space[Any] | None = None,
        action_space: spaces.Space[Any] | None = None,
        reward: Any = 0.0,
    ) -> None:
        self.shown, self.reward = shown, reward
        self.observation_space = observation_space or spaces.Box(-1.0, 1.0, (2,), np.float64)
        self.action_space = action_space or spaces.Discrete(3)
        self.done: list[Any] = []

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, Any]:
        super().reset(seed=seed)
        return self.shown, {"options": options}

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        self.done.append(action)
        return self.shown, self.reward, False, False, {"step": len(self.done)}


def free(states: FloatArray, controls: FloatArray, next_states: FloatArray) -> FloatArray:
    return np.zeros(len(states))


def minus_one(states: FloatArray, controls: FloatArray, next_states: FloatArray) -> FloatArray:
    return np.full(len(states), -1.0)


def one(states: FloatArray, controls: FloatArray, next_states: FloatArray) -> FloatArray:
    return np.ones(len(states))


def swing_cost(states: FloatArray, controls: FloatArray, next_states: FloatArray) -> FloatArray:
    cost: FloatArray = states[:, 0] ** 2 + 0.1 * states[:, 1] ** 2 + 0.001 * controls[:, 0] ** 2
    return -cost


def cost_after(states: FloatArray, controls: FloatArray, next_states: FloatArray) -> FloatArray:
    return swing_cost(next_states, controls, next_states)


def angle_and_rate(observation: FloatArray) -> FloatArray:
    return np.array([np.arctan2(observation[1], observation[0]), observation[2]])


def at_goal(states: FloatArray) -> BoolArray:
    return states[:, 0] >= 0.5


def fallen(states: FloatArray) -> BoolArray:
    return (np.abs(states[:, 0]) > 2.4) | (np.abs(states[:, 2]) > POLE_LIMIT)


def mountain_car(**changed: Any) -> AdaptedEnvironment:
    given: dict[str, Any] = {"reward": minus_one, "is_terminal": at_goal}
    return adapt(gymnasium.make("MountainCar-v0"), **given | changed)


def pendulum(**changed: Any) -> AdaptedEnvironment:
    given: dict[str, Any] = {
        "state": angle_and_rate,
        "low": [-np.pi, -8.0],
        "high": [np.pi, 8.0],
        "periodic": [True, False],
        "controls": TORQUES,
        "reward": swing_cost,
    }
    return adapt(gymnasium.make("Pendulum-v1"), **given | changed)


def cart_pole(**changed: Any) -> AdaptedEnvironment:
    given: dict[str, Any] = {
        "low": [-2.6, -4.0, -0.3, -4.0],
        "high": [2.6, 4.0, 0.3, 4.0],
        "controls": [-10.0, 10.0],
        "reward": one,
        "is_terminal": fallen,
        "optimistic_value": 100.0,
    }
    return adapt(gymnasium.make("CartPole-v1"), **given | changed)


REAL = pytest.mark.parametrize("make", [mountain_car, pendulum, cart_pole])


def walk(env: AdaptedEnvironment, n_steps: int, *, seed: int = 0) -> list[tuple[Any, ...]]:
    """Random steps over as many episodes as it takes: (state, action, next state, reward, ended, cut)."""
    stream = np.random.default_rng(seed)
    state, _ = env.reset(seed=seed)
    rows = []
    for _ in range(n_steps):
        action = int(stream.integers(env.task.n_actions))
        next_state, reward, ended, cut, _ = env.step(action)
        rows.append((state, action, next_state, reward, ended, cut))
        state = env.reset()[0] if ended or cut else next_state
    return rows


def warned_by(env: AdaptedEnvironment, n_steps: int = 400) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        walk(env, n_steps)
    return [str(warning.message) for warning in caught]


# States, rewards and ends of the real environments


@REAL
def test_hundreds_of_steps_agree_with_the_documentation(make: Any) -> None:
    env = make()
    rows = walk(env, 600)
    states, actions, next_states, rewards, ended, _ = map(np.array, zip(*rows, strict=True))
    controls = env.task.controls[actions]
    np.testing.assert_allclose(env.task.rewards(states, controls, next_states), rewards, rtol=1e-3, atol=1e-6)
    np.testing.assert_array_equal(env.task.terminal(next_states), ended)
    assert states.dtype == np.float64
    assert states.shape == (600, env.task.box.n_dims)
    assert all(state in env.observation_space for state in next_states)


def test_the_pendulums_state_is_its_angle_and_rate() -> None:
    env = pendulum()
    hidden: Any = env.unwrapped
    env.reset(seed=1)
    for step in range(200):
        state, *_ = env.step(4 * (step // 40 % 2))
        angle, rate = hidden.state
        assert abs(np.angle(np.exp(1j * (state[0] - angle)))) < 1e-6
        assert state[1] == pytest.approx(rate, abs=1e-6)
        assert -np.pi <= state[0] < np.pi


def test_the_pendulums_steps_are_its_documented_equation() -> None:
    env = pendulum()
    for state, action, next_state, *_ in walk(env, 300):
        rate = state[1] + (15.0 * np.sin(state[0]) + 3.0 * TORQUES[action]) * 0.05
        rate = np.clip(rate, -8.0, 8.0)
        expected = np.array([state[0] + 0.05 * rate, rate])
        assert np.abs(env.task.box.displacement(expected, next_state)).max() < 1e-5


def test_the_mountain_cars_box_is_its_observation_space() -> None:
    box = mountain_car().task.box
    np.testing.assert_allclose(box.low, [-1.2, -0.07], rtol=1e-6)
    np.testing.assert_allclose(box.high, [0.6, 0.07], rtol=1e-6)
    assert not box.periodic.any()


def test_the_mountain_car_reaches_its_goal_without_a_complaint() -> None:
    env = mountain_car()
    state, _ = env.reset(seed=0)
    ended = cut = False
    while not (ended or cut):
        state, reward, ended, cut, _ = env.step(2 if state[1] >= 0.0 else 0)  # push the way it moves
        assert reward == -1.0
    assert ended
    assert not cut
    assert env.task.terminal(state[np.newaxis]).all()


def test_the_cart_poles_episodes_end_when_it_has_fallen() -> None:
    rows = walk(cart_pole(), 300)
    ends = [row for row in rows if row[4]]
    assert len(ends) > 5
    assert all(abs(row[2][2]) > POLE_LIMIT or abs(row[2][0]) > 2.4 for row in ends)


def test_the_task_holds_what_was_given() -> None:
    env = cart_pole(discount=0.95, max_steps=50)
    assert env.task.reward is one
    assert env.task.is_terminal is fallen
    assert env.task.discount == 0.95
    assert env.task.optimistic_value == 100.0
    assert env.task.max_steps == 50
    assert env.task.controls.tolist() == [[-10.0], [10.0]]


@pytest.mark.parametrize(("make", "limit"), [(mountain_car, 200), (pendulum, 200), (cart_pole, 500)])
def test_the_time_limit_is_the_environments_own(make: Any, limit: int) -> None:
    assert make().task.max_steps == limit


def test_without_a_limit_of_its_own_an_episode_takes_500_steps() -> None:
    env = adapt(Spot(), reward=free)
    env.reset()
    assert [env.step(0)[3] for _ in range(500)] == [False] * 499 + [True]
    env.reset()
    assert env.step(0)[3] is False


def test_a_shorter_limit_truncates_earlier() -> None:
    env = pendulum(max_steps=7)
    env.reset(seed=0)
    assert [env.step(0)[3] for _ in range(7)] == [False] * 6 + [True]


def test_seeds_and_options_and_infos_are_passed_on() -> None:
    env = adapt(Spot(), reward=free)
    assert env.reset(options={"state": 1})[1] == {"options": {"state": 1}}
    assert env.step(0)[4] == {"step": 1}
    first, second = (pendulum().reset(seed=5)[0] for _ in range(2))
    np.testing.assert_array_equal(first, second)


def test_what_is_returned_is_not_shared() -> None:
    env = pendulum()
    state, _ = env.reset(seed=0)
    kept = state.copy()
    state += 1.0
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # a reward at the wrong state would be complained of
        assert env.step(0)[1] == pytest.approx(
            swing_cost(kept[None], np.array([[-2.0]]), kept[None])[0], 1e-3
        )


# Periodic axes and the edge of the box


def test_states_are_wrapped_at_the_seam_and_not_clipped() -> None:
    space = spaces.Box(-100.0, 100.0, (2,), np.float32)
    inner = Spot(np.array([3.5, 7.0], np.float32), space)
    env = adapt(inner, reward=free, low=[-np.pi, -1.0], high=[np.pi, 1.0], periodic=[True, False])
    state, _ = env.reset()
    np.testing.assert_allclose(state, [3.5 - 2.0 * np.pi, 7.0])
    inner.shown = np.array([-3.5, -7.0], np.float32)
    np.testing.assert_allclose(env.step(0)[0], [-3.5 + 2.0 * np.pi, -7.0])


def test_exactly_the_upper_end_of_an_angle_is_the_lower_end() -> None:
    env = adapt(Spot(np.array([1.0, 1.0])), reward=free, periodic=[False, True])
    assert env.reset()[0].tolist() == [1.0, -1.0]


# Actions


def test_discrete_actions_are_numbered_by_default() -> None:
    assert adapt(Spot(), reward=free).task.controls.tolist() == [[0.0], [1.0], [2.0]]


def test_discrete_actions_are_passed_on_from_where_they_start() -> None:
    inner = Spot(action_space=spaces.Discrete(3, start=-1))
    env = adapt(inner, reward=free, controls=[-0.5, 0.0, 0.5])
    env.reset()
    for action in (0, np.int64(1), 2):
        env.step(action)
    assert inner.done == [-1, 0, 1]
    assert all(action in inner.action_space for action in inner.done)
    assert env.action_space == spaces.Discrete(3)


@pytest.mark.parametrize("shape", [(2,), (1, 2)])
def test_continuous_actions_are_passed_on_in_their_own_type_and_shape(shape: tuple[int, ...]) -> None:
    inner = Spot(action_space=spaces.Box(-0.1, 0.3, shape, np.float32))
    rows = [[-0.1, 0.3], [0.0, 0.0], [0.3, 0.1]]  # 0.3 is not a float32, and still within the bounds
    env = adapt(inner, reward=free, controls=rows)
    env.reset()
    for action in range(3):
        env.step(action)
        assert inner.done[action] in inner.action_space
        np.testing.assert_array_equal(inner.done[action].ravel(), np.array(rows[action], np.float32))
        inner.done[action] += 1.0  # an environment may use it up
    env.step(0)
    np.testing.assert_array_equal(inner.done[-1].ravel(), np.array(rows[0], np.float32))
    assert env.task.controls.tolist() == rows


def test_one_number_is_a_continuous_action_of_no_shape() -> None:
    inner = Spot(action_space=spaces.Box(-1.0, 1.0, (), np.float32))
    env = adapt(inner, reward=free, controls=[-1.0, 1.0])
    env.reset()
    env.step(1)
    assert inner.done[0] in inner.action_space
    assert float(inner.done[0]) == 1.0


@pytest.mark.parametrize("action", [-1, 3, 0.5, "left", None])
def test_a_bad_action_is_refused(action: Any) -> None:
    env = adapt(Spot(), reward=free)
    env.reset()
    with pytest.raises(ValueError, match="action must be one of 0 to 2; got "):
        env.step(action)


def test_a_step_before_reset_is_refused() -> None:
    with pytest.raises(RuntimeError, match="`reset` must be called before `step`"):
        adapt(Spot(), reward=free).step(0)


# Other observations


def test_a_state_may_be_computed_from_any_observation() -> None:
    space = spaces.Dict({"place": spaces.Box(-1.0, 1.0, (1,)), "gear": spaces.Discrete(3)})
    inner = Spot({"place": np.array([0.25], np.float32), "gear": 2}, space)
    env = adapt(
        inner, reward=free, state=lambda seen: [seen["place"][0], seen["gear"]], low=[-1, 0], high=[1, 2]
    )
    assert env.reset()[0].tolist() == [0.25, 2.0]


def test_a_state_may_be_computed_from_an_image() -> None:
    inner = Spot(np.full((4, 4), 5, np.uint8), spaces.Box(0, 255, (4, 4), np.uint8))
    env = adapt(inner, reward=free, state=lambda image: [image.mean()], low=[0], high=[255])
    assert env.reset()[0].tolist() == [5.0]


def test_given_bounds_replace_those_of_the_space() -> None:
    env = adapt(Spot(), reward=free, high=[2.0, 3.0])
    assert env.task.box.low.tolist() == [-1.0, -1.0]
    assert env.task.box.high.tolist() == [2.0, 3.0]


def test_the_task_is_found_through_further_wrappers() -> None:
    env = mountain_car()
    assert gymnasium.wrappers.TimeLimit(env, 10).get_wrapper_attr("task") is env.task


# What is known besides: the motion itself, and names


def falling(states: FloatArray, controls: FloatArray) -> FloatArray:
    """The documented equation of Gymnasium's pendulum."""
    rate = states[:, 1] + (15.0 * np.sin(states[:, 0]) + 3.0 * controls[:, 0]) * 0.05
    rate = np.clip(rate, -8.0, 8.0)
    return np.column_stack([states[:, 0] + 0.05 * rate, rate])


def test_known_dynamics_and_names_of_axes_are_kept_for_whoever_asks() -> None:
    env = pendulum(dynamics=falling, axis_names=["angle [rad]", "rate [rad/s]"])
    assert env.dynamics is falling
    assert env.axis_names == ("angle [rad]", "rate [rad/s]")
    further = gymnasium.wrappers.TimeLimit(env, 10)
    assert further.get_wrapper_attr("dynamics") is falling
    assert further.get_wrapper_attr("axis_names") == env.axis_names


@REAL
def test_without_them_there_are_no_dynamics_and_the_axes_are_numbered(make: Any) -> None:
    env = make()
    assert env.dynamics is None
    assert env.axis_names == tuple(f"coordinate {axis}" for axis in range(env.task.box.n_dims))


def test_known_dynamics_can_be_planned_with() -> None:
    env = pendulum(dynamics=falling)
    assert env.dynamics is not None
    planned = plan(env.task, env.dynamics, Discretisation(nodes=(41, 41)), depth=0)
    assert planned.plan.converged
    path = planned.roll_out(np.array([[-3.0, 0.0]])).paths[:, 0]
    assert abs(path[-1, 0]) < 0.1  # upright


def test_the_agent_is_never_told_the_dynamics() -> None:
    adapted = False

    def asked(states: FloatArray, controls: FloatArray) -> FloatArray:
        assert not adapted  # tried out by `adapt`; afterwards nobody may ask
        return states

    settings = AgentSettings(grid=Discretisation(nodes=(9, 9)), planning=PlanningOptions(depth=1))
    env = pendulum(dynamics=asked)
    adapted = True
    told = GPRMax(env, settings=settings).learn(12)
    untold = GPRMax(pendulum(), settings=settings).learn(12)
    np.testing.assert_array_equal(told.transitions.states, untold.transitions.states)
    np.testing.assert_array_equal(told.plan.q_values, untold.plan.q_values)


@pytest.mark.parametrize("names", [["angle"], ["a", "b", "c"], [], "ab", "angle"])
def test_names_that_are_not_one_per_coordinate_are_refused(names: Any) -> None:
    match = r"`axis_names` must have one name per coordinate \(2\); got "
    refused(Spot(), match, axis_names=names)


@pytest.mark.parametrize(
    ("dynamics", "match"),
    [
        (lambda states, controls: states[:, :1], r"one state per state, shape .*; got shape "),
        (lambda states, controls: states[0], r"one state per state, shape .*; got shape "),
        (lambda states, controls: np.full_like(states, np.nan), r"must return finite states; got \[nan"),
    ],
)
def test_dynamics_that_are_none_are_refused_at_once(dynamics: Any, match: str) -> None:
    with pytest.raises(ValueError, match=match):
        pendulum(dynamics=dynamics)


# Contradictions between task and environment


def test_a_reward_at_the_wrong_state_is_told_once_with_both_numbers() -> None:
    env = pendulum(reward=cost_after)
    (sentence,) = warned_by(env)
    state, action, next_state, reward, *_ = walk(pendulum(), 1)[0]
    assert f"paid {reward:.6g} for action {action} in state [{state[0]:.6g}, {state[1]:.6g}]" in sentence
    promised = cost_after(state[None], TORQUES[[action]][None], next_state[None])[0]
    assert f"`reward` says {promised:.6g}" in sentence
    assert "before the step or after it" in sentence


def test_a_reward_off_by_a_hundredth_is_told() -> None:
    inner = Spot(reward=np.float32(-1.0))
    right = adapt(inner, reward=lambda s, u, n: np.full(len(s), -1.0005))
    wrong = adapt(inner, reward=lambda s, u, n: np.full(len(s), -1.01))
    assert warned_by(right, 5) == []
    (sentence,) = warned_by(wrong, 5)
    assert "paid -1 for action" in sentence
    assert "says -1.01" in sentence


def test_a_warning_points_at_the_caller() -> None:
    env = adapt(Spot(), reward=minus_one)
    env.reset()
    with pytest.warns(UserWarning, match="paid 0 for action 0") as caught:
        env.step(0)
    assert caught[0].filename == __file__


def test_an_end_that_was_not_told_is_told_once() -> None:
    (sentence,) = warned_by(cart_pole(is_terminal=None))
    assert "terminated at state [" in sentence
    assert "`is_terminal` is not given" in sentence


def test_an_end_at_the_wrong_place_is_told_once() -> None:
    (late,) = warned_by(cart_pole(is_terminal=lambda states: np.abs(states[:, 2]) > 1.0))
    assert "terminated at state [" in late
    assert "`is_terminal` says False" in late
    (early,) = warned_by(cart_pole(is_terminal=lambda states: np.abs(states[:, 2]) > 0.05), 8)
    assert "did not terminate at state [" in early
    assert "`is_terminal` says True" in early


def test_a_box_may_end_where_episodes_do() -> None:
    assert warned_by(cart_pole(low=[-2.4, -4.0, -0.2, -4.0], high=[2.4, 4.0, 0.2, 4.0])) == []


# Refusals before anything is learned


def refused(env: Any, match: str, **given: Any) -> None:
    with pytest.raises(ValueError, match=match) as caught:
        adapt(env, **{"reward": free} | given)
    assert "\n" not in str(caught.value)


def test_a_missing_reward_is_refused() -> None:
    with pytest.raises(ValueError, match=r"`reward` must be a function .* never visited"):
        adapt(gymnasium.make("MountainCar-v0"))
    refused(Spot(), "got none. The planner evaluates the reward", reward=None)


def test_missing_bounds_are_refused_with_the_axes_and_the_way_out() -> None:
    env = gymnasium.make("CartPole-v1")
    refused(
        env,
        r"finite on every axis; got none on axis 1, 3 .* "
        r"`adapt\(env, low=\[-4.8, \?, -0.418879, \?\], high=\[4.8, \?, 0.418879, \?\], \.\.\.\)`",
    )
    refused(env, "none on axis 0 ", low=[-np.inf, -4, -1, -4], high=[3, 4, 1, 4])
    refused(env, "none on axis 2 ", low=[-3, -4, np.nan, -4], high=[3, 4, 1, 4])


def test_the_largest_float_is_no_bound() -> None:
    huge = np.finfo(np.float32).max
    space = spaces.Box(np.array([-1.0, -huge], np.float32), np.array([1.0, huge], np.float32))
    refused(Spot(observation_space=space), "got none on axis 1 ")


def test_bounds_that_do_not_fit_are_refused() -> None:
    refused(
        Spot(),
        r"`low` must have one number per coordinate of the observation \(2\); got shape \(3,\)",
        low=[0] * 3,
    )
    refused(Spot(), r"`high` must have one number .* \(2\); got shape \(\)", high=1.0)
    refused(Spot(), "`low` must be finite and below `high`", low=[0, 1], high=[1, 0])
    given: dict[str, Any] = {"state": lambda seen: seen}
    refused(Spot(), r"two lists of equal length.*got shapes \(1,\) and \(2,\)", low=[0], high=[1, 2], **given)
    refused(Spot(), "`low` and `high` must be given together with `state`", **given)
    refused(Spot(), "^`high` must be given together with `state`", low=[0], **given)


@pytest.mark.parametrize("periodic", [[True], [True, False, False], True])
def test_a_list_of_angles_of_the_wrong_length_is_refused(periodic: Any) -> None:
    refused(
        Spot(), r"`periodic` must have one bool per axis \(2\).*`periodic=\[True, False\]`", periodic=periodic
    )


def test_too_many_dimensions_are_refused() -> None:
    space = spaces.Box(-np.inf, np.inf, (7,))
    refused(Spot(observation_space=space), "at most 6 coordinates.*got 7. Give `state`")
    given: dict[str, Any] = {"low": [0] * 8, "high": [1] * 8, "state": lambda seen: seen}
    refused(Spot(), "at most 6 coordinates.*got 8", **given)


@pytest.mark.parametrize("shape", [(84, 84, 3), (2, 2), ()])
def test_observations_of_another_dimension_are_refused(shape: tuple[int, ...]) -> None:
    space = spaces.Box(0, 255, shape, np.uint8)
    refused(
        Spot(observation_space=space),
        r"one-dimensional arrays; got shape \(.*does not learn from images.*`state`",
    )


@pytest.mark.parametrize(
    "space",
    [
        spaces.Dict({"place": spaces.Box(-1.0, 1.0, (1,))}),
        spaces.Tuple([spaces.Box(-1.0, 1.0, (1,))]),
        spaces.Discrete(5),
        spaces.MultiDiscrete([2, 3]),
        spaces.MultiBinary(4),
        spaces.Text(3),
    ],
    ids=lambda space: type(space).__name__,
)
def test_other_observation_spaces_are_refused(space: spaces.Space[Any]) -> None:
    name = type(space).__name__
    refused(
        Spot(observation_space=space),
        rf"must be one-dimensional arrays \(a Box space\); got {name}.*Give `state`",
    )


@pytest.mark.parametrize(
    "space",
    [
        spaces.MultiBinary(2),
        spaces.MultiDiscrete([2, 3]),
        spaces.Dict({"push": spaces.Discrete(2)}),
        spaces.Tuple([spaces.Discrete(2)]),
    ],
    ids=lambda space: type(space).__name__,
)
def test_other_action_spaces_are_refused(space: spaces.Space[Any]) -> None:
    name = type(space).__name__
    refused(Spot(action_space=space), f"must be Discrete or a Box; got {name}.*ActionWrapper")


def test_continuous_actions_need_no_controls() -> None:
    env = pendulum(controls=None)
    assert env.task.control_box == Box([-2.0], [2.0])
    assert env.action_space == env.env.action_space
    env.reset(seed=0)
    env.step(env.action_space.sample())
    with pytest.raises(ValueError, match=r"1 number\(s\) within \[-2.0\] and \[2.0\]; got \[3.0\]"):
        env.step([3.0])
    narrow = pendulum(controls=Box([-1.0], [0.5]))
    assert narrow.action_space == spaces.Box(-1.0, 0.5, (1,), np.float32)


@pytest.mark.parametrize(
    ("space", "controls", "match"),
    [
        (spaces.Box(-1.0, 1.0, (4,)), None, r"1 to 3 numbers.*Give `controls`, a list .* each of 4"),
        (spaces.Box(-np.inf, 1.0, (1,)), None, r"finite bounds.*optimist.Box\(low=\[\?\], high=\[1\]\)"),
        (spaces.Box(0, 9, (1,), np.int64), None, r"must be real numbers.*np.linspace\(0, 9, 5\)"),
        (spaces.Box(-1.0, 1.0, (2,)), Box([-1.0], [1.0]), r"box of 2 actuator\(s\).*got 1"),
        (spaces.Box(-1.0, 1.0, (1,)), Box([-1.0], [2.0]), r"within the bounds .*got \[2.0\]"),
        (spaces.Discrete(3), Box([-1.0], [1.0]), r"must be a list where actions are numbered.*got a Box"),
    ],
)
def test_boxes_of_controls_that_do_not_fit_are_refused(space: Any, controls: Any, match: str) -> None:
    refused(Spot(action_space=space), match, controls=controls)


def test_controls_the_environment_would_cut_off_are_refused() -> None:
    with pytest.raises(
        ValueError, match=r"within the bounds of the action space, \[-2.0\] to \[2.0\]; got \[2.5\]"
    ):
        pendulum(controls=[-2.0, 0.0, 2.5])
    with pytest.raises(ValueError, match=r"within the bounds .* got \[nan\]"):
        pendulum(controls=[-2.0, np.nan])


@pytest.mark.parametrize("controls", [[], [[0.0, 1.0]], 1.0, [[[0.0]]]])
def test_controls_of_the_wrong_shape_are_refused(controls: Any) -> None:
    with pytest.raises(ValueError, match=r"one row per action, each of 1 number\(s\)"):
        pendulum(controls=controls)


def test_controls_that_would_be_rounded_are_refused() -> None:
    inner = Spot(action_space=spaces.Box(0, 9, (1,), np.int64))
    refused(inner, r"keep their values as int64.*got \[0.5\], which becomes \[0\]", controls=[0.5, 1.0])


@pytest.mark.parametrize("controls", [[0.0, 1.0], [[0.0]] * 4, 1.0, [[[0.0]]] * 3])
def test_controls_that_are_not_one_per_action_are_refused(controls: Any) -> None:
    refused(Spot(), r"one row per action \(3\); got shape .*Leave it out", controls=controls)


def test_a_vector_of_environments_is_refused() -> None:
    env = gymnasium.make_vec("MountainCar-v0", num_envs=2)
    refused(env, "must be a single environment; got .*gymnasium.make`, not")
    env.close()


def test_what_is_no_environment_is_refused() -> None:
    refused("MountainCar-v0", r"must be a gymnasium.Env.*got 'MountainCar-v0'")


def test_functions_that_are_not_batched_are_refused_at_once() -> None:
    refused(Spot(), r"`reward` must return one number per state, shape \(9,\)", reward=lambda s, u, n: -s[0])
    refused(Spot(), "`reward` must return one number per state", reward=lambda s, u, n: -u[:, 0])
    refused(Spot(), "`reward` must be finite", reward=lambda s, u, n: np.full(len(s), -np.inf))
    refused(Spot(), "`is_terminal` must return one bool per state", is_terminal=lambda s: s[:, 0])


def test_optimism_below_what_is_paid_is_refused() -> None:
    with pytest.raises(
        ValueError, match=r"`optimistic_value` must be .*; got 0 where a single reward is 1.*here 100"
    ):
        cart_pole(optimistic_value=0.0)
    with pytest.raises(ValueError, match="here 500 or more"):
        cart_pole(optimistic_value=0.5, discount=1.0)


@pytest.mark.parametrize(
    ("given", "match"),
    [
        ({"discount": 1.5}, "`discount` must be in"),
        ({"discount": 1.0}, "`discount` 1 must come with `is_terminal`"),
        ({"optimistic_value": np.inf}, "`optimistic_value` must be finite"),
        ({"max_steps": 0}, "`max_steps` must be at least 1"),
    ],
)
def test_what_a_task_refuses_is_refused(given: dict[str, Any], match: str) -> None:
    refused(Spot(), match, **given)


# Refusals on the way


@pytest.mark.parametrize(
    ("shown", "match"),
    [
        ([0.0, 0.0, 0.0], r"The observation must have shape \(2,\); got shape \(3,\)"),
        ([[0.0, 0.0]], r"The observation must have shape \(2,\); got shape \(1, 2\)"),
        ([np.nan, 0.0], r"The observation must not be NaN; got \[nan, 0.\]\.$"),
        ([np.inf, 0.0], "The observation must be finite"),
        ("nothing", "The observation must be an array of numbers; got 'nothing'"),
        (None, r"The observation must have shape \(2,\); got shape \(\)"),
    ],
)
def test_a_bad_observation_is_refused_by_name(shown: Any, match: str) -> None:
    inner = Spot()
    env = adapt(inner, reward=free)
    env.reset()
    inner.shown = shown
    with pytest.raises(ValueError, match=match):
        env.step(0)
    with pytest.raises(ValueError, match=match):
        env.reset()
    with pytest.raises(RuntimeError, match="`reset` must be called"):
        env.step(0)


@pytest.mark.parametrize(
    ("returned", "match"),
    [
        (
            [0.0],
            r"What `state` returns must have shape \(2,\); got shape \(1,\) from .* \[0.5, 0.5\]",
        ),
        (
            [np.nan, 0.0],
            r"What `state` returns must not be NaN; got \[nan, .* from the observation \[0.5, 0.5\]",
        ),
        ([np.inf, 0.0], "What `state` returns must be finite"),
        (None, "What `state` returns must "),
    ],
)
def test_a_bad_state_function_is_refused_at_every_call(returned: Any, match: str) -> None:
    answers = [[0.0, 0.0], [0.0, 0.0], returned]
    given: dict[str, Any] = {"state": lambda seen: answers.pop(0), "low": [-1, -1], "high": [1, 1]}
    env = adapt(Spot(np.array([0.5, 0.5])), reward=free, **given)
    env.reset()
    env.step(0)
    with pytest.raises(ValueError, match=match):
        env.step(0)


@pytest.mark.parametrize("reward", [np.nan, np.inf, [1.0, 2.0]])
def test_a_bad_reward_is_refused(reward: Any) -> None:
    env = adapt(Spot(reward=reward), reward=free)
    env.reset()
    with pytest.raises(ValueError, match="must pay one finite number; got the reward"):
        env.step(0)


def test_a_reward_in_an_array_is_one_number() -> None:
    env = adapt(Spot(reward=np.zeros(1, np.float32)), reward=free)
    env.reset()
    reward = env.step(0)[1]
    assert type(reward) is float

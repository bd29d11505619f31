"""What others give cannot change what we have, and what goes wrong in it is said by name."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from time import sleep
from typing import Any

import numpy as np
import pytest

from optimist import Box, Discretisation, Task, plan
from optimist.given import GivenError, blamed, brief, called, flag, one_line, told
from optimist.steps import successors

BOX = Box([-1.0, -1.0], [1.0, 1.0])


def clean_reward(states: Any, controls: Any, next_states: Any) -> Any:
    return -(states**2).sum(axis=1) - (controls**2).sum(axis=1)


def clean_end(states: Any) -> Any:
    return states[:, 0] > 0.9


def clean_motion(states: Any, controls: Any) -> Any:
    return np.clip(states * 0.9 + 0.1 * controls, -1.0, 1.0)


def writing_reward(states: Any, controls: Any, next_states: Any) -> Any:
    states **= 2
    controls **= 2
    next_states[:] = 7.0
    return -states.sum(axis=1) - controls.sum(axis=1)


def writing_end(states: Any) -> Any:
    states -= 0.9
    return states[:, 0] > 0.0


def writing_motion(states: Any, controls: Any) -> Any:
    states *= 0.9
    controls *= 0.1
    states += controls
    return np.clip(states, -1.0, 1.0, out=states)


def task_of(reward: Any, end: Any) -> Task:
    return Task(BOX, np.array([-1.0, 1.0]), reward, 0.9, 0.0, end, max_steps=20)


def test_functions_that_write_into_their_arguments_change_nothing() -> None:
    states, control = np.array([[0.5, -0.5], [0.95, 0.0]]), np.array([[2.0]])
    before = states.copy(), control.copy()
    writing, clean = task_of(writing_reward, writing_end), task_of(clean_reward, clean_end)
    asked = states, control, states
    assert writing.rewards(*asked).tolist() == clean.rewards(*asked).tolist()
    assert writing.terminal(states).tolist() == [False, True]
    np.testing.assert_allclose(successors(writing_motion, states, control), clean_motion(states, control))
    assert np.array_equal(states, before[0])
    assert np.array_equal(control, before[1])


def test_a_plan_with_functions_that_write_is_the_plan_with_those_that_do_not() -> None:
    nodes = Discretisation(nodes=(9, 9), hold=2)
    made = plan(task_of(writing_reward, writing_end), writing_motion, nodes, starts=[[0.5, 0.5]])
    other = plan(task_of(clean_reward, clean_end), clean_motion, nodes, starts=[[0.5, 0.5]])
    np.testing.assert_allclose(made.plan.q_values, other.plan.q_values, rtol=1e-12, atol=1e-12)


def test_arguments_are_no_copies_unless_they_must_be() -> None:
    shown: list[Any] = []
    given = np.zeros((3, 2))
    called("it", shown.append, given)
    assert np.shares_memory(shown[0], given)
    with pytest.raises(ValueError, match="read-only"):
        shown[0][0, 0] = 1.0


def failing(*_: Any) -> Any:
    return 1 // 0


@pytest.mark.parametrize(
    ("name", "ask"),
    [
        ("`reward`", lambda x: task_of(failing, None).rewards(x, x[:1], x)),
        ("`is_terminal`", lambda x: task_of(clean_reward, failing).terminal(x)),
        ("The dynamics", lambda x: successors(failing, x, x[:1, :1])),
    ],
)
def test_a_function_that_fails_is_named_with_the_line_that_did(name: str, ask: Any) -> None:
    said = r"got ZeroDivisionError: .*by zero \(test_given\.py, line \d+, in failing\)\.$"
    with pytest.raises(GivenError, match=f"^{name} must not fail; {said}"):
        ask(np.zeros((3, 2)))


def leaving(*_: Any) -> Any:
    raise SystemExit(0)


def test_nobodys_function_ends_the_command() -> None:
    with pytest.raises(GivenError, match=r"^`reward` must not fail; got SystemExit: 0 \(test_given\.py,"):
        task_of(leaving, None).rewards(*[np.zeros((3, 2))] * 3)


@pytest.mark.parametrize("answer", ["no", None, [[1.0], [2.0, 3.0]], {}, ["1", "2", "3"], np.ones(3) + 1j])
def test_answers_that_are_no_numbers_are_refused_by_name(answer: Any) -> None:
    states = np.zeros((3, 2))
    with pytest.raises(GivenError, match=r"`reward` must (return|be) "):
        task_of(lambda *_: answer, None).rewards(states, states[:1], states)
    with pytest.raises(GivenError, match="The dynamics must return "):
        successors(lambda *_: answer, states, states[:1, :1])


def test_only_somebodys_own_code_is_blamed() -> None:
    said = "^The model must not fail; got ZeroDivisionError"
    with pytest.raises(GivenError, match=said), blamed("The model"):
        failing()
    with pytest.raises(OSError, match="disk"), blamed("The model"):
        raise OSError("disk")
    with pytest.raises(ValueError, match=r"^`low` and `high` must") as refused:
        _in_our_own_code()
    assert not isinstance(refused.value, GivenError)


def _in_our_own_code() -> None:
    import optimist.box as ours

    program = compile("with blamed('The model'): Box([], [])", ours.__file__, "exec")  # as if it stood there
    exec(program, {"blamed": blamed, "Box": Box})


def test_what_is_shown_is_one_short_line_that_no_terminal_obeys() -> None:
    assert one_line("a\n  b\x1b[2J\u202e") == "a b\\x1b[2J\\u202e"
    assert brief("x" * 1000) == "'" + "x" * 76 + "..."
    assert brief(3) == "3"

    class Rude:
        def __repr__(self) -> str:
            raise RuntimeError

    assert brief(Rude()) == "a Rude"
    assert told(KeyError()) == "KeyError"


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        *[(True, True), (np.bool_(False), False), (1, True), (np.array([0.0]), False)],
        *[(bad, None) for bad in (np.nan, 2, 0.5, None, "yes", [True, False], np.inf)],
    ],
)
def test_a_flag_is_true_or_false(value: Any, expected: bool | None) -> None:
    assert flag(value) is expected


def test_functions_are_called_by_one_thread_at_a_time_and_may_return_their_scratch() -> None:
    scratch = np.empty(1000)

    def reward(states: Any, controls: Any, next_states: Any) -> Any:
        scratch[:] = states[0, 0]
        sleep(1e-3)
        return scratch

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda x: called("It", reward, *[np.full((1000, 1), x)] * 3), range(20)))
    assert [np.unique(np.asarray(one)).tolist() for one in found] == [[x] for x in range(20)]

"""A session runs, records and resumes any agent: here one of our own that plans nothing."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from pydantic import BaseModel

from optimist.agents.agent import Agent, Update
from optimist.arrays import Actions, FloatArray
from optimist.models.model import Packed
from optimist.runs import EpisodeRow, RunError, RunStore, Session, Stepped, Updated
from optimist.runs.agent_file import load_agent, save_agent
from optimist.runs.loop import Event
from optimist.task import Task
from optimist.transitions import Transition
from tests.runs.recording import LINE, Line, ShortLine, bits

EPISODES = 4  # of twelve steps
NAME = "coin"


class CoinSettings(BaseModel):
    """All there is to choose."""

    every: int = 7  # transitions from one update to the next
    until: int = 10_000  # where it has learned enough


class Favourite:
    """One action everywhere."""

    def __init__(self, action: int) -> None:
        self.action = action

    def greedy(self, states: FloatArray) -> Actions:
        return np.full(len(states), self.action)


class CoinAgent:
    """Tosses a coin, biased towards the action that paid best so far."""

    def __init__(self, task: Task, settings: CoinSettings, *, seed: int) -> None:
        self.task, self.settings, self.seed = task, settings, seed
        self.transitions: list[Transition] = []
        self.paid: FloatArray | None = None  # [n_actions], the mean reward of each
        self.n_used = 0  # transitions those are of
        self.n_updates = 0  # made by this object

    @property
    def policy(self) -> Favourite:
        if self.paid is None:
            raise ValueError("The coin must have been tossed.")
        return Favourite(int(self.paid.argmax()))

    @property
    def settled_at(self) -> int | None:
        return self.n_used if self.n_used >= self.settings.until else None

    @property
    def due(self) -> bool:
        count = len(self.transitions)
        return self.settled_at is None and count > self.n_used and count % self.settings.every == 0

    def act(self, state: FloatArray) -> int:
        stream = np.random.default_rng([self.seed, len(self.transitions)])
        if self.paid is not None and stream.random() < 0.5:
            return int(self.paid.argmax())
        return int(stream.integers(self.task.n_actions))

    def observe(self, transition: Transition) -> None:
        self.transitions.append(transition)

    def mark(self, number: int, *, void: bool) -> None:
        raise AssertionError("nobody marks anything")

    def update(self) -> Update:
        self.n_updates += 1
        tried = np.zeros(self.task.n_actions)
        total = np.zeros(self.task.n_actions)
        for row in self.transitions:
            tried[row.action] += 1.0
            total[row.action] += row.reward
        self.paid, self.n_used = total / np.maximum(tried, 1.0), len(self.transitions)
        return Update(
            n_transitions=self.n_used,
            fit_seconds=0.0,
            predict_seconds=0.0,
            plan_seconds=0.0,
            sweeps=0,
            residual=0.0,
            converged=True,
            drift=None,
            mean_uncertainty=1.0,
            model={"paid": self.paid.tolist()},
            settled=self.settled_at is not None,
            rehearsal={},
        )

    def pack(self) -> Packed | None:
        if self.paid is None:
            return None
        return {"paid": self.paid}, {"n_transitions": self.n_used}

    def restore(self, transitions: Sequence[Transition], packed: Packed | None) -> None:
        self.transitions, self.paid, self.n_used = list(transitions), None, 0
        if packed is not None:
            self.paid, self.n_used = packed[0]["paid"], packed[1]["n_transitions"]


class Forgetful(CoinAgent):
    """Has nothing to say that would be worth a file."""

    def pack(self) -> Packed | None:
        return None


AGENTS = pytest.mark.parametrize("kind", [CoinAgent, Forgetful])


def agent_of(kind: type[CoinAgent] = CoinAgent, seed: int = 3, **chosen: Any) -> CoinAgent:
    return kind(LINE, CoinSettings(**chosen), seed=seed)


def session(
    env: Line | None, run: Path | None = None, kind: type[CoinAgent] = CoinAgent, **chosen: Any
) -> Session[CoinAgent]:
    made = Session(agent_of(kind, **chosen), env, name=NAME, problem="line")
    if run is not None:
        made.record(run, episodes=EPISODES)
    return made


def reopened(
    run: Path, env: Line | None, kind: type[CoinAgent] = CoinAgent, **how: Any
) -> Session[CoinAgent]:
    return Session.reopen(
        run, env, LINE, lambda document, seed: kind(LINE, CoinSettings(**document), seed=seed), **how
    )


Left = tuple[list[Any], list[EpisodeRow], list[dict[str, Any]]]


def left(run: Path) -> Left:
    """All that a run left behind; nothing in it depends on time."""
    with RunStore.open(run, writing=False) as store:
        return [bits(row) for row in store.transitions()], store.episodes(), store.plans()


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Left:
    run = tmp_path_factory.mktemp("coin") / "run"
    with session(ShortLine(), run) as coin:
        coin.learn(episodes=EPISODES)
    return left(run)


def test_it_is_an_agent() -> None:
    agent: Agent = agent_of()  # mypy checks it
    assert agent.seed == 3


def test_it_learns_as_ours_do() -> None:
    heard: list[Event] = []
    coin = session(ShortLine())
    assert coin.learn(30, callback=heard.append) is coin
    assert coin.num_timesteps == len(coin.transitions) == 30
    assert [event.number for event in heard if isinstance(event, Stepped)] == list(range(1, 31))
    assert [e.update.n_transitions for e in heard if isinstance(e, Updated)] == [7, 14, 21, 28]
    assert [(row.episode, row.steps, row.ending) for row in coin.episodes] == [
        (1, 12, "truncated"),
        (2, 12, "truncated"),
    ]
    assert coin.stopped_learning_at is None
    assert (coin.task, coin.seed, coin.box) == (LINE, 3, LINE.box)
    assert coin.predict([0.0, 0.0])[0] == coin.policy.greedy(np.zeros((1, 2)))[0]
    assert coin.predict(np.zeros((5, 2)))[0].shape == (5,)
    assert coin.value([0.0, 0.0]) is None  # it does not say
    assert coin.uncertainty([0.0, 0.0]) is None


def test_it_stops_learning_where_it_says() -> None:
    coin = session(ShortLine(), until=14).learn(30)
    assert coin.stopped_learning_at == 14
    assert coin.num_timesteps == 30


def test_before_it_knows_anything_it_is_not_asked() -> None:
    with pytest.raises(ValueError, match="must have been tossed"):
        session(ShortLine()).learn(3).predict([0.0, 0.0])


def test_its_record_says_what_it_is(tmp_path: Path) -> None:
    with session(ShortLine(), tmp_path / "run", every=5) as coin:
        coin.learn(11)
    with RunStore.open(tmp_path / "run", writing=False) as store:
        header = store.header
        assert (header["agent"], header["problem"], header["seed"]) == (NAME, "line", 3)
        assert header["settings"] == {"every": 5, "until": 10_000}
        assert header["episodes"] == EPISODES
        assert store.n_transitions == 11
        plans = store.plans()
    assert [row["n_transitions"] for row in plans] == [5, 10]
    assert all(set(row["model"]) == {"paid"} for row in plans)


@pytest.mark.parametrize("recording", [True, False])
def test_in_pieces_and_recorded_or_not_it_is_the_same_run(
    tmp_path: Path, undisturbed: Left, recording: bool
) -> None:
    run = tmp_path / "run" if recording else None
    with session(ShortLine(), run) as coin:
        for steps in (1, 6, 7, 13):
            coin.learn(steps)
        coin.learn(episodes=EPISODES)
        assert [bits(row) for row in coin.transitions.rows()] == undisturbed[0]
        assert coin.episodes == undisturbed[1]
    if run is not None:
        assert left(run) == undisturbed


# --- killed in the middle, and opened again ---


class Failing(ShortLine):
    """Its motor fails at one step, counted over all episodes; nobody can tell what became of that step."""

    def __init__(self, at: int) -> None:
        super().__init__()
        self.at = at

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, Any]:
        answer = super().step(action)
        if self.n_steps == self.at:
            raise OSError("the motor stopped")
        return answer


@AGENTS
@pytest.mark.parametrize("at", [1, 7, 8, 12, 13, 20, 22, 48])
def test_killed_in_the_middle_and_opened_again_it_ends_as_undisturbed(
    tmp_path: Path, undisturbed: Left, kind: type[CoinAgent], at: int
) -> None:
    run = tmp_path / "run"
    with session(Failing(at), run, kind) as coin:
        with pytest.raises(RunError, match="the motor stopped"):
            coin.learn(episodes=EPISODES)
        assert coin.num_timesteps == at - 1
    assert left(run)[0] == undisturbed[0][: at - 1]  # nothing is lost
    with reopened(run, ShortLine(), kind) as coin:
        assert coin.num_timesteps == at - 1
        coin.learn(episodes=EPISODES)
        assert coin.num_timesteps == 48
    assert left(run) == undisturbed


@AGENTS
def test_the_same_session_goes_on_too(tmp_path: Path, undisturbed: Left, kind: type[CoinAgent]) -> None:
    run = tmp_path / "run"
    with session(Failing(20), run, kind) as coin:
        with pytest.raises(RunError):
            coin.learn(episodes=EPISODES)
        coin.learn(episodes=EPISODES)
    assert left(run) == undisturbed


def test_an_outside_environment_begins_a_fresh_episode(tmp_path: Path) -> None:
    run = tmp_path / "run"
    with session(Line(), run) as coin:
        coin.learn(17)
    with reopened(run, Line()) as coin:
        coin.learn(episodes=3)
        assert [(row.steps, row.ending) for row in coin.episodes] == [
            (12, "truncated"),
            (5, "abandoned"),
            (12, "truncated"),
            (12, "truncated"),
        ]


def test_what_is_checkpointed_is_not_learned_again(tmp_path: Path) -> None:
    for kind, n_updates in ((CoinAgent, 0), (Forgetful, 2)):  # at 7 and 14
        run = tmp_path / kind.__name__
        with session(ShortLine(), run, kind) as coin:
            coin.learn(17)
            known = coin.predict([0.0, 0.0])[0]
        agents: list[CoinAgent] = []

        def make(document: dict[str, Any], seed: int, kind: Any = kind, agents: Any = agents) -> Any:
            agents.append(kind(LINE, CoinSettings(**document), seed=seed))
            return agents[-1]

        with Session.reopen(run, ShortLine(), LINE, make) as again:
            assert again.predict([0.0, 0.0])[0] == known
        assert [agent.n_updates for agent in agents] == [n_updates]


def test_looking_at_a_run_changes_nothing(tmp_path: Path, undisturbed: Left) -> None:
    run = tmp_path / "run"
    with session(Line(), run) as coin:
        coin.learn(17)
    before = left(run)
    with reopened(run, None, writing=False) as coin:
        assert coin.num_timesteps == 17
        assert [row.ending for row in coin.episodes] == ["truncated"]
    assert left(run) == before


# --- files ---


@pytest.mark.parametrize("count", [0, 5, 17])
def test_it_is_saved_and_loaded(tmp_path: Path, count: int) -> None:
    agent = agent_of()
    if count:
        Session(agent, ShortLine(), name=NAME).learn(count)
    save_agent(agent, tmp_path / "coin.optimist")
    loaded = load_agent(
        tmp_path / "coin.optimist",
        LINE,
        lambda document, seed: CoinAgent(LINE, CoinSettings(**document), seed=seed),
    )
    assert (loaded.settings, loaded.seed, loaded.n_used) == (agent.settings, agent.seed, agent.n_used)
    assert [bits(row) for row in loaded.transitions] == [bits(row) for row in agent.transitions]
    if count < 7:
        assert loaded.paid is None
    else:
        assert loaded.paid is not None
        assert agent.paid is not None
        assert loaded.paid.tobytes() == agent.paid.tobytes()


# --- what is refused ---


def test_a_run_that_has_begun_is_not_recorded_from_its_middle(tmp_path: Path) -> None:
    coin = session(ShortLine()).learn(2)
    with pytest.raises(ValueError, match="must be recorded from its first transition on"):
        coin.record(tmp_path / "run")
    assert not (tmp_path / "run").exists()
    with session(ShortLine(), tmp_path / "run") as coin, pytest.raises(ValueError, match="must be recorded"):
        coin.record(tmp_path / "other")


def test_a_run_of_another_task_is_refused_and_let_go(tmp_path: Path) -> None:
    run = tmp_path / "run"
    session(ShortLine(), run).close()
    other = Task(
        box=LINE.box, controls=np.array([-0.2, 0.2]), reward=LINE.reward, discount=0.95, optimistic_value=0.0
    )
    with pytest.raises(ValueError, match="`controls`"):
        Session.reopen(run, ShortLine(), other, lambda document, seed: agent_of())
    RunStore.open(run, writing=True).close()


def test_an_agent_that_cannot_be_made_again_lets_the_run_go(tmp_path: Path) -> None:
    run = tmp_path / "run"
    session(ShortLine(), run).close()

    def make(document: dict[str, Any], seed: int) -> CoinAgent:
        raise ValueError("no such agent")

    with pytest.raises(ValueError, match="no such agent"):
        Session.reopen(run, ShortLine(), LINE, make)
    RunStore.open(run, writing=True).close()


def test_an_environment_with_other_actions_is_refused() -> None:
    class Three(Line):
        action_space = gymnasium.spaces.Discrete(3)

    with pytest.raises(ValueError, match=r"must have 2 numbered actions.*got Discrete\(3\)"):
        session(Three())

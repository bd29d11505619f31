"""Hostile agent files, runs, settings and campaigns: each must be refused in one sentence.

    python -m tests.torture.hostile --cases 400 --seed 0

The checksums are right: who writes such a file can write those, too. A real small one is taken apart,
changed in one place (seeded) and put together again; some are made by hand. What is merely another valid
document (another seed, one number for another) is no attack and not among them.
"""

from __future__ import annotations

import argparse
import json
import random
import signal
import sqlite3
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from benchmarks.exploring import random_transitions
from pydantic import ValidationError
from safetensors import safe_open
from safetensors.numpy import save

from optimist import Discretisation, GPRMax
from optimist.agents import AgentSettings, GPRMaxAgent
from optimist.agents.settings import parse_settings, settings_of
from optimist.environments.system_environment import SystemEnvironment
from optimist.experiments.online import open_run
from optimist.experiments.specs import read_experiment
from optimist.gp.covariance import Metric
from optimist.models import GPSettings
from optimist.runs import RunError
from optimist.runs.agent_file import _canonical, _checksum, _digest, load_agent, save_agent
from optimist.runs.chain import genesis, link
from optimist.runs.files import WITNESS
from optimist.runs.tables import TABLES
from optimist.systems import find_system

SECONDS = 20  # after so many a case counts as a hang
LONGEST = 1500  # characters of a sentence
DEEP = 100_000

Arrays = dict[str, Any]
Path_ = tuple[str | int, ...]
Try = Callable[[], object]


@dataclass(frozen=True)
class Case:
    """One attack: what it is called, and what must refuse it; `place` must be named."""

    name: str
    attempt: Try
    place: str


# --- a real one, and how it is put together again ---

TASK = replace(find_system("mountain-car").task, max_steps=60)


def trained(settings: AgentSettings) -> GPRMaxAgent:
    agent = GPRMaxAgent(TASK, settings, seed=5)
    for transition in random_transitions(find_system("mountain-car"), 40, seed=1).rows():
        agent.observe(transition)
        if agent.due:
            agent.update()
    return agent


@cache
def real_agents() -> list[GPRMaxAgent]:
    """A joint model, and one per action with another metric."""
    kinds = [GPSettings(), GPSettings(kind="per-action", metric=Metric.FACTORS)]
    grid, plans = Discretisation(nodes=(6, 6)), (5, 15, 25, 35)
    return [trained(AgentSettings(grid=grid, first_plans=plans, model=model)) for model in kinds]


def real_files(folder: Path) -> list[Path]:
    """Small agent files."""
    files = []
    for number, agent in enumerate(real_agents()):
        files.append(folder / f"real-{number}.optimist")
        save_agent(agent, files[-1])
    return files


def taken_apart(file: Path) -> tuple[Arrays, dict[str, Any]]:
    with safe_open(file, framework="numpy") as opened:
        arrays = {name: np.array(opened.get_tensor(name)) for name in opened.keys()}  # noqa: SIM118
        document = json.loads(opened.metadata()["optimist"])
    del document["checksums"], document["sha256"]
    return arrays, document


def put_together(file: Path, arrays: Arrays, document: Any, text: str | None = None) -> Path:
    """An agent file with right checksums; `text` instead of the document where JSON cannot be dumped."""
    arrays = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    if text is None and isinstance(document, dict):
        document = document | {"checksums": {name: _checksum(array) for name, array in arrays.items()}}
        document["sha256"] = _digest(_canonical(document))
    file.write_bytes(save(arrays, metadata={"optimist": json.dumps(document) if text is None else text}))
    return file


def load(file: Path) -> object:
    return load_agent(
        file, TASK, lambda settings, seed: GPRMaxAgent(TASK, parse_settings(settings), seed=seed)
    )


# --- changes of a document ---


def paths_of(value: Any, at: Path_ = ()) -> Iterator[Path_]:
    """Every place in a document."""
    if at:
        yield at
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield from paths_of(item, (*at, key))


def value_at(document: Any, path: Path_) -> Any:
    for part in path:
        document = document[part]
    return document


def with_value(document: Any, path: Path_, value: Any) -> Any:
    changed = deepcopy(document)
    value_at(changed, path[:-1])[path[-1]] = value
    return changed


def deleted(document: Any, path: Path_) -> Any:
    changed = deepcopy(document)
    del value_at(changed, path[:-1])[path[-1]]
    return changed


SIGNED = {
    "target_mean",
    "expected",
    "low",
    "high",
    "leaving",
    "optimistic_value",
}  # a sign says nothing there
OPEN = {"first_plans", "drifts", "unexplained"}  # lists that may have another length


def changes(document: Any, path: Path_) -> Iterator[tuple[str, Any]]:
    """Everything that is done to one place: a name, and the document after it."""
    value, last = value_at(document, path), path[-1]
    whole = isinstance(value, int) and not isinstance(value, bool)
    real = isinstance(value, float)
    if isinstance(last, str):
        yield "delete", deleted(document, path)
    retyped = [[], {}, "x", "1", 1.5, True] if value is None else [{"x": value}, [value], "nonsense"]
    yield "retype", with_value(document, path, retyped[0])
    yield "nest", with_value(document, path, retyped[1])
    if not isinstance(value, str):
        yield "word", with_value(document, path, retyped[2])
    if whole or real:
        for name, number in (("NaN", np.nan), ("infinite", np.inf), ("text", str(value))):
            yield name, with_value(document, path, number)
        if last not in SIGNED or whole:
            yield "negative", with_value(document, path, -abs(value) - 1)
    if whole:
        yield "huge", with_value(document, path, 10**40)
        yield "larger than any", with_value(document, path, 10**4000)
        yield "bool", with_value(document, path, bool(value))
        yield "fraction", with_value(document, path, value + 0.5)
    if isinstance(value, bool):
        yield "number", with_value(document, path, int(value))
    if isinstance(value, dict):
        yield "more", with_value(document, path, value | {"\u202e\x1b[2J": 1})
        yield "emptied", with_value(document, path, {})
    if isinstance(value, list) and not OPEN & {str(part) for part in path}:
        yield "longer", with_value(document, path, [*value, *(value[-1:] or [1])])
        yield "shorter", with_value(document, path, value[:-1])
        yield "very long", with_value(document, path, [0.5] * 10_000)


def is_attack(change: str, document: Any, path: Path_, changed: Any) -> bool:
    """Not where the new document says the same, or is as good as the old."""
    value = value_at(document, path)
    if changed == document:
        return False
    if change == "emptied" and not value:
        return False
    # null is allowed where a number is not finite; true is no number, but {} of nothing is nothing
    return not (change in ("bool", "number") and type(value) is type(value_at(changed, path)))


# --- changes of arrays ---


def array_changes(arrays: Arrays, name: str) -> Iterator[tuple[str, Arrays]]:
    array = arrays[name]
    rest = {other: value for other, value in arrays.items() if other != name}
    yield "without it", rest
    yield "renamed", rest | {f"{name}\u0301 ☃": array}
    yield "another dtype", rest | {name: array.astype(np.float32 if array.dtype != np.float32 else np.int8)}
    yield "one more axis", rest | {name: array[np.newaxis]}
    yield "flat number", rest | {name: np.array(array.reshape(-1)[0] if array.size else 0.0)}
    yield "empty", rest | {name: array[:0]}
    yield "longer", rest | {name: np.concatenate([array, array[-1:]])}
    yield "shorter", rest | {name: array[:-1]}
    yield "long", rest | {name: np.resize(array, (10_000, *array.shape[1:]))}
    yield "beside another", arrays | {f"{name}.more": array}
    if array.dtype == np.float64:
        for word, number in (("NaN", np.nan), ("infinite", -np.inf)):
            bad = array.copy()
            bad.reshape(-1)[-1] = number
            yield word, rest | {name: bad}
    if "axis." in name or name.endswith("scales"):
        yield "backwards", rest | {name: -array[::-1]}
        yield "beyond the box", rest | {name: array * 3.0 - 1e6}
    if name.endswith((".parameters", ".projection", ".precisions")):
        yield "others than were found", rest | {name: array + 0.25}
    if name.endswith("actions"):
        yield "an action too many", rest | {name: array + TASK.n_actions}
        yield "negative", rest | {name: array - TASK.n_actions}
    if name.endswith("terminated"):
        yield "ended twice", rest | {name: np.ones_like(array), "transitions.truncated": np.ones_like(array)}


# --- agent files ---


def seeded_files(folder: Path, stream: random.Random) -> Iterator[Case]:
    """One change each, endlessly."""
    parts = [taken_apart(file) for file in real_files(folder)]
    number = 0
    while True:
        arrays, document = stream.choice(parts)
        if stream.random() < 0.35:
            name = stream.choice(sorted(arrays))
            change, changed_arrays = stream.choice(list(array_changes(arrays, name)))
            title, changed = f"array {name}: {change}", document
        else:
            path = stream.choice(list(paths_of(document)))
            change, changed = stream.choice(list(changes(document, path)))
            if not is_attack(change, document, path, changed):
                continue
            title, changed_arrays = f"header {'.'.join(map(str, path))}: {change}", arrays
        number += 1
        file = put_together(folder / f"seeded-{number}.optimist", changed_arrays, changed)
        yield Case(title, lambda file=file: load(file), str(file))  # type: ignore[misc]


def twice(text: str, key: str) -> str:
    """The same JSON with a key said twice."""
    return text.replace(f'"{key}":', f'"{key}": null, "{key}":', 1)


def deep_list(depth: int) -> list[Any]:
    made: list[Any] = []
    for _ in range(depth):
        made = [made]
    return made


def made_files(folder: Path) -> Iterator[Case]:
    """Those that no single change makes."""
    arrays, document = taken_apart(real_files(folder)[0])
    sums = {name: _checksum(array) for name, array in arrays.items()}
    whole = document | {"checksums": sums}
    whole["sha256"] = _digest(_canonical(whole))
    knowledge = document["knowledge"]
    texts = {
        "nothing": "",
        "null": "null",
        "a list": "[]",
        "deep lists": "[" * DEEP + "]" * DEEP,
        "deep tables": '{"a":' * DEEP + "1" + "}" * DEEP,
        "deep in the settings": json.dumps(whole).replace(
            '"settings": {', '"settings": {"a": ' + "[" * 500 + "]" * 500 + ", "
        ),
        "a key twice": twice(json.dumps(whole), "seed"),
        "a key twice, deep": twice(json.dumps(whole), "residual"),
        "a number of 5,000 digits": json.dumps(whole).replace('"seed": 5', f'"seed": {"9" * 5000}'),
        "17 million characters": json.dumps(whole | {"more": "x" * 17_000_000}),
        "a million keys": json.dumps(whole | {"more": {str(k): k for k in range(100_000)}}),
        "half a surrogate": json.dumps(whole).replace('"seed": 5', '"seed": "\\ud800"'),
        "NUL": json.dumps(whole).replace('"seed": 5', '"seed": "\\u0000"'),
        "cut off": json.dumps(whole)[:-5],
        "checksums of nothing": json.dumps(document | {"checksums": {}, "sha256": "0" * 64}),
        "checksums a list": json.dumps(document | {"checksums": [], "sha256": []}),
    }
    for name, text in texts.items():
        file = put_together(folder / f"text-{name}.optimist", arrays, None, text)
        yield Case(f"text: {name}", lambda file=file: load(file), str(file))  # type: ignore[misc]
    first = ("knowledge", "model", "regressors", 0, 0)
    both = knowledge["model"]["regressors"] * 2
    upside_down = {"expected": 0.0, "low": 1.0, "high": -1.0}
    known = {
        "knowledge is empty": {},
        "settled without drifts": knowledge | {"settled": True, "drifts": []},
        "more transitions than there are": knowledge | {"n_transitions": 41},
        "an interval upside down": knowledge | {"expected": upside_down},
        "it left, and nobody did": knowledge | {"leaving": -3.0},
    }
    places: dict[str, tuple[Path_, Any]] = {
        "a process too many": (first[:3], both),
        "no process at all": (first[:3], [None]),
        "a target scale of 1e300": ((*first, "target_scale"), 1e300),
        "a target mean of 1e300": ((*first, "target_mean"), 1e300),
        "another noise": ((*first, "noise_variance"), 0.5),
        "more data than were seen": ((*first, "n_data"), 41),
        "a depth never chosen": (("knowledge", "layout", "depth"), 2),
        "a depth without end": (("knowledge", "layout", "depth"), 40),
        "a hold never chosen": (("knowledge", "layout", "hold"), 7),
        "polished where nodes are fixed": (("knowledge", "layout", "polished"), True),
        "a placement of nobody": (("knowledge", "layout", "placement"), "../../etc"),
        "a grid for no memory": (("settings", "grid", "nodes"), [10**6, 10**6]),
        "a budget for no memory": (("settings", "grid"), {"budget": 10**18}),
        "another learner": (("settings", "model", "learner"), "os.system"),
    }
    documents = {
        "task is empty": document | {"task": {}},
        "task says more": document | {"task": document["task"] | {"noise": 0.0}},
        "no knowledge but its arrays": document | {"knowledge": None},
        "a seed of 2^200": document | {"seed": 2**200},
        **{name: document | {"knowledge": changed} for name, changed in known.items()},
        **{name: with_value(document, *place) for name, place in places.items()},
    }
    for name, changed in documents.items():
        file = put_together(folder / f"made-{name}.optimist", arrays, changed)
        yield Case(f"made: {name}", lambda file=file: load(file), str(file))  # type: ignore[misc]
    q_values = arrays["knowledge.q_values"]
    others = {
        "Q-values of other actions": arrays | {"knowledge.q_values": q_values[:, :2]},
        "Q-values of other nodes": arrays | {"knowledge.q_values": q_values[:30]},
        "an axis of other nodes": arrays | {"knowledge.axis.0": np.linspace(-1.2, 0.5, 7)},
        "nodes that do not increase": arrays | {"knowledge.axis.0": np.array([-1.2, 0, 0, 0.1, 0.2, 0.5])},
        "half of the columns": {name: arrays[name] for name in arrays if not name.endswith("rewards")},
        "no arrays": {},
        "an array of its own": arrays | {"__reduce__": np.zeros(3)},
        "states of other sizes": arrays | {"transitions.states": np.zeros((40, 3))},
    }
    for name, changed in others.items():
        file = put_together(folder / f"arrays-{name}.optimist", changed, document)
        yield Case(f"made: {name}", lambda file=file: load(file), str(file))  # type: ignore[misc]


# --- runs ---


def real_run(folder: Path) -> Path:
    small = AgentSettings(grid=Discretisation(nodes=(6, 6)), first_plans=(5,))
    with GPRMax(SystemEnvironment("mountain-car"), settings=small, seed=5, run=folder / "run") as learner:
        learner.learn(6)
    return folder / "run"


def header_of(run: Path) -> dict[str, Any]:
    connection = sqlite3.connect(run / "run.sqlite")
    document: dict[str, Any] = json.loads(connection.execute("SELECT document FROM header").fetchone()[0])
    connection.close()
    return document


def with_header(run: Path, header: object) -> Path:
    """The same run with another header, put in by somebody who can make a chain."""
    connection = sqlite3.connect(run / "run.sqlite")
    table, previous = TABLES["header"], genesis("header")
    with connection:
        count = connection.execute("SELECT count(*) FROM header").fetchone()[0]
        for number in range(1, count + 1):
            with suppress(ValueError):  # no text, and no digest is right
                previous = link(previous, table.kinds, (header,))
            row = (header, previous, number)
            connection.execute("UPDATE header SET document = ?, digest = ? WHERE number = ?", row)
        connection.execute("UPDATE chains SET digest = ? WHERE name = 'header'", (previous,))
    connection.close()
    (run / WITNESS).unlink(missing_ok=True)
    return run


def look_at(run: Path) -> object:
    opened, _ = open_run(run, writing=False)
    with opened:
        return opened.num_timesteps


def open_with(run: Path, header: object) -> Try:
    return lambda: look_at(with_header(run, header))


def hostile_runs(folder: Path, stream: random.Random) -> Iterator[Case]:
    """Headers of runs: those made by hand, then one change each, endlessly."""
    run = real_run(folder)
    document = header_of(run)
    text = json.dumps(document)
    made: dict[str, object] = {
        "nothing": "",
        "a number": 7,
        "bytes": b"\xff\xfe",
        "deep lists": "[" * DEEP + "]" * DEEP,
        "deep tables": '{"a":' * DEEP + "1" + "}" * DEEP,
        "a key twice": twice(text, "seed"),
        "17 million characters": json.dumps(document | {"more": "x" * 17_000_000}),
        "task is empty": json.dumps(document | {"task": {}}),
        "an agent of nobody": json.dumps(document | {"agent": "\x1b[31mroot"}),
        "a problem of nobody": json.dumps(document | {"problem": "evil.py:main\n"}),
        "settings of another agent": json.dumps(document | {"agent": "sarsa-fine"}),
        "tilings without end": json.dumps(document | {"agent": "sarsa-fine", "settings": {"tilings": [
            {"axes": [0, 1], "intervals": [8, 8], "tilings": 10**15}], "step_size": 0.5}}),
        "a format of tomorrow": json.dumps(document | {"format_version": 99}),
        "a format that is true": json.dumps(document | {"format_version": True}),
    }  # fmt: skip
    for name, header in made.items():
        yield Case(f"run made: {name}", open_with(run, header), str(run))
    while True:
        path = stream.choice(list(paths_of(document)))
        change, changed = stream.choice(list(changes(document, path)))
        missing = path[0] == "settings" and change in ("delete", "emptied")  # an older version said less
        if not missing and path[0] != "format_version" and is_attack(change, document, path, changed):
            title = f"run header {'.'.join(map(str, path))}: {change}"
            yield Case(title, open_with(run, json.dumps(changed)), str(run))


# --- settings and campaigns ---

CAMPAIGN = (
    'name = "x"\n[[runs]]\nproblems = ["mountain-car"]\nagents = ["gp-rmax-exp"]\nseeds = 2\nepisodes = 5\n'
)


def hostile_documents(folder: Path) -> Iterator[Case]:
    """Settings and campaigns, made by hand."""
    deep = {
        "deep lists.toml": f"a = {'[' * DEEP}{']' * DEEP}",
        "deep tables.toml": f"a = {'{a = ' * DEEP}1{'}' * DEEP}",
        "dotted.toml": f"{'a.' * 30_000}a = 1",
        "deep lists.json": "[" * DEEP + "]" * DEEP,
        "deep tables.json": '{"a":' * DEEP + "1" + "}" * DEEP,
        "twice.json": '{"replan_every": 3, "replan_every": 4}',
        "list.json": "[]",
        "large.toml": "#" * 2_000_000,
        "nan.toml": "[planning]\ntolerance = nan\n",
        "inf.toml": "[model]\nrefit_growth = inf\n",
        "inf.json": '{"model": {"refit_growth": 1e999}}',
        "digits.toml": f"replan_every = {'9' * 5000}",
        "digits.json": f'{{"replan_every": {"9" * 5000}}}',
        "escape.toml": '"\\u001b[2J" = 1\n',
        "date.toml": "replan_every = 2020-01-01\n",
        "bytes.toml": "\ufffe\x00",
        "tables.toml": "[[runs]]\n" * 10_000,
        "many dots.toml": "\n".join(f"a{k}.{'a.' * 95}a = 1" for k in range(400)),
    }
    settings = {
        "nodes.toml": "[grid]\nnodes = [1, 2]\n",
        "hold.toml": "[grid]\nhold = 0\n",
        "plans.json": '{"first_plans": "all"}',
        "model.json": '{"model": [1]}',
        "learner.toml": '[model]\nlearner = "os.system"\n',
        "table.toml": "grid = 3\n",
    }
    campaigns = {
        "seeds.toml": CAMPAIGN.replace("seeds = 2", "seeds = 1000000000000"),
        "many.toml": CAMPAIGN.replace('["mountain-car"]', str(["mountain-car"] * 60_000)),
        "runs.toml": CAMPAIGN + CAMPAIGN[CAMPAIGN.index("[[runs]]") :] * 3,
        "seed.toml": CAMPAIGN.replace("seeds = 2", f"seeds = [{10**60}]"),
        "name.toml": CAMPAIGN.replace('"x"', '"../../etc"'),
        "long name.toml": CAMPAIGN.replace('"x"', f'"{"x" * 5000}"'),
        "episodes.toml": CAMPAIGN.replace("episodes = 5", "episodes = -1"),
    }
    for name, text in (deep | settings).items():
        yield _document(folder, f"settings {name}", text, lambda file: settings_of("gp-rmax-exp", file=file))
    for name, text in (deep | campaigns).items():
        yield _document(folder, f"campaign {name}", text, read_experiment)


def _document(folder: Path, name: str, text: str, read: Callable[[Path], object]) -> Case:
    file = folder / name
    file.write_text(text, encoding="utf-8")
    return Case(name, lambda: read(file), "")


# --- trying them ---


class Hang(BaseException):
    """It takes too long."""


def outcome(case: Case) -> str:
    """What became of it: refused, or in which way not."""

    def late(*_: object) -> None:
        raise Hang

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(SECONDS)
    try:
        case.attempt()
    except Hang:
        return "hang"
    except (ValidationError, UnicodeError, json.JSONDecodeError) as error:
        return f"raw {type(error).__name__}"
    except (ValueError, RunError) as error:
        said = str(error)
        if "\n" in said or len(said) > LONGEST or "\x1b" in said or case.place not in said:
            return f"no sentence: {said[:200]!r}"
        return "refused"
    except Exception as error:
        return f"raw {type(error).__name__}: {error}"
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
    return "accepted"


def taken(cases: Iterator[Case], count: int) -> Iterator[Case]:
    for _ in range(count):
        case = next(cases, None)
        if case is None:
            return
        yield case


def all_cases(folder: Path, count: int, seed: int) -> Iterator[Case]:
    """So many seeded agent files and as many headers of runs, besides all that are made by hand."""
    for name in ("files", "runs", "documents"):
        (folder / name).mkdir()
    yield from made_files(folder / "files")
    yield from taken(seeded_files(folder / "files", random.Random(seed)), count)
    yield from taken(hostile_runs(folder / "runs", random.Random(seed)), count)
    yield from hostile_documents(folder / "documents")


def main() -> None:
    """Try them all; exit code 1 when one was not refused."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args()
    counts: Counter[str] = Counter()
    with TemporaryDirectory() as name:
        for case in all_cases(Path(name), chosen.cases, chosen.seed):
            found = outcome(case)
            counts[found.split(":")[0]] += 1
            if found != "refused":
                print(f"{case.name}: {found}", file=sys.stderr)
    print(f"{counts.total()} hostile documents: {dict(counts)}")
    sys.exit(set(counts) != {"refused"})


if __name__ == "__main__":
    main()

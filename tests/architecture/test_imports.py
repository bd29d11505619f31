"""Rules that import-linter cannot say; what agents may see has a file of its own (`test_rooms`)."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.architecture.rooms import Function, functions_of, module_of, name_of, parsed, room_of, sources

ROOT = Path(__file__).parents[2]
FILES = sources()
EVERY_FILE = pytest.mark.parametrize("path", FILES)
MOST_LINES = 400  # of a module
MOST_LINES_OF_A_FUNCTION = 60


def printed_by(program: str) -> list[str]:
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return ran.stdout.splitlines()


def test_importing_the_package_loads_nothing_heavy() -> None:
    program = "import sys, optimist; print([m for m in ('numba', 'matplotlib', 'typer') if m in sys.modules])"
    assert printed_by(program) == ["[]"]


def test_planning_loads_no_matplotlib_and_no_environment() -> None:
    program = (
        "import sys, optimist\n"
        "before = set(sys.modules)\n"
        "import optimist.planning, optimist.systems.system\n"
        "optimist.plan\n"
        "news = set(sys.modules) - before\n"
        "print([m for m in news if m.startswith(('matplotlib', 'gymnasium', 'optimist.environments'))])"
    )
    assert printed_by(program) == ["[]"]


def test_the_command_starts_without_compiling_and_without_what_only_learning_needs() -> None:
    """Whoever installs it and asks for help must not wait for a compiler."""
    program = (
        "import sys, optimist.cli.main\n"
        "loaded = {m[17:] for m in sys.modules if m.startswith('optimist.systems.')}\n"
        "print(sorted(loaded - {'system', 'drawing'}))\n"
        "from optimist.agents.sarsa import run_episodes\n"
        "from optimist.systems import SYSTEMS\n"
        "functions = [run_episodes, *(f for s in SYSTEMS.values() for f in (s.step, s.outcome))]\n"
        "print([f.signatures for f in functions if f.signatures])\n"
        "print([m for m in ('scipy.spatial', 'scipy.optimize', 'matplotlib', 'dask') if m in sys.modules])"
    )
    assert printed_by(program) == ["[]", "[]", "[]"]


def test_no_source_file_is_hidden_from_git() -> None:
    """A package that .gitignore swallows is there on this machine and nowhere else."""
    if not (ROOT / ".git").exists():
        pytest.skip("not a git checkout")
    tests = sorted(file for file in (ROOT / "tests").rglob("*") if "__pycache__" not in file.parts)
    files = [f"src/optimist/{path}" for path in FILES]
    files += [str(file.relative_to(ROOT)) for file in tests if file.is_file()]  # their data, too
    ran = subprocess.run(
        ["git", "check-ignore", "--no-index", "--stdin"],
        input="\n".join(files),
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.stdout.split() == []


# --- size ---


@EVERY_FILE
def test_modules_are_documented_and_short(path: str) -> None:
    assert ast.get_docstring(parsed(FILES[path]))
    assert len(FILES[path].splitlines()) <= MOST_LINES


def lines_of(function: Function) -> int:
    """Lines of what it does; what it takes and what is said about it are no burden."""
    body = [function.body] if isinstance(function, ast.Lambda) else function.body
    if len(body) > 1 and isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant):
        body = body[1:]
    assert function.end_lineno is not None
    return function.end_lineno - body[0].lineno + 1


def long_functions(text: str) -> list[str]:
    return [
        f"{name_of(function)}: {lines_of(function)} lines"
        for function in functions_of(parsed(text))
        if lines_of(function) > MOST_LINES_OF_A_FUNCTION
    ]


@EVERY_FILE
def test_functions_are_short(path: str) -> None:
    """Compiled ones aside: numba does not hand everything from one to another."""
    if room_of(module_of(path)) != "compiled":
        assert long_functions(FILES[path]) == []


def test_a_long_function_is_found() -> None:
    for count, told in ((60, []), (61, ["long: 61 lines"])):
        body = "\n".join(["    a = 1"] * count)
        assert long_functions(f'def long(\n    a,\n):\n    """Text,\n\n    and more."""\n{body}\n') == told
    nested = "def outer():\n    def inner():\n" + "        a = 1\n" * 61
    assert long_functions(nested) == ["outer: 62 lines", "inner: 61 lines"]


@pytest.mark.parametrize("path", [path for path in FILES if path.startswith("compiled/")])
def test_compiled_code_has_no_classes_and_raises_nothing(path: str) -> None:
    tree = parsed(FILES[path])
    assert not [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef | ast.Raise)]


# --- what is known in one place only ---


@EVERY_FILE
def test_only_models_know_which_model_is_learned(path: str) -> None:
    """Everybody else asks a `Model`: another learner needs no change elsewhere."""
    if room_of(module_of(path)) != "models":
        assert "GPDynamics" not in FILES[path]


def branches_on(word: str, text: str) -> list[int]:
    """Lines where something is decided by `word`, whatever its case."""
    return sorted({test.lineno for test in _tests(parsed(text)) if word in ast.unparse(test).lower()})


def _tests(tree: ast.AST) -> Iterator[ast.expr]:
    for node in ast.walk(tree):
        if isinstance(node, ast.If | ast.IfExp | ast.While | ast.Assert):
            yield node.test
        elif isinstance(node, ast.comprehension):
            yield from node.ifs
        elif isinstance(node, ast.Compare):
            yield node
        elif isinstance(node, ast.Match):
            yield node.subject
            for case in node.cases:
                yield from (one.value for one in ast.walk(case.pattern) if isinstance(one, ast.MatchValue))
                yield from (one.cls for one in ast.walk(case.pattern) if isinstance(one, ast.MatchClass))
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith(
            ("isinstance", "issubclass", "startswith", "endswith")
        ):
            yield node


def knows_sarsa(path: str) -> bool:
    """The baseline itself, and the paper that compares with it."""
    return path.startswith(("agents/sarsa", "experiments/sarsa", "paper/", "compiled/"))


@EVERY_FILE
def test_nobody_asks_whether_an_agent_is_sarsa(path: str) -> None:
    """Kinds of agents are a table (`experiments.kinds`), no branches."""
    if not knows_sarsa(path):
        assert branches_on("sarsa", FILES[path]) == []


@pytest.mark.parametrize(
    "text",
    [
        "if agent.startswith('sarsa'):\n    pass",
        "if name in SARSA_AGENTS:\n    pass",
        "n = 1 if isinstance(run, SarsaRun) else 2",
        "names = [n for n in names if 'sarsa' in n]",
        "is_fast = name == 'sarsa-fine'",
        "while not is_sarsa(name):\n    pass",
        "match name:\n    case 'sarsa-fine':\n        pass",
        "match run:\n    case SarsaRun():\n        pass",
        "special = name.startswith('Sarsa')",
    ],
)
def test_a_branch_on_sarsa_is_found(text: str) -> None:
    assert branches_on("sarsa", text)


def test_naming_sarsa_is_no_branch() -> None:
    text = "from x import SARSA_AGENTS\nKINDS = {name: sarsa_kind(name) for name in SARSA_AGENTS}\n'sarsa'"
    assert branches_on("sarsa", text) == []


def uses_of(name: str, text: str) -> list[int]:
    """Lines where an attribute of that name is asked for."""
    return [
        node.lineno
        for node in ast.walk(parsed(text))
        if (isinstance(node, ast.Attribute) and node.attr == name)
        or (isinstance(node, ast.Constant) and node.value == name)
    ]


def definitions_of(name: str, text: str) -> list[int]:
    """Lines where a function of that name begins."""
    return [one.lineno for one in functions_of(parsed(text)) if name_of(one) == name]


def places_of(find: Callable[[str, str], list[int]], name: str) -> set[str]:
    return {path for path, text in FILES.items() if find(name, text)}


def test_whether_an_update_is_due_is_asked_in_one_place() -> None:
    """Learning, resuming and looking at a run must never disagree about it."""
    asked = places_of(uses_of, "due")
    assert "runs/loop.py" in asked
    assert {path for path in asked if room_of(module_of(path)) != "agents"} == {"runs/loop.py"}
    assert len(uses_of("due", FILES["runs/loop.py"])) == 1
    (catch_up,) = [one for one in functions_of(parsed(FILES["runs/loop.py"])) if name_of(one) == "catch_up"]
    assert len(uses_of("due", ast.unparse(catch_up))) == 1
    assert {room_of(module_of(path)) for path in places_of(definitions_of, "due")} == {"agents"}


@pytest.mark.parametrize("text", ["if agent.due:\n    pass", "getattr(agent, 'due')", "x = self._agent.due"])
def test_asking_whether_an_update_is_due_is_found(text: str) -> None:
    assert uses_of("due", text) == [1]

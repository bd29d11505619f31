"""Agents, planner and models never see a true system: without this no sample efficiency is worth anything.

By construction: `rooms` lists what they may see, and a new file is not in the list.
"""

from __future__ import annotations

import ast
import subprocess
import sys

import grimp
import pytest

from optimist.systems import NAMES
from tests.architecture.rooms import (
    AGENTS,
    GROUND,
    NAME,
    ROOMS,
    functions_of,
    imports,
    is_compiled,
    module_of,
    motion_in,
    parsed,
    room_of,
    seen_outside,
    sources,
)

FILES = sources()


def with_changes(changes: dict[str, str]) -> dict[str, str]:
    """The package with more text at the end of some files; a file that is not there is made."""
    return FILES | {path: FILES.get(path, "") + "\n" + text for path, text in changes.items()}


# --- what is imported ---


def test_rooms_see_nothing_outside() -> None:
    assert seen_outside(FILES) == []


def test_every_room_is_there() -> None:
    """Or the list would allow what somebody may make one day."""
    assert {room_of(module_of(path)) for path in FILES} >= ROOMS


@pytest.fixture(scope="module")
def graph() -> grimp.ImportGraph:
    """Of imports, as import-linter has it."""
    return grimp.build_graph(NAME, cache_dir=None)


@pytest.mark.parametrize("room", sorted(AGENTS | GROUND))
def test_everything_that_can_be_reached_from_a_room_is_a_room(room: str, graph: grimp.ImportGraph) -> None:
    reached = graph.find_upstream_modules(f"{NAME}.{room}", as_package=True)
    assert {room_of(module) for module in reached} <= ROOMS


def test_our_graph_of_imports_is_that_of_import_linter(graph: grimp.ImportGraph) -> None:
    """So that what follows proves something about it."""
    for path in FILES:
        ours = {name for name in imports(path, FILES) if name.split(".")[0] == NAME}
        assert ours == graph.find_modules_directly_imported_by(module_of(path)), path


PHYSICS = """
from __future__ import annotations

def moved(x, u):
    return x + 0.1 * u
"""

LEAKS = {
    "a new file beside the rooms": (
        {"physics.py": PHYSICS, "agents/gp_rmax.py": "from optimist.physics import moved"},
        "optimist.agents.gp_rmax imports optimist.physics",
    ),
    "a new package beside the rooms": (
        {"truth/__init__.py": "", "truth/car.py": PHYSICS, "models/drift.py": "import optimist.truth.car"},
        "optimist.models.drift imports optimist.truth.car",
    ),
    "a new file in a package that is no room": (
        {"runs/physics.py": PHYSICS, "planning/planner.py": "from optimist.runs import physics"},
        "optimist.planning.planner imports optimist.runs.physics",
    ),
    "by way of compiled code": (
        {"physics.py": PHYSICS, "compiled/search.py": "from optimist.physics import moved"},
        "optimist.compiled.search imports optimist.physics",
    ),
    "by way of the ground floor": (
        {"task.py": "def cheat():\n    from optimist.systems.pendulum import SYSTEM"},
        "optimist.task imports optimist.systems.pendulum",
    ),
    "a system": (
        {"agents/sarsa.py": "from optimist.systems import find_system"},
        "optimist.agents.sarsa imports optimist.systems",
    ),
    "a system under another name": (
        {"gp/basis.py": "import optimist.systems.mountain_car as features"},
        "optimist.gp.basis imports optimist.systems.mountain_car",
    ),
    "relative": (
        {"agents/sarsa.py": "from ..systems import mountain_car"},
        "optimist.agents.sarsa imports optimist.systems.mountain_car",
    ),
    "relative, of a package": (
        {"agents/__init__.py": "from .. import systems"},
        "optimist.agents imports optimist.systems",
    ),
    "everything there is": (
        {"models/model.py": "from optimist.systems.acrobot import *"},
        "optimist.models.model imports optimist.systems.acrobot",
    ),
    "inside a function": (
        {"planning/solve.py": "def late():\n    if True:\n        import optimist.environments.adapter"},
        "optimist.planning.solve imports optimist.environments.adapter",
    ),
    "for the sake of types": (
        {"agents/agent.py": "if TYPE_CHECKING:\n    from optimist.systems.system import System"},
        "optimist.agents.agent imports optimist.systems.system",
    ),
    "by the front door": (
        {"agents/agent.py": "import optimist"},
        "optimist.agents.agent imports optimist",
    ),
    "by the front door, named": (
        {"agents/agent.py": "from optimist import adapt"},
        "optimist.agents.agent imports optimist",
    ),
    "an environment": (
        {"models/gp_dynamics.py": "import gymnasium"},
        "optimist.models.gp_dynamics imports gymnasium",
    ),
    "an environment's part": (
        {"grid.py": "from gymnasium.envs.classic_control import PendulumEnv"},
        "optimist.grid imports gymnasium.envs.classic_control",
    ),
    "anybody's simulator": (
        {"models/gp_dynamics.py": "import mujoco"},
        "optimist.models.gp_dynamics imports mujoco",
    ),
    "by name": (
        {"agents/agent.py": "import importlib\nimportlib.import_module('optimist.systems')"},
        "optimist.agents.agent imports importlib",
    ),
    "among what is loaded": (
        {"agents/agent.py": "from sys import modules\nmodules['optimist.systems']"},
        "optimist.agents.agent imports sys",
    ),
    "by its address": (
        {"models/drift.py": "from ctypes import CDLL"},
        "optimist.models.drift imports ctypes",
    ),
    "by the back door": (
        {"agents/agent.py": "def late(): return __import__('optimist.systems')"},
        "optimist.agents.agent uses __import__",
    ),
    "in a string": (
        {"agents/agent.py": "exec('import optimist.systems')"},
        "optimist.agents.agent uses exec",
    ),
}


@pytest.mark.parametrize("how", LEAKS)
def test_rule_bites(how: str) -> None:
    """A file with dynamics, wherever it is and however it is let in, is seen."""
    changes, told = LEAKS[how]
    assert seen_outside(with_changes(changes)) == [told]


def test_rule_leaves_others_alone() -> None:
    assert not seen_outside(with_changes({"physics.py": PHYSICS, "runs/loop.py": "import optimist.physics"}))
    assert not seen_outside(with_changes({"agents/other.py": "from optimist.models import Model, drift"}))


# --- what is in the rooms ---


def test_no_room_holds_the_motion_of_a_system() -> None:
    assert motion_in(FILES) == []


WRITTEN = [name.replace("-", "_") for name in NAMES]  # one of them borrows its step


@pytest.mark.parametrize("place", ["compiled/dynamics_{}.py", "agents/{}.py", "{}.py", "runs/{}.py"])
@pytest.mark.parametrize("name", [name for name in WRITTEN if "def step(" in FILES[f"systems/{name}.py"]])
def test_a_system_would_be_found_anywhere_else(name: str, place: str) -> None:
    """The real ones, moved; under other names of what they take as well."""
    text = FILES[f"systems/{name}.py"]
    moved = motion_in({place.format(name): text})
    assert any("takes a state and a control" in one for one in moved)
    assert any("writes number 0 of next_state" in one for one in moved)
    renamed = text.replace("next_state", "y").replace("state", "x").replace("control", "u")
    assert any("writes number 0 of y" in one for one in motion_in({place.format(name): renamed}))
    assert motion_in({f"systems/{name}_too.py": text}) == []


SHAPES = {
    "compiled, returned": (
        {"compiled/car.py": "@njit(cache=True)\ndef ahead(x, u):\n    return x[0] + 0.1 * x[1], x[1] + u[0]"},
        "optimist.compiled.car.ahead tells the numbers of x apart",
    ),
    "compiled, written": (
        {"compiled/car.py": "@njit\ndef ahead(x, u, y):\n    y[0] = x[0] + u"},
        "optimist.compiled.car.ahead writes number 0 of y",
    ),
    "compiled, added up": (
        {"compiled/search.py": "@njit\ndef ahead(x, u):\n    x[-1] += u"},
        "optimist.compiled.search.ahead writes number -1 of x",
    ),
    "of single states": (
        {"planning/car.py": "def ahead(state, control):\n    return state + control"},
        "optimist.planning.car.ahead takes a state and a control",
    ),
    "a method": (
        {"views/car.py": "class Car:\n    def ahead(self, state, control, dt=0.1):\n        return state"},
        "optimist.views.car.ahead takes a state and a control",
    ),
    "of many": (
        {"planning/car.py": "def ahead(states, controls):\n    return states + controls"},
        "optimist.planning.car.ahead takes states and controls",
    ),
    "a lambda": (
        {"experiments/car.py": "ahead = lambda states, controls: states + controls"},
        "optimist.experiments.car.lambda takes states and controls",
    ),
    "by its columns": (
        {"models/car.py": "def ahead(x, u):\n    return np.column_stack([x[:, 0] + u, u])"},
        "optimist.models.car.ahead knows column 0 of x",
    ),
    "by its last axis": (
        {"agents/car.py": "def ahead(x, u):\n    return x[..., 1] + u"},
        "optimist.agents.car.ahead knows column 1 of x",
    ),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_motion_is_known_by_its_shape(shape: str) -> None:
    changes, told = SHAPES[shape]
    assert motion_in(with_changes(changes)) == [told]


# a covariance is an exponential, of angles of their cosines and sines; a deviation is a root of a variance
PROCESSES: dict[str, tuple[set[str], set[float]]] = {
    "compiled/process.py": ({"cos", "exp", "sin", "sqrt"}, {0, 1, 2, 0.5}),
    "compiled/cholesky.py": ({"exp", "sqrt"}, {0, 1, 2, 3, 4, 0.5}),  # four columns at a time
}


def test_compiled_code_computes_no_physics() -> None:
    """It counts, multiplies and adds: no sine, no root, nothing that a law of nature would need."""
    for path, text in FILES.items():
        if room_of(module_of(path)) == "compiled":
            used = {
                node.attr
                for node in ast.walk(parsed(text))
                if isinstance(node, ast.Attribute) and ast.unparse(node.value) in ("np", "numpy", "math")
            }
            assert "math" not in imports(path, FILES)
            more = PROCESSES[path][0] if path in PROCESSES else set()
            plain = {"argmax", "argsort", "empty", "floor", "full", "inf", "int32", "int64", "uint32"}
            assert used <= plain | more, path


@pytest.mark.parametrize("path", PROCESSES)
def test_compiled_processes_know_no_numbers_but_those_they_are_given(path: str) -> None:
    """A law of nature has constants; the one of a squared exponential is a half."""
    numbers = {
        node.value
        for node in ast.walk(parsed(FILES[path]))
        if isinstance(node, ast.Constant) and type(node.value) in (int, float)
    }
    assert numbers <= PROCESSES[path][1]


def test_compiled_code_is_found() -> None:
    """Or the rules above would hold of nothing."""
    count = sum(is_compiled(function) for text in FILES.values() for function in functions_of(parsed(text)))
    assert count > 30


# --- what is loaded ---


def loaded_by(*modules: str) -> set[str]:
    """All modules of a fresh interpreter that imports these, and everything they import."""
    program = f"import sys, {', '.join(modules)}; print(*sys.modules)"
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return set(ran.stdout.split())


@pytest.fixture(scope="module")
def bare() -> set[str]:
    """What is loaded by whoever imports the package and no more."""
    return loaded_by(NAME)


def test_importing_the_package_loads_no_system_and_nothing_heavy(bare: set[str]) -> None:
    ours = {name for name in bare if name.split(".")[0] == NAME}
    assert ours == {
        "optimist",
        "optimist.environments",
        "optimist.environments.registration",
        "optimist.starting",
        "optimist.systems",
    }
    heavy = {"dask", "joblib", "matplotlib", "numba", "pydantic", "rich", "scipy", "typer"}
    assert not heavy & bare


@pytest.mark.parametrize("path", ["__init__.py", "environments/__init__.py", "systems/__init__.py"])
def test_what_everybody_loads_holds_no_system(path: str) -> None:
    """Or what is allowed there would open a door."""
    tree = parsed(FILES[path])
    loaded = {
        name
        for node in tree.body  # what is imported when it is loaded: not for types, not when asked
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in ([node.module] if isinstance(node, ast.ImportFrom) else [one.name for one in node.names])
    }
    assert loaded <= {
        "__future__", "collections", "importlib", "typing", "optimist.environments.registration",
        "optimist.starting",
    }  # fmt: skip
    assert not [function for function in functions_of(tree) if is_compiled(function)]


def test_loading_all_rooms_loads_neither_a_system_nor_an_environment(bare: set[str]) -> None:
    """Not even through what they import; what all of them together do not load, none of them does."""
    modules = sorted(module_of(path) for path in FILES if room_of(module_of(path)) in ROOMS)
    assert {room_of(module) for module in modules} == ROOMS
    loaded = loaded_by(*modules)
    assert set(modules) <= loaded
    news = loaded - bare
    forbidden = ("optimist.systems", "optimist.environments", "gymnasium")
    assert not {name for name in news if name.startswith(forbidden)}
    ours = {room_of(name) for name in news if name.split(".")[0] == NAME}
    assert ROOMS - GROUND <= ours <= ROOMS


def test_others_do_load_them(bare: set[str]) -> None:
    """So that what is looked for above can be found."""
    news = loaded_by("optimist.experiments.problems") - bare
    assert {"optimist.systems.system", "optimist.environments.system_environment"} <= news

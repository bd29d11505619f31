"""What agents may see, as a list of rooms: what is not in it is out of their sight, whatever it is called.

Two things make that sure. The rooms import each other and a few libraries, and nothing else (`seen_outside`);
and no room holds the motion of a system, since a system's coordinates have numbers, and what is general loops
over them (`motion_in`). Both work on text, so that they can be tried on what is not there.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

import optimist

SOURCE = Path(optimist.__file__).parent
NAME = "optimist"

# Who must not see a true system, and the ground floor they stand on.
AGENTS = frozenset({"agents", "planning", "models", "gp"})
GROUND = frozenset(
    {
        "arrays",
        "box",
        "controls",
        "discretisation",
        "documents",
        "filtering",
        "found",
        "given",
        "grid",
        "shown",
        "threads",
        "steps",
        "task",
        "transitions",
    }
)
ROOMS = AGENTS | GROUND | {"compiled"}
SYSTEMS = "systems"

# What comes from elsewhere. Nothing among it can load a module by name, or knows an environment.
LIBRARIES = frozenset({"llvmlite", "numba", "numpy", "pydantic", "scipy", "threadpoolctl"})
STANDARD = frozenset(
    {
        "__future__",
        "base64",
        "collections",
        "concurrent",
        "contextlib",
        "dataclasses",
        "enum",
        "functools",
        "itertools",
    }
    | {
        "html",
        "json",
        "math",
        "os",
        "pathlib",
        "re",
        "struct",
        "threading",
        "time",
        "tomllib",
        "traceback",
        "types",
        "typing",
        "zlib",
    }
)
# One file calls functions by their address, those of LAPACK: ctypes could call anything.
ALONE = {"optimist.gp.lapack": frozenset({"ctypes"})}
DOORS = frozenset({"__builtins__", "__import__", "__loader__", "__spec__", "compile", "eval", "exec"})

Sources = Mapping[str, str]  # path within the package, such as agents/gp_rmax.py -> text
Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


def sources() -> dict[str, str]:
    """Of the package as it is."""
    files = sorted(SOURCE.rglob("*.py"))
    return {file.relative_to(SOURCE).as_posix(): file.read_text("utf-8") for file in files}


def module_of(path: str) -> str:
    """What a file is imported as."""
    parts = [NAME, *path.removesuffix(".py").split("/")]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def room_of(module: str) -> str:
    """The part of our package that a module of it is in; of the package itself, nothing."""
    return module.split(".")[1] if "." in module else ""


parsed = cache(ast.parse)


def imports(path: str, files: Sources) -> set[str]:
    """Modules that a file imports, wherever in it; of our own, exactly which."""
    modules = {module_of(one) for one in files}
    package = module_of(path) if path.endswith("__init__.py") else module_of(path).rpartition(".")[0]
    found = set()
    for node in ast.walk(parsed(files[path])):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            for alias in node.names:
                whole = f"{base}.{alias.name}"
                found.add(whole if whole in modules else base)
    return found


def seen_outside(files: Sources) -> list[str]:
    """Who in the rooms sees what is not in them: one sentence each, and none when all is well."""
    told = []
    for path, text in files.items():
        module = module_of(path)
        if room_of(module) not in ROOMS:
            continue
        for name in sorted(imports(path, files)):
            ours = name == NAME or name.startswith(f"{NAME}.")
            if (ours and room_of(name) not in ROOMS) or (
                not ours and name.split(".")[0] not in LIBRARIES | STANDARD | ALONE.get(module, frozenset())
            ):
                told.append(f"{module} imports {name}")
        names = {node.id for node in ast.walk(parsed(text)) if isinstance(node, ast.Name)}
        told += [f"{module} uses {door}" for door in sorted(names & DOORS)]
    return told


def motion_in(files: Sources) -> list[str]:
    """Functions outside of systems that look like the motion of one: one sentence each."""
    told = []
    for path, text in files.items():
        module = module_of(path)
        room = room_of(module)
        if room == SYSTEMS:
            continue
        for function in functions_of(parsed(text)):
            name = f"{module}.{name_of(function)}"
            first = parameters(function)[:2]
            if first == ["state", "control"]:
                told.append(f"{name} takes a state and a control")
            if first == ["states", "controls"] and room not in ("models", "task"):  # learned; a reward
                told.append(f"{name} takes states and controls")
            numbered = coordinates(function)
            if room in ROOMS:
                told += [f"{name} knows column {k} of {x}" for x, k in sorted(numbered["columns"])]
            if is_compiled(function):
                told += [f"{name} writes number {k} of {x}" for x, k in sorted(numbered["written"])]
                used = defaultdict(set)
                for x, k in numbered["written"] | numbered["read"]:
                    used[x].add(k)
                told += [f"{name} tells the numbers of {x} apart" for x in sorted(used) if len(used[x]) > 1]
    return told


def functions_of(tree: ast.AST) -> Iterator[Function]:
    """All of them, nested ones too."""
    return (node for node in ast.walk(tree) if isinstance(node, Function))


def name_of(function: Function) -> str:
    """What it is called, if it is called anything."""
    return "lambda" if isinstance(function, ast.Lambda) else function.name


def parameters(function: Function) -> list[str]:
    """Positional ones, without the object itself."""
    names = [one.arg for one in (*function.args.posonlyargs, *function.args.args)]
    return names[1:] if names[:1] in (["self"], ["cls"]) else names


def is_compiled(function: Function) -> bool:
    """Whether numba compiles it."""
    above = [] if isinstance(function, ast.Lambda) else function.decorator_list
    return any("jit" in ast.unparse(one) for one in above)


def coordinates(function: Function) -> dict[str, set[tuple[str, int]]]:
    """Numbered parts of its parameters: x[k] it reads or writes, and columns x[:, k] or x[..., k]."""
    mine = {*parameters(function), *(one.arg for one in function.args.kwonlyargs)}
    found: dict[str, set[tuple[str, int]]] = {"read": set(), "written": set(), "columns": set()}
    for node in ast.walk(function):
        if not (
            isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name) and node.value.id in mine
        ):
            continue
        number, kind = _number(node.slice), "written" if isinstance(node.ctx, ast.Store) else "read"
        if isinstance(node.slice, ast.Tuple) and _is_all(node.slice.elts[0]):
            number, kind = _number(node.slice.elts[-1]), "columns"
        if number is not None:
            found[kind].add((node.value.id, number))
    return found


def _is_all(node: ast.expr) -> bool:
    """`:` or `...`"""
    return isinstance(node, ast.Slice) or (isinstance(node, ast.Constant) and node.value is ...)


def _number(node: ast.expr) -> int | None:
    try:
        value = ast.literal_eval(node)
    except ValueError:
        return None
    return value if type(value) is int else None

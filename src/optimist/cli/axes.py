"""Numbers per axis, and which two axes to draw, as they are said on the command line."""

from __future__ import annotations

from typing import Annotated

import numpy as np
import typer

from optimist.experiments.problems import Problem

FIRST_TWO = "0,1"
AXES = "Which two axes to draw, such as 0,2; the others stay at the start."
Axes = Annotated[str, typer.Option(metavar="I,J", help=AXES)]


def numbers(option: str, text: str, count: int, *, whole: bool) -> list[float]:
    """So many numbers, one per axis."""
    kind = "whole number" if whole else "number"
    try:
        found = [float(int(part) if whole else float(part)) for part in text.split(",")]
    except (ValueError, OverflowError):
        found = []
    if len(found) != count or not np.isfinite(found).all():
        example = ",".join(["100" if whole else "1.5"] * count)
        raise ValueError(f"{option} must be one {kind} per axis ({count}), such as {example}; got {text!r}.")
    return found


def two_axes(problem: Problem, text: str) -> tuple[int, int] | None:
    """Which two to draw; None where there is but one."""
    n_dims = problem.task.box.n_dims
    if n_dims == 1:
        if text != FIRST_TWO:
            raise ValueError(f"--axes must be left out for {problem.name}, which has one axis; got {text!r}.")
        return None
    parts = text.split(",")
    found = [int(part) for part in parts if part.strip().isdigit()] if len(parts) == 2 else []
    if len(found) != 2 or found[0] == found[1] or max(found) >= n_dims:
        raise ValueError(f"--axes must be two different axes from 0 to {n_dims - 1}; got {text!r}.")
    return found[0], found[1]

"""A share of kills, full disks, second writers and random systems (`make torture` tries hundreds of each)."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.torture import systems


@pytest.mark.parametrize(("torture", "counts"), [("crashes", ("0", "2", "2")), ("writers", ("0", "3"))])
def test_nothing_is_lost_doubled_or_mixed(torture: str, counts: tuple[str, ...]) -> None:
    """In a process of its own: it is forked, and this one has threads."""
    ran = subprocess.run(
        [sys.executable, "-m", f"tests.torture.{torture}", *counts],
        capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    assert ran.stderr == ""
    assert ran.returncode == 0
    assert ran.stdout.count(" | 0 |\n") >= 1


@pytest.mark.parametrize("number", range(10))
def test_random_systems_are_learned_within_bounds(number: int) -> None:
    assert systems.wrongs(number) == []

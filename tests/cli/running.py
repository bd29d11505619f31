"""Running the real command, in a process of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

Say = Callable[..., tuple[int, str, str]]  # arguments -> exit code, output, errors
SayJson = Callable[..., dict[str, Any]]  # arguments -> the one object that is printed


def heed_ctrl_c() -> None:
    """For a new process: jobs in the background are started deaf to it."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def run(
    *arguments: str, cwd: Path | None = None, env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """The command; `env` comes on top of this process's environment."""
    return subprocess.run(
        [sys.executable, "-m", "optimist", *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
        cwd=cwd,
        env=os.environ | (env or {}),
    )


def only_object(out: str) -> dict[str, Any]:
    assert out.count("\n") == 1  # one object and nothing else
    result: dict[str, Any] = json.loads(out)
    return result


def require_refused(answer: tuple[int, str, str]) -> str:
    """Bad input: exit code 2, one line that begins and ends as they all do; which."""
    code, out, err = answer
    assert code == 2
    assert out == ""
    assert err.startswith("optimist: ")
    assert err.count("\n") == 1
    assert err.endswith(".\n")
    return err

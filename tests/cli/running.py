"""Running the real command, in a process of its own."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

Say = Callable[..., tuple[int, str, str]]  # arguments -> exit code, output, errors


def heed_ctrl_c() -> None:
    """For a new process: jobs in the background are started deaf to it."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def run(*arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "optimist", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=300, cwd=cwd)


def run_json(*arguments: str) -> dict[str, Any]:
    ran = run(*arguments, "--json")
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.count("\n") == 1  # one object and nothing else
    result: dict[str, Any] = json.loads(ran.stdout)
    return result

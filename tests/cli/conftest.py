"""The command in this process."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from optimist.cli.main import main
from tests.cli.running import Say, SayJson, only_object


@pytest.fixture
def say(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Say:
    """The command, quickly: the same `main`, in this process. Exit code, output, errors."""

    def call(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setenv("OPTIMIST_THREADS", "1")
        monkeypatch.setattr(sys, "argv", ["optimist", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
        out, err = capsys.readouterr()
        code = ended.value.code
        return (code if isinstance(code, int) else 0), out, err

    return call


@pytest.fixture
def say_json(say: Say) -> SayJson:
    """The same; the one object it prints."""

    def call(*arguments: str) -> dict[str, Any]:
        code, out, err = say(*arguments, "--json")
        assert (code, err) == (0, "")
        return only_object(out)

    return call

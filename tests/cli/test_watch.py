"""`optimist watch`, `optimist report` and `optimist learn --watch`, as processes."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from optimist.views.page.report import report_data
from optimist.views.report_figure import draw_report
from tests.cli.running import Say, heed_ctrl_c, run
from tests.runs.recording import learned

posix = pytest.mark.skipif(os.name == "nt", reason="needs POSIX signals")


@pytest.fixture(scope="module")
def short(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return learned(tmp_path_factory.mktemp("short") / "run", steps=30)


def asked(url: str) -> Any:
    with urllib.request.urlopen(url, timeout=30.0) as answer:
        return json.loads(answer.read())


@posix
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_watch_says_where_and_ends_when_told(short: Path, number: signal.Signals) -> None:
    command = [sys.executable, "-m", "optimist", "watch", str(short), "--port", "0", "--json"]
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=heed_ctrl_c,  # noqa: PLW1509
    ) as server:
        assert server.stdout is not None
        assert server.stderr is not None
        url = json.loads(server.stdout.readline())["url"]
        assert url.startswith("http://127.0.0.1:")
        assert asked(f"{url}api/run")["steps"]["count"] == 30
        server.send_signal(number)
        assert server.wait(30.0) in (0, 130, -signal.SIGTERM)
        assert server.stdout.read() == ""
        assert "Traceback" not in server.stderr.read()


def test_watch_refuses_what_it_cannot_serve(say: Say, short: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for arguments, word in (
        ([str(tmp_path / "file")], "must be a directory"),
        ([""], "DIR must name a directory"),
        ([str(short), "--port", "70000"], "--port"),
        ([str(short), "--host", "no such host.example"], "--host must be an address"),
    ):
        code, _, errors = say("watch", *arguments)
        assert code == 2, errors
        assert word in errors
        assert errors.count("\n") == 1


def test_a_report_is_one_file_and_pictures_are_made_on_request(say: Say, short: Path, tmp_path: Path) -> None:
    files = {name: str(tmp_path / f"report.{name}") for name in ("html", "png", "pdf")}
    code, output, errors = say(
        "report", str(short), "--out", files["html"], "--png", files["png"], "--pdf", files["pdf"], "--json"
    )
    assert code == 0, errors
    assert json.loads(output) == {"file": files["html"], "png": files["png"], "pdf": files["pdf"]}
    text = Path(files["html"]).read_text("utf-8")
    assert "connect-src 'none'" in text
    for word in ("http://", "https://", "@import", " src="):
        assert word not in text.replace("http://www.w3.org/2000/svg", ""), word
    assert Path(files["png"]).read_bytes().startswith(b"\x89PNG")
    assert Path(files["pdf"]).read_bytes().startswith(b"%PDF")


def test_a_report_of_a_sweep_compares_its_runs_and_says_which_cannot_be_read(
    say: Say, short: Path, tmp_path: Path
) -> None:
    root = tmp_path / "sweep"
    for name in ("a", "b", "torn"):
        shutil.copytree(short, root / name)
    (root / "torn" / "run.sqlite").write_bytes(b"nothing")
    picture = tmp_path / "sweep.png"
    code, _, errors = say("report", str(root), "--out", str(tmp_path / "sweep.html"), "--png", str(picture))
    assert code == 0, errors
    text = (tmp_path / "sweep.html").read_text("utf-8")
    assert '"id":"torn","error":"The record of a run must be whole' in text
    assert picture.stat().st_size > 10_000
    axis = draw_report(report_data(root, ["a", "b"])).axes[0].xaxis
    assert all(
        float(tick).is_integer() for tick in axis.get_major_locator().tick_values(1.0, 2.0)
    )  # episodes


def test_report_refuses_in_one_sentence(say: Say, short: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    for arguments, word in (
        ([str(tmp_path / "empty")], "must hold a run"),
        ([str(tmp_path / "nowhere")], "must hold a run"),
        ([str(short), "--out", str(tmp_path / "report.txt")], "must end in .html"),
        ([str(short), "--out", str(tmp_path / "no" / "report.html")], "directory that exists"),
        (
            [str(short), "--out", str(tmp_path / "r.html"), "--png", str(tmp_path / "r.pdf")],
            "must end in .png",
        ),
    ):
        code, _, errors = say("report", *arguments)
        assert code == 2, errors
        assert word in errors
        assert errors.count("\n") == 1
    assert not list(tmp_path.glob("*.html"))


def test_learn_can_be_watched(tmp_path: Path) -> None:
    directory = str(tmp_path / "run")
    done = run("learn", "mountain-car", "--agent", "sarsa-coarse", "--run", directory, "--watch", "--json")
    assert done.returncode == 0, done.stderr
    url = json.loads(done.stdout)["url"]
    assert f"the page: {url}" in done.stderr
    with pytest.raises(OSError, match="refused"):  # it ended with the run
        asked(f"{url}api/runs")

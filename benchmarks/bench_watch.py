"""A run that is watched: how much slower it is, and how long after a plan the page knows of it.

Mountain car learns from nothing, in a process of its own: alone, and while a server in another process
answers one page or ten that ask as browsers do (every 0.7 s, each new map once). Taken in turn; the fastest
of each. The processor time of the server, as a share of one core, is what a machine without an idle one would
lose; that of keeping maps, as a share of the run's, is measured in the run itself.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from pathlib import Path
from typing import Any

from benchmarks.measuring import Result, compared

ROUNDS = 3
PAGES = 10
EVERY = 0.7  # seconds, as in main.js
PROGRAM = """
import json, sys, time
from pathlib import Path
from optimist.experiments.online import start_run
from optimist.experiments.problems import find_problem
from optimist.agents import gp_rmax
from optimist.runs import Updated, store
spent = [0.0]
def timed(work):
    def call(*given):
        began = time.thread_time()
        try:
            return work(*given)
        finally:
            spent[0] += time.thread_time() - began
    return call
store.keep_map, gp_rmax.PlanMap.of = timed(store.keep_map), timed(gp_rmax.PlanMap.of)
run = start_run(find_problem("mountain-car"), "gp-rmax-exp", seed=0, run=Path(sys.argv[1]))
made = {}
def heard(event):
    if isinstance(event, Updated):
        made[event.update.n_transitions] = time.time()
wall, cpu = time.perf_counter(), time.process_time()
run.learn(int(sys.argv[2]), callback=heard)
print(json.dumps({"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu, "made": made,
                  "maps": spent[0]}))
run.close()
"""


def run(steps: int = 120, rounds: int = ROUNDS) -> dict[str, Result]:
    """Fastest of each, and what the pages saw."""
    learned(8)  # compile
    pages = {"not watched": 0, "watched": 1, "watched by ten": PAGES}
    found: dict[str, list[dict[str, Any]]] = {name: [] for name in pages}
    for _ in range(rounds):
        for name, rows in found.items():
            rows.append(learned(steps, pages[name]))
    seconds = {name: min(row["wall"] for row in rows) for name, rows in found.items()}

    def share(of: str, per: str, name: str) -> float:
        return 100.0 * min(float(row[of] / row[per]) for row in found[name])

    row = compared(
        seconds,
        "watched",
        "not watched",
        maps_percent=share("maps", "cpu", "not watched"),
        server_percent_of_a_core=share("server", "wall", "watched"),
        server_for_ten_percent_of_a_core=share("server", "wall", "watched by ten"),
        follows_s=max(row["follows"] for name in ("watched", "watched by ten") for row in found[name]),
    )
    return {"a run that is watched, mountain car": row}


def learned(steps: int, pages: int = 0) -> dict[str, Any]:
    """One run: its seconds, and those of the server."""
    with tempfile.TemporaryDirectory() as name:
        directory = str(Path(name) / "run")
        command = [sys.executable, "-c", PROGRAM, directory, str(steps)]
        if not pages:
            ran = subprocess.run(command, capture_output=True, text=True, check=True)
            return dict(json.loads(ran.stdout))
        watch = [sys.executable, "-m", "optimist", "watch", directory, "--json", "--port", "0"]
        with subprocess.Popen(watch, stdout=subprocess.PIPE, text=True) as server:
            assert server.stdout is not None
            url = json.loads(server.stdout.readline())["url"]
            before, over = _cpu(server.pid), threading.Event()
            seen: list[dict[int, float]] = [{} for _ in range(pages)]
            threads = [threading.Thread(target=look, args=(url, mine, over)) for mine in seen]
            for thread in threads:
                thread.start()
            ran = subprocess.run(command, capture_output=True, text=True, check=True)
            time.sleep(2.0 * EVERY + 1.0)
            over.set()
            for thread in threads:
                thread.join()
            spent = _cpu(server.pid) - before
            server.terminate()
        found = dict(json.loads(ran.stdout))
        late = [mine[int(n)] - at for mine in seen for n, at in found["made"].items()]
        return found | {"server": spent, "follows": max(late)}


def look(url: str, seen: dict[int, float], over: threading.Event) -> None:
    """A page: it asks for news, and for every map that is new; when it has one, that plan is seen."""
    version, since = "", 0
    while not over.wait(EVERY):
        said = json.loads(_get(f"{url}api/run?id=.&have={version}&since={since}"))
        if said.get("same"):
            continue
        version, since = said["version"], said["steps"]["count"]
        for plan in (said["run"] or {"plans": []})["plans"]:
            number = plan["n_transitions"]
            if number not in seen and _get(f"{url}api/map?id=.&n={number}"):
                seen[number] = time.time()


def _get(url: str) -> bytes:
    with urllib.request.urlopen(url, timeout=60.0) as answer:
        return bytes(answer.read())


def _cpu(pid: int) -> float:
    """Seconds of processor time that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    for title, result in run(*map(int, sys.argv[1:])).items():
        print(title, json.dumps(result, indent=2))

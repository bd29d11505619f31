"""The server of the page: what it answers, whom it refuses, and that it shows one directory only."""

from __future__ import annotations

import json
import re
import shutil
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from optimist.runs.files import MAPS, RECORD
from optimist.systems import SYSTEMS
from optimist.views.page.document import script
from optimist.views.page.server import LOOPBACK, PORT, bound, is_loopback, url_of
from tests.runs.recording import learned, rewritten, with_header, write_bytes_at
from tests.views.page.serving import Served, SlowRun, serving, until


@pytest.fixture(scope="module")
def sweep(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("sweep")
    for seed in (0, 1):
        learned(root / "line" / f"seed-{seed}", problem="line", steps=30, seed=seed)
    return root


@pytest.fixture
def run(sweep: Path, tmp_path: Path) -> Path:
    return shutil.copytree(sweep / "line" / "seed-0", tmp_path / "run")


@pytest.fixture(scope="module")
def served(sweep: Path) -> Iterator[Served]:
    with serving(sweep) as made:
        yield made


def test_page_and_data_are_served_with_all_that_keeps_them_here(served: Served) -> None:
    status, content, headers = served.get("/")
    assert status == 200
    assert headers["x-frame-options"] == "DENY"
    assert headers["cross-origin-resource-policy"] == "same-origin"
    assert "access-control-allow-origin" not in headers
    text = content.decode()
    assert "default-src 'none'" in text
    assert "connect-src 'self'" in text
    assert "unsafe-inline" not in text
    runs = served.json("/api/runs")["runs"]
    assert [row["id"] for row in runs] == ["line/seed-0", "line/seed-1"]
    assert [len(row["totals"]) for row in runs] == [2, 2]
    said = served.json("/api/run", id="line/seed-1")
    assert said["run"]["header"]["seed"] == 1
    assert said["run"]["wanted"] is None  # transitions were asked for, not episodes
    assert said["steps"]["count"] == 30
    assert served.json("/api/run", id="line/seed-1", have=said["version"]) == {"same": True}
    assert (
        served.json("/api/run", id="line/seed-1", since=28)["steps"]["actions"]
        == said["steps"]["actions"][28:]
    )


def test_a_map_is_served_as_it_is_kept(served: Served, sweep: Path) -> None:
    plan = served.json("/api/run", id="line/seed-0")["run"]["plans"][-1]
    assert plan["map"] is True
    status, content, _ = served.get(f"/api/map?id=line/seed-0&n={plan['n_transitions']}")
    size = int.from_bytes(content[:4], "little")
    assert status == 200
    assert json.loads(content[4 : 4 + size])["n_actions"] == 2
    assert content[4 + size :] in (sweep / "line" / "seed-0" / MAPS).read_bytes()
    assert served.get("/api/map?id=line/seed-0&n=1")[0] == 404


def test_every_system_of_ours_is_drawn() -> None:
    drawn = re.findall(r'^  "?([\w-]+)"?: draw', script(), re.MULTILINE)
    assert set(drawn) == set(SYSTEMS)


@pytest.mark.parametrize(
    "headers",
    [
        {"host": "evil.example"},
        {"host": "evil.example:{port}"},
        {"host": ""},
        {"host": "127.0.0.1@evil.example"},
        {"host": "[::1"},
        {"host": "192.168.0.7:{port}"},
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"origin": "https://127.0.0.1:{port}"},
        {"origin": "http://127.0.0.1:1"},
        {"sec_fetch_site": "cross-site"},
        {"sec_fetch_site": "same-site"},
    ],
    ids=lambda headers: next(iter(headers.items())).__str__(),
)
@pytest.mark.parametrize("path", ["/", "/api/runs"])
def test_what_comes_from_elsewhere_is_refused(served: Served, headers: dict[str, str], path: str) -> None:
    given = {name: value.format(port=served.port) for name, value in headers.items()}
    status, content, _ = served.get(path, **given)
    assert status == 403
    assert content.count(b"\n") == 1


def test_what_comes_from_the_page_itself_is_answered(served: Served) -> None:
    for host in (f"127.0.0.1:{served.port}", f"localhost:{served.port}", f"[::1]:{served.port}"):
        headers = {"host": host, "origin": f"http://{host}", "sec_fetch_site": "same-origin"}
        assert served.get("/api/runs", **headers)[0] == 200
    # a link on another page may lead here; what it loads may not be read there
    followed = {"sec_fetch_site": "cross-site", "sec_fetch_mode": "navigate"}
    assert served.get("/", **followed)[0] == 200
    assert served.get("/api/runs", **followed)[0] == 403
    assert served.get("/api/runs", method="POST")[0] == 403
    assert served.get("/api/runs", method="OPTIONS", origin="http://evil.example")[0] == 403


def test_whoever_serves_to_a_network_is_found_by_its_addresses(run: Path) -> None:
    served = Served(run, host="0.0.0.0")
    try:
        assert served.get("/", host="192.168.0.7:8010")[0] == 200
        assert served.get("/", host="evil.example")[0] == 403
    finally:
        served.stop()


@pytest.mark.parametrize(
    "name",
    ["..", "../other", "line/../../other", "/etc", "line", "line/link", "outside", "", "\0", "a" * 5000],
)
def test_nothing_outside_of_the_directory_is_served(sweep: Path, tmp_path: Path, name: str) -> None:
    root = shutil.copytree(sweep, tmp_path / "sweep")
    shutil.copytree(sweep / "line" / "seed-0", tmp_path / "other")
    (root / "outside").symlink_to(tmp_path / "other")
    (root / "line" / "link").symlink_to(tmp_path / "other")
    with serving(root) as served:
        assert [row["id"] for row in served.json("/api/runs")["runs"]] == ["line/seed-0", "line/seed-1"]
        said = served.json("/api/run", id=name)
        assert said["run"] is None
        assert said["error"] == "There is no such run."


@pytest.mark.parametrize(
    "path", ["/run.sqlite", "/static/main.js", "/../run.sqlite", "/api", "/%2e%2e/run.sqlite"]
)
def test_files_are_not_served(served: Served, path: str) -> None:
    assert served.get(path)[0] == 404


def test_a_record_that_is_a_link_is_not_followed(run: Path, tmp_path: Path) -> None:
    (tmp_path / "linked").mkdir()
    (tmp_path / "linked" / RECORD).symlink_to(run / RECORD)
    with serving(tmp_path / "linked") as served:
        said = served.json("/api/run")
    assert said["run"] is None
    assert "regular file" in said["error"]


def test_empty_directory_then_a_run_then_none(run: Path, tmp_path: Path) -> None:
    place = tmp_path / "place"
    with serving(place) as served:
        assert "There is no directory" in served.json("/api/runs")["message"]
        place.mkdir()
        until(lambda: "no run" in served.json("/api/runs")["message"])
        assert served.json("/api/run")["run"] is None
        for file in run.iterdir():
            shutil.copy(file, place)
        until(lambda: served.json("/api/run")["run"] is not None)
        assert served.json("/api/runs")["runs"] == [{"id": "."}]
        shutil.rmtree(place)
        until(lambda: served.json("/api/run")["error"] is not None)
        said = served.json("/api/run")
        assert said["error"] == "The run was removed while it was watched."
        assert said["run"] is not None  # what was read of it


def test_damage_and_other_versions_are_said(run: Path, tmp_path: Path) -> None:
    newer = with_header(
        shutil.copytree(run, tmp_path / "newer"), lambda header: header.update(format_version=99)
    )
    torn = shutil.copytree(run, tmp_path / "torn")
    write_bytes_at(torn / RECORD, 4096, b"\0" * 9000)
    foreign = tmp_path / "foreign"
    foreign.mkdir()
    (foreign / RECORD).write_text("this is no database")
    unsaid = rewritten(shutil.copytree(run, tmp_path / "unsaid"), lambda rows: rows.update(header=[("{}",)]))
    for place, word in ((newer, "format"), (torn, "whole"), (foreign, "whole"), (unsaid, "")):
        with serving(place) as served:
            said = served.json("/api/run")
            assert said["run"] is None
            assert said["error"]
            assert word in said["error"]
    with serving(tmp_path) as served:
        rows = served.json("/api/runs")["runs"]
    assert sorted(row["id"] for row in rows if row["error"]) == ["foreign", "newer", "torn", "unsaid"]
    assert [row["id"] for row in rows if not row["error"]] == ["run"]


def test_ten_follow_a_run_that_goes_on(tmp_path: Path) -> None:
    with SlowRun(tmp_path / "run") as going, serving(going.directory) as served:
        seen: list[list[int]] = [[] for _ in range(10)]

        def follow(mine: list[int]) -> None:
            version, since = "", 0
            while not mine or mine[-1] < 3:
                said = served.json("/api/run", have=version, since=since)
                if said.get("same"):
                    continue
                assert said["steps"]["since"] == since
                version, since = said["version"], said["steps"]["count"]
                mine.append(len(said["run"]["plans"]))

        threads = [threading.Thread(target=follow, args=(mine,)) for mine in seen]
        for thread in threads:
            thread.start()
        going.go_on(2)
        for thread in threads:
            thread.join(30.0)
    assert all(mine[-1] == 3 and mine == sorted(mine) for mine in seen)


def test_whoever_looks_on_sees_the_end(run: Path) -> None:
    with serving(run) as served:
        assert served.get("/", host="evil.example")[0] == 403
        assert served.app.farewell() == 0.0  # nobody is there
        served.get("/api/run")
        assert served.app.farewell() > 1.0  # a page asks every 0.7 s


def test_it_listens_on_loopback_and_says_where() -> None:
    taken = [bound(LOOPBACK, None) for _ in range(2)]
    try:
        ports = [made.getsockname()[1] for made in taken]
        assert ports[0] != ports[1]
        assert PORT not in ports[1:]
        assert {made.getsockname()[0] for made in taken} == {LOOPBACK}
        assert url_of(taken[0], LOOPBACK) == f"http://127.0.0.1:{ports[0]}/"
        with pytest.raises(ValueError, match="must be free"):
            bound(LOOPBACK, ports[0])
    finally:
        for made in taken:
            made.close()
    with pytest.raises(ValueError, match="must be"):
        bound("not an address", None)
    assert is_loopback("127.0.0.1")
    assert is_loopback("localhost")
    assert not is_loopback("0.0.0.0")
    assert not is_loopback(socket.gethostname() + ".example")

"""The page in a real browser: a run that goes on, sliders, time, themes, mishaps, a report, a sweep."""

from __future__ import annotations

import base64
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from optimist import Box, GPRMax
from optimist.agents.plan_map import PlanMap
from optimist.grid import Grid
from optimist.planning import QFunction
from optimist.runs import RunStore
from optimist.runs.files import FRAME, RECORD
from optimist.runs.frames import keep_frame
from optimist.runs.maps import packed
from optimist.views.page.report import write_report
from tests.runs.recording import learned, made, with_header, write_bytes_at
from tests.views.page.browsing import Browser, chromium
from tests.views.page.serving import Served, SlowRun, serving

MESSAGE = (
    "return !document.getElementById('message').hidden && document.getElementById('message').textContent"
)


@pytest.fixture(scope="module")
def shared() -> Iterator[Browser]:
    with chromium() as found:
        yield found


@pytest.fixture
def browser(shared: Browser) -> Iterator[Browser]:
    """The one browser; a test must leave its console without complaints."""
    shared.errors()
    yield shared
    complaints = shared.errors()
    shared.open("about:blank")
    assert complaints == []


@contextmanager
def shown(browser: Browser, directory: Path) -> Iterator[Served]:
    """The page of a directory, opened; it is left before its server is stopped."""
    with serving(directory) as served:
        browser.open(served.url)
        try:
            yield served
        finally:
            complaints = browser.errors()
            browser.open("about:blank")
    assert complaints == []


MAPPED = "return optimist.app.run && optimist.app.run.map && !optimist.app.run.queued"


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return learned(tmp_path_factory.mktemp("finished") / "run", episodes=2)


def test_a_run_is_followed_and_can_be_looked_back_at(browser: Browser, tmp_path: Path) -> None:
    with SlowRun(tmp_path / "run") as going, shown(browser, going.directory):
        browser.plan(1, of=1)
        first = browser.picture("map-value"), browser.picture("map-unknown")
        count = going.go_on(4)
        browser.plan(count, of=count)  # nobody touched anything
        assert browser.picture("map-value") != first[0]
        assert browser.picture("map-unknown") != first[1]
        assert "after 40 transitions" in browser.words()
        browser.until("return document.querySelector('[data-episodes]').dataset.episodes == 1")  # the curve
        browser.set("plan", 1)  # back in time
        browser.plan(1)
        assert (browser.picture("map-value"), browser.picture("map-unknown")) == first  # exactly as it was
        count = going.go_on(1)  # the run goes on; who looks back stays there
        browser.until("return document.documentElement.dataset.plans == arguments[0]", count)
        browser.plan(1, of=count)
        browser.driver.refresh()  # in the middle
        browser.plan(count, of=count)
        browser.click("earlier")
        browser.plan(count - 1)
        browser.click("latest")
        browser.plan(count)


def test_maps_show_what_is_chosen(browser: Browser, finished: Path) -> None:
    with shown(browser, finished):
        browser.until(MAPPED)
        browser.until(
            "return document.getElementById('status').textContent.startsWith('done: 2 of 2 episodes')"
        )
        seen = {"at first": browser.picture("map-value")}
        for name in ("show-nodes", "show-visits", "show-episode", "show-rehearsed"):
            browser.click(name)
            seen[name] = browser.picture("map-value")
        browser.set("action", 0)
        seen["one control"] = browser.picture("map-value")
        browser.set("action", 2)
        seen["another"] = browser.picture("map-value")
        browser.set("what", "greedy")
        seen["best control"] = browser.picture("map-value")
        browser.set("axis-0", 1)
        seen["turned"] = browser.picture("map-value")
        assert len(set(seen.values())) == len(seen)
        label = browser.run("return document.getElementById('map-value').getAttribute('aria-label')")
        assert "over velocity and position" in label
        browser.set("theme", "dark")
        browser.until("return document.documentElement.dataset.look === 'dark'")
        assert browser.picture("map-value") != seen["turned"]
        browser.set("theme", "auto")
        browser.run("const v = optimist.app.run; v.axes = [0, 0]; v.map.high[1] = 9; v.fillLook()")
        held = "return ['min', 'max', 'value'].map((name) => Number(document.getElementById('held-1')[name]))"
        assert browser.run(held)[1] == 9.0  # as far as the plan goes, which may be beyond what was told
        browser.run("const v = optimist.app.run; v.map.high[1] = 0.5; v.fitHeld()")
        assert browser.run(held) == [pytest.approx(-0.07), 0.5, pytest.approx(0.0, abs=0.01)]


def test_a_run_with_any_control_is_shown_and_moves(browser: Browser, tmp_path: Path) -> None:
    directory = learned(tmp_path / "run", problem="pendulum-continuous", steps=12)
    with RunStore.open(directory, writing=False) as store:
        steps = store.transitions()
    angles = np.array([steps[0].state[0], *(step.next_state[0] for step in steps)])
    crossed = int((np.abs(np.diff(angles)) > np.pi).sum())
    assert crossed > 0  # it starts hanging, where the angle jumps
    write_report(directory, tmp_path / "run.html")
    with shown(browser, directory) as served:
        for address in (served.url, (tmp_path / "run.html").as_uri()):
            browser.open(address)
            browser.until(MAPPED)
            browser.run("const p = optimist.app.run.player; p.playing = false; p.step = 7; p.show()")
            words = browser.run(
                "return document.querySelector('[aria-label=\"The system, moving\"] .read').textContent"
            )
            said = float(words.split("control ")[1].split(";")[0].replace("\u2212", "-"))
            assert said == pytest.approx(np.atleast_1d(steps[7].action)[0], rel=0.01)
            line = "return document.querySelector(arguments[0]).getAttribute('d')"
            drawn = browser.run(line, '[aria-label="Coordinates over time"] path.line')
            assert drawn.count("M") == 1 + crossed
            assert "any from (\u22125) to (5)" in browser.run("return document.body.textContent")


def test_values_in_the_browser_are_those_of_the_agent(browser: Browser, finished: Path) -> None:
    with GPRMax.resume(finished, made("mountain-car"), writing=False) as learner:
        states = np.random.default_rng(0).uniform(learner.box.low, learner.box.high, (50, 2))
        values, unknown = learner.value(states), learner.uncertainty(states)
        step = np.ptp(learner.plan.q_values) / 4095
    with shown(browser, finished):
        browser.until(MAPPED)
        ask = (
            "const m = optimist.app.run.map; const f = m.field(arguments[1], arguments[2]);"
            "return arguments[0].map((s) => m.at(f, s))"
        )
        assert np.abs(np.array(browser.run(ask, states.tolist(), "value", -1)) - values).max() < step
        assert (
            np.abs(np.array(browser.run(ask, states.tolist(), "uncertainty", 1)) - unknown[:, 1]).max()
            < 0.005
        )


def test_slices_of_four_axes_are_interpolated_as_plans_are(browser: Browser, finished: Path) -> None:
    box = Box([-1.0, 0.0, -np.pi, 2.0], [1.0, 1.0, np.pi, 5.0], periodic=[False, False, True, False])
    grid = Grid.spaced(box, (4, 5, 6, 3), (1.0, 2.0, 1.0, 1.5))
    stream = np.random.default_rng(3)
    q_function = QFunction(grid, stream.normal(size=(grid.n_nodes, 2)))
    kept = packed(PlanMap.of(q_function, stream.random((2, grid.n_nodes)), np.zeros((2, 4))))
    state = np.array([0.3, 0.45, 3.0, 4.4])
    with shown(browser, finished):
        browser.until("return !!window.optimist")
        values, at = browser.driver.execute_async_script(
            "const [doc, content, periodic, low, high, state, done] = arguments;"
            "optimist.inflated(optimist.fromBase64(content)).then((raw) => {"
            "const m = new optimist.PlanMap(doc, raw, periodic, low, high);"
            "const seen = Array.from(m.raster(m.field('value', 1), [2, 0], state, 20));"
            "done([seen, m.at(m.field('value', 0), state)]); })",
            kept.document, base64.b64encode(kept.content).decode(), box.periodic.tolist(), box.low.tolist(),
            box.high.tolist(), state.tolist(),
        )  # fmt: skip
    shares = (np.arange(20) + 0.5) / 20
    states = np.tile(state, (400, 1))
    states[:, 2] = np.tile(box.low[2] + shares * box.widths[2], 20)
    states[:, 0] = np.repeat(box.low[0] + shares * box.widths[0], 20)
    step = np.ptp(q_function.q_values) / 4095
    assert np.abs(np.array(values) - q_function(states)[:, 1]).max() < step
    assert abs(at - q_function(state[np.newaxis])[0, 0]) < step


def test_everything_is_reached_and_read_with_the_keyboard(browser: Browser, finished: Path) -> None:
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.keys import Keys

    with shown(browser, finished):
        browser.until(MAPPED)
        browser.run(
            "window.seen = []; addEventListener('focusin', (e) => seen.push(e.target.id || e.target.tagName))"
        )
        ActionChains(browser.driver, duration=0).send_keys(Keys.TAB * 60).perform()
        reached = set(browser.run("return seen"))
        wanted = {"theme", "earlier", "plan", "later", "latest", "history", "axis-0", "action", "show-nodes"}
        assert wanted | {"map-value", "map-unknown", "SUMMARY"} <= reached
        browser.run("document.getElementById('map-value').focus()")
        for key in (Keys.ARROW_RIGHT, Keys.ARROW_UP):
            browser.driver.switch_to.active_element.send_keys(key)
        browser.until(
            "const said = document.querySelector('[aria-label=Value] .read').textContent;"
            "return /value .*uncertainty .*best control/.test(said)"
        )
        unnamed = browser.run(
            "return [...document.querySelectorAll('input, select, button, canvas, svg')].filter((e) => "
            "!(e.getAttribute('aria-label') || e.closest('label') || e.textContent.trim() || e.hidden))"
            ".map((e) => e.outerHTML)"
        )
        assert unnamed == []


@pytest.mark.parametrize("width", [400, 1400])
def test_nothing_is_wider_than_the_screen(browser: Browser, finished: Path, width: int) -> None:
    with serving(finished) as served:
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600}
        browser.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        try:
            browser.open(served.url)
            browser.until("return optimist.app.run && optimist.app.run.map && !optimist.app.run.queued")
            assert browser.run("return document.documentElement.scrollWidth") <= width
        finally:
            complaints = browser.errors()
            browser.open("about:blank")  # or it asks on when its server is gone
            browser.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    assert complaints == []


def test_ten_windows_follow_at_once(browser: Browser, tmp_path: Path) -> None:
    with SlowRun(tmp_path / "run") as going, shown(browser, going.directory) as served:
        home = browser.driver.current_window_handle
        browser.run("for (let k = 0; k < 9; k++) window.open(arguments[0])", served.url)
        count = going.go_on(2)
        for handle in browser.driver.window_handles:
            browser.driver.switch_to.window(handle)
            browser.plan(count, of=count)
        assert len(browser.driver.window_handles) == 10
        for handle in browser.driver.window_handles:
            browser.driver.switch_to.window(handle)
            if handle != home:
                browser.driver.close()
        browser.driver.switch_to.window(home)


def test_a_server_that_is_stopped_is_missed_and_what_was_seen_stays(browser: Browser, finished: Path) -> None:
    with serving(finished) as served:
        browser.open(served.url)
        browser.until(MAPPED)
        browser.set("plan", 1)
        browser.plan(1)
        browser.set("plan", 2)
        browser.plan(2)
        assert browser.errors() == []
    assert "does not answer" in browser.until(MESSAGE)
    browser.set("plan", 1)  # it was seen before
    browser.plan(1)
    browser.errors()  # that nobody answers is said in the console, too


def test_what_is_wrong_with_a_directory_is_said_on_the_page(
    browser: Browser, finished: Path, tmp_path: Path
) -> None:
    place = tmp_path / "place"
    place.mkdir()
    with shown(browser, place):
        assert "no run" in browser.until(MESSAGE)
        shutil.copytree(finished, place, dirs_exist_ok=True)
        browser.until(
            "return optimist.app.run && optimist.app.run.map && document.getElementById('message').hidden"
        )
        shutil.rmtree(place)
        assert "removed while it was watched" in browser.until(MESSAGE)
        assert browser.run("return document.getElementById('title').textContent").startswith("mountain-car")
        shutil.copytree(finished, place)  # and back
        browser.until("return document.getElementById('message').hidden")
    torn = shutil.copytree(finished, tmp_path / "torn")
    write_bytes_at(torn / RECORD, 4096, b"\0" * 9000)
    newer = with_header(
        shutil.copytree(finished, tmp_path / "newer"), lambda header: header.update(format_version=99)
    )
    for directory, word in ((torn, "must be whole"), (newer, "got 99")):
        with shown(browser, directory):
            assert word in browser.until(MESSAGE)


def test_words_of_a_record_are_never_markup(browser: Browser, finished: Path, tmp_path: Path) -> None:
    evil = "</script><img src=x onerror=\"document.title='pwned'\"><b>{{script}}</b>"
    forged = with_header(
        shutil.copytree(finished, tmp_path / "forged"), lambda header: header.update(problem=evil)
    )
    write_report(forged, tmp_path / "forged.html")
    with shown(browser, forged) as served:
        for address in (served.url, (tmp_path / "forged.html").as_uri()):
            browser.open(address)
            title = browser.until(
                "return optimist.app.run && optimist.app.run.doc && document.querySelector('h1').textContent"
            )
            assert title.startswith(evil)
            assert browser.run("return document.querySelectorAll('b, img').length") == 0
            assert "pwned" not in browser.driver.title[:6]


def test_a_report_shows_the_same_without_network(browser: Browser, finished: Path, tmp_path: Path) -> None:
    write_report(finished, tmp_path / "run.html")
    with shown(browser, finished):
        browser.until(MAPPED)
        there = browser.picture("map-value")
    browser.errors()
    browser.open((tmp_path / "run.html").as_uri())
    browser.until(MAPPED)
    assert browser.picture("map-value") == there
    browser.set("plan", 1)
    browser.plan(1)
    assert browser.picture("map-value") != there
    assert browser.run("return performance.getEntriesByType('resource').map((e) => e.name)") == []
    words = browser.words() + browser.run("return document.body.textContent")
    assert "gymnasium" in words  # versions
    assert "mean_drift_tolerance" in words  # settings


def test_a_system_that_draws_itself_is_shown_as_it_does(browser: Browser, tmp_path: Path) -> None:
    directory = learned(tmp_path / "run", problem="line", steps=20)
    asked = "return document.querySelector('section[aria-label=\"The system itself\"]')?.hidden"
    with shown(browser, directory):
        browser.until(MAPPED)
        assert browser.run(asked) is True
    keep_frame(directory / FRAME, np.full((30, 40, 3), 200, dtype=np.uint8))
    write_report(directory, tmp_path / "run.html")
    for address in (None, (tmp_path / "run.html").as_uri()):
        with shown(browser, directory):
            if address is not None:
                browser.open(address)
            browser.until(MAPPED)
            browser.until("return document.querySelector('img')?.naturalWidth === 40")
            assert browser.run(asked) is False


def test_a_sweep_shows_its_runs_side_by_side(browser: Browser, finished: Path, tmp_path: Path) -> None:
    root = tmp_path / "sweep"
    for seed in (0, 1):
        learned(root / "line" / f"seed-{seed}", problem="line", steps=30, seed=seed)
    shutil.copytree(finished, root / "car")
    write_bytes_at(shutil.copytree(finished, root / "torn") / RECORD, 4096, b"\0" * 9000)
    write_report(root, tmp_path / "sweep.html")
    with shown(browser, root) as served:
        for address in (served.url, (tmp_path / "sweep.html").as_uri()):
            browser.open(address)
            browser.until("return document.querySelectorAll('[data-run]').length === 3")
            said = browser.run("return document.body.innerText")
            assert "4 runs, 1 of them done" in said
            assert "torn: The record of a run must be whole" in said
            assert "seed 1: 2 episodes, last" in said  # nobody said how many
            browser.run("document.querySelector('[data-run=\"line/seed-1\"]').click()")
            browser.until("return optimist.app.run && optimist.app.run.map && /seed 1/.test(document.title)")
            browser.driver.refresh()  # stays there
            browser.until("return optimist.app.run && optimist.app.run.map && /seed 1/.test(document.title)")
            browser.click("back")
            browser.until("return document.querySelectorAll('[data-run]').length === 3")
            browser.run("location.hash = 'run=%'")  # which names nothing
            browser.until(MESSAGE)
            browser.click("back")
            browser.until("return document.querySelectorAll('[data-run]').length === 3")
        rows = [
            {"totals": [1.0, 5.0, 9.0]},
            {"totals": [2.0, 7.0]},
            {"totals": [4.0]},
            {"totals": [8.0, 1.0]},
        ]
        found = browser.run("return optimist.bands(arguments[0])", rows)
    firsts, seconds = np.quantile([1, 2, 4, 8], [0.25, 0.5, 0.75]), np.quantile([5, 7, 1], [0.25, 0.5, 0.75])
    assert [[row["low"], row["median"], row["high"]] for row in found] == [
        pytest.approx(firsts),
        pytest.approx(seconds),
    ]

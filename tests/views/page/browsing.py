"""A real browser: Debian's Chromium, driven by selenium. Where it is not installed, its tests are skipped."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.views.page.serving import PATIENCE

FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--window-size=1400,1000", "--force-prefers-reduced-motion",
)  # fmt: skip


class Browser:
    """What the tests ask of it."""

    def __init__(self, driver: Any) -> None:
        self.driver = driver

    def open(self, address: str) -> None:
        self.driver.get(address)

    def run(self, script: str, *given: object) -> Any:
        return self.driver.execute_script(script, *given)

    def until(self, script: str, *given: object) -> Any:
        """Wait until a script returns something that is true; what it returns."""
        end = time.monotonic() + PATIENCE
        while not (found := self.run(script, *given)):
            assert time.monotonic() < end, f"waited in vain: {script}; the page says {self.words()!r}"
            time.sleep(0.03)
        return found

    def words(self) -> str:
        return str(self.run("return document.body.innerText"))[:600]

    def set(self, name: str, value: object) -> None:
        """Move a slider, or choose from a list, as a hand does."""
        self.run(
            "const e = document.getElementById(arguments[0]); e.value = arguments[1];"
            "e.dispatchEvent(new Event(e.tagName === 'SELECT' ? 'change' : 'input', {bubbles: true}))",
            name, value,
        )  # fmt: skip

    def click(self, name: str) -> None:
        self.run("document.getElementById(arguments[0]).click()", name)

    def picture(self, name: str) -> str:
        """A canvas as it looks now, when all that was asked for is drawn."""
        self.until("return !optimist.app.run.queued && !optimist.app.run.loading")
        return str(self.run("return document.getElementById(arguments[0]).toDataURL()", name))

    def plan(self, number: int, of: int | None = None) -> None:
        """Wait until that plan is shown, with its map."""
        self.until(
            "const d = document.documentElement.dataset; const v = optimist.app.run;"
            "return v && v.doc && d.plan == arguments[0] && [null, Number(d.plans)].includes(arguments[1])"
            " && d.map == v.doc.plans[v.plan].n_transitions && !v.queued && !v.loading",
            number, of,
        )  # fmt: skip

    def errors(self) -> list[str]:
        """What the console has complained of since it was last asked."""
        return [row["message"] for row in self.driver.get_log("browser") if row["level"] == "SEVERE"]


@contextmanager
def chromium() -> Iterator[Browser]:
    program, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if program is None or driver is None:
        pytest.skip("needs a browser: apt-get install chromium chromium-driver")
    selenium = pytest.importorskip("selenium.webdriver", reason="needs selenium: pip install 'optimist[dev]'")
    from selenium.webdriver.chrome.service import Service

    with tempfile.TemporaryDirectory(prefix="optimist-browser-", ignore_cleanup_errors=True) as profile:
        options = selenium.ChromeOptions()
        options.binary_location = program
        for flag in (*FLAGS, f"--user-data-dir={Path(profile)}"):
            options.add_argument(flag)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        made = selenium.Chrome(options=options, service=Service(driver))
        try:
            yield Browser(made)
        finally:
            made.quit()

"""The page served from within a test, and a run that makes a plan when the test says so."""

from __future__ import annotations

import http.client
import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any
from urllib.parse import urlencode

import uvicorn

from optimist.runs import Event, Updated
from optimist.views.page.server import LOOPBACK, bound, make_app
from tests.runs.recording import learned

PATIENCE = 30.0  # seconds: how long a slow machine may take


class Served:
    """A server in a thread of its own."""

    def __init__(self, directory: Path, host: str = LOOPBACK) -> None:
        self._socket = bound(LOOPBACK, 0)
        self.port = self._socket.getsockname()[1]
        self.url = f"http://{LOOPBACK}:{self.port}/"
        self.app = make_app(directory, host)
        config = uvicorn.Config(self.app, ws="none", lifespan="off", log_level="error")
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._server.run, kwargs={"sockets": [self._socket]})
        self._thread.start()
        until(lambda: self._server.started)

    def get(self, path: str, *, method: str = "GET", **headers: str) -> tuple[int, bytes, dict[str, str]]:
        """Ask; headers as names with underscores."""
        connection = http.client.HTTPConnection(LOOPBACK, self.port, timeout=PATIENCE)
        try:
            connection.putrequest(method, path, skip_host="host" in headers, skip_accept_encoding=True)
            for name, value in headers.items():
                connection.putheader(name.replace("_", "-"), value)
            connection.endheaders()
            answer = connection.getresponse()
            found = {name.lower(): value for name, value in answer.getheaders()}
            return answer.status, answer.read(), found
        finally:
            connection.close()

    def json(self, path: str, **query: object) -> Any:
        status, content, _ = self.get(f"{path}?{urlencode(query)}")
        assert status == 200, content
        return json.loads(content)

    def stop(self) -> None:
        self._server.should_exit = True
        self._thread.join(PATIENCE)
        self._socket.close()


@contextmanager
def serving(directory: Path) -> Iterator[Served]:
    served = Served(directory)
    try:
        yield served
    finally:
        served.stop()


def until(condition: Callable[[], object], what: str = "it") -> None:
    """Wait for something to become true."""
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, f"waited for {what} in vain"
        time.sleep(0.02)


class SlowRun:
    """A small run in a thread. It waits after every plan until it is let on."""

    def __init__(self, directory: Path, steps: int = 120) -> None:
        self.directory = directory
        self._allowed = threading.Semaphore(0)
        self._over = False
        self.plans = 0
        self._thread = threading.Thread(target=self._learn, args=(steps,))

    def _learn(self, steps: int) -> None:
        learned(self.directory, steps=steps, callback=self._heard)

    def _heard(self, event: Event) -> bool | None:
        if isinstance(event, Updated):
            self.plans += 1
            self._allowed.acquire()
        return False if self._over else None

    def __enter__(self) -> SlowRun:
        self._thread.start()
        until(lambda: self.plans or not self._thread.is_alive(), "the first plan")
        return self

    def go_on(self, plans: int = 1) -> int:
        """Let it make so many plans more; how many there are then."""
        wanted = self.plans + plans
        for _ in range(plans):
            self._allowed.release()
        until(lambda: self.plans >= wanted, "the next plan")
        return self.plans

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over = True
        self._allowed.release(1000)
        self._thread.join(PATIENCE)

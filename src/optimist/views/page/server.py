"""The page served, on loopback unless told otherwise. It answers questions about one directory.

A browser runs whatever pages its user visits, and those can send requests to loopback, too. So a request
must name this server as its host (a foreign name that points here is refused), and not come from elsewhere.
"""

from __future__ import annotations

import ipaddress
import math
import socket
import threading
import time
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from optimist.runs.frames import read_frame
from optimist.views.page.document import page
from optimist.views.page.many import ITSELF, Watched
from optimist.views.page.reading import told

LOOPBACK = "127.0.0.1"
PORT = 8010  # if it is free
SAFE = {
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cache-control": "no-store",
}


FAREWELL = 2.0  # seconds: whoever looks on shall see the end, too
AWAY = 5.0  # seconds without a question: a page asks more often


class Guard:
    """Refuses what a page from elsewhere might send; notes when somebody last asked."""

    def __init__(self, app: ASGIApp, host: str) -> None:
        self._app = app
        self._names = {"localhost", LOOPBACK, "::1", host.lower(), socket.gethostname().lower()}
        self._open = not is_loopback(host)  # then any address may be one of this machine's
        self._asked = -math.inf

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, or refuse."""
        if scope["type"] != "http":
            return
        refused = self._refused(Headers(scope=scope), scope["method"], scope["path"])

        async def safely(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [
                    *message.get("headers", []),
                    *((name.encode(), value.encode()) for name, value in SAFE.items()),
                ]
            await send(message)

        if refused is None:
            self._asked = time.monotonic()
        app = self._app if refused is None else Response(f"{refused}\n", 403, media_type="text/plain")
        await app(scope, receive, safely)

    def farewell(self) -> float:
        """How many seconds to stay when all is over: none if nobody is looking."""
        return FAREWELL if time.monotonic() - self._asked < AWAY else 0.0

    def _refused(self, headers: Headers, method: str, path: str) -> str | None:
        host = headers.get("host", "")
        if not self._ours(host):
            return "The Host of a request must be this server; got another."
        if method not in ("GET", "HEAD"):
            return "Only GET is answered."
        origin = headers.get("origin")
        if origin is not None and origin.lower() != f"http://{host.lower()}":
            return "A request must not come from another page; got one that does."
        site = headers.get("sec-fetch-site", "none")
        followed = path == "/" and headers.get("sec-fetch-mode") == "navigate"
        if site not in ("none", "same-origin") and not followed:  # a link somewhere may lead to the page
            return "A request must not come from another page; got one that does."
        return None

    def _ours(self, host: str) -> bool:
        try:
            name = urlsplit(f"//{host}").hostname
        except ValueError:
            return False
        if name is None or "@" in host:
            return False
        return name in self._names or (self._open and _is_address(name))


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach it."""
    return host.lower() == "localhost" or (_is_address(host) and ipaddress.ip_address(host).is_loopback)


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def make_app(directory: Path, host: str = LOOPBACK) -> Guard:
    """The page of a directory."""
    watched = Watched(directory)
    text = page(f"Optimist: {directory.resolve().name}")

    def front(request: Request) -> Response:
        return HTMLResponse(text)

    def runs(request: Request) -> Response:
        return _json(told(watched.runs()))

    async def run(request: Request) -> Response:
        name = request.query_params.get("id", ITSELF)
        reader = watched.known(name) or await run_in_threadpool(watched.reader, name)
        if reader is None:
            return _json(told({"version": "none", "error": "There is no such run.", "run": None}))
        look = reader.seen
        if look is None:
            look = await run_in_threadpool(reader.look)
        if request.query_params.get("have") == look.version:
            return _json(b'{"same":true}')
        return _json(look.said(_number(request, "since")))

    def one_map(request: Request) -> Response:
        reader = watched.reader(request.query_params.get("id", ITSELF))
        found = None if reader is None else reader.map_of(_number(request, "n"))
        if found is None:
            return Response("There is no such map.\n", 404, media_type="text/plain")
        head = told(found.document)
        return Response(
            len(head).to_bytes(4, "little") + head + found.content, media_type="application/octet-stream"
        )

    def frame(request: Request) -> Response:
        reader = watched.reader(request.query_params.get("id", ITSELF))
        found = None if reader is None else read_frame(reader.directory)
        if found is None:
            return Response(status_code=204)  # most runs have none
        return Response(found, media_type="image/png")

    routes = {"/": front, "/api/runs": runs, "/api/run": run, "/api/map": one_map, "/api/frame": frame}
    return Guard(Starlette(routes=[Route(path, answer) for path, answer in routes.items()]), host)


def _json(content: bytes) -> Response:
    return Response(content, media_type="application/json")


def _number(request: Request, name: str) -> int:
    text = request.query_params.get(name, "0")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 16 else 0


def bound(host: str, port: int | None) -> socket.socket:
    """A socket to serve on: that port, or ours if it is free, or any."""
    for attempt in [port] if port is not None else [PORT, 0]:
        try:
            found = socket.getaddrinfo(host, attempt, type=socket.SOCK_STREAM)[0]
            made = socket.socket(found[0], socket.SOCK_STREAM)
        except (OSError, UnicodeError) as error:
            raise ValueError(f"--host must be an address of this machine; got {host!r}.") from error
        try:
            made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            made.bind(found[4])
            made.listen()
        except OSError as error:
            made.close()
            if attempt != PORT or port is not None:
                where = f"--host and --port must be free to serve on; got {host!r} and {attempt}"
                raise ValueError(f"{where}: {error.strerror}.") from error
            continue
        return made
    raise AssertionError


def url_of(made: socket.socket, host: str) -> str:
    """Where a browser finds it."""
    shown = LOOPBACK if host in ("0.0.0.0", "", "::") else host
    return f"http://{f'[{shown}]' if ':' in shown else shown}:{made.getsockname()[1]}/"


def serve(
    directory: Path,
    made: socket.socket,
    host: str,
    *,
    ready: Callable[[], object],
    until: Callable[[], object] | None = None,
) -> None:
    """Serve until stopped (Ctrl-C, or a signal to end), or until `until` returns and the end was seen."""
    app = make_app(directory, host)
    options = {"ws": "none", "lifespan": "off", "log_level": "warning", "access_log": False}
    config = uvicorn.Config(
        app,
        server_header=False,
        timeout_graceful_shutdown=1,
        **options,  # type: ignore[arg-type]
    )
    server = uvicorn.Server(config)

    def wait() -> None:
        if until is not None:
            until()
            time.sleep(app.farewell())
            server.should_exit = True

    threading.Thread(target=wait, daemon=True).start()
    ready()
    server.run(sockets=[made])

"""A web server for the page, on this machine only."""

from __future__ import annotations

import re
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

PORT, PORTS_TO_TRY = 8000, 20


class Handler(SimpleHTTPRequestHandler):
    # Not the system's table, in which .js and .wasm may be missing or wrong.
    extensions_map = {  # noqa: RUF012
        ".html": "text/html; charset=utf-8",
        ".css": "text/css; charset=utf-8",
        ".js": "text/javascript; charset=utf-8",
        ".mjs": "text/javascript; charset=utf-8",
        ".json": "application/json",
        ".wasm": "application/wasm",
        ".py": "text/plain; charset=utf-8",
        ".wav": "audio/wav",
        "": "application/octet-stream",
    }

    def __init__(self, *arguments: Any, policy: str, **options: Any):
        self.policy = policy
        super().__init__(*arguments, **options)

    def guess_type(self, path: Any) -> str:
        return self.extensions_map.get(Path(path).suffix, self.extensions_map[""])

    def end_headers(self) -> None:
        self.send_header("Content-Security-Policy", self.policy)
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Cache-Control", "no-cache")
        super().end_headers()

    def log_message(self, format: str, *arguments: Any) -> None:
        """Silent."""


class Server(ThreadingHTTPServer):
    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exception(), ConnectionError):  # a page that was closed while loading
            super().handle_error(request, client_address)

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/"


def policy(folder: Path) -> str:
    """The page's policy. It is also sent as a header, as workers do not inherit it from the page's meta element."""
    found = re.search(r'"Content-Security-Policy" content="([^"]+)"', (folder / "index.html").read_text())
    assert found, "index.html has lost its Content-Security-Policy"
    return found[1]


def serve(folder: Path, port: int = PORT) -> Server:
    """A server that listens on `port` or the next free one; 0 takes any."""
    handler = partial(Handler, directory=str(folder), policy=policy(folder))
    for candidate in range(port, port + PORTS_TO_TRY):
        try:
            return Server(("127.0.0.1", candidate), handler)
        except OSError as error:
            last = error
    raise OSError(f"no free port from {port} to {port + PORTS_TO_TRY - 1}: {last}")


@contextmanager
def in_background(server: ThreadingHTTPServer) -> Iterator[str]:
    """Its address; it answers meanwhile, in a thread of its own, and is closed then."""
    with server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/"
        finally:
            server.shutdown()
            thread.join()

"""A web server for the page, on this machine only.

It gives the files of one folder, to requests that name this machine as their host: a page elsewhere whose name is made
to lead here (DNS rebinding) gets nothing. Folders are not listed, and links that leave the folder are not followed.
"""

from __future__ import annotations

import os
import re
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http import HTTPStatus
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote

PORT, PORTS_TO_TRY = 8000, 20
METHODS = ("GET", "HEAD")
_OWN_HOST = re.compile(r"(127\.0\.0\.1|localhost|\[::1\])(:[0-9]{1,5})?", re.I)
_SEGMENT = re.compile(r"(?!\.{1,2}$)[^\\:\x00-\x1f\x7f]+")
"""A name in a path: no parent, no separator or drive of another system, no control characters."""


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

    timeout = 60  # seconds that a connection may be silent

    def __init__(self, *arguments: Any, policy: str, **options: Any):
        self.policy = policy
        self._file: Path | None = None
        super().__init__(*arguments, **options)

    def parse_request(self) -> bool:
        """Whether the request goes on; otherwise it has been answered."""
        if not super().parse_request():
            return False
        hosts = self.headers.get_all("Host", [])
        if self.command not in METHODS:
            self.send_error(HTTPStatus.METHOD_NOT_ALLOWED)
        elif len(hosts) != 1 or not _OWN_HOST.fullmatch(hosts[0].strip()):
            self.send_error(HTTPStatus.FORBIDDEN, "This server answers requests to 127.0.0.1 or localhost only")
        else:
            return True
        return False

    def send_head(self) -> Any:
        try:
            self._file = self._found()
        except (OSError, ValueError):  # not there, too long, a circle of links, not UTF-8
            self._file = None
        if self._file is None:
            self.send_error(HTTPStatus.NOT_FOUND, "File not found")
            return None
        return super().send_head()

    def translate_path(self, path: str) -> str:
        return str(self._file)

    def _found(self) -> Path | None:
        """The regular file that is asked for, if it is in the folder, wherever links lead."""
        path = self.path.split("?", 1)[0].split("#", 1)[0]
        if not path.startswith("/") or not path.isascii():
            return None
        names = unquote(path, errors="strict").removeprefix("/").split("/")
        if not names[-1]:
            names[-1] = "index.html"
        if not all(map(_SEGMENT.fullmatch, names)):
            return None
        root = Path(self.directory).resolve()
        file = Path(os.path.realpath(root.joinpath(*names), strict=True))
        return file if file.is_relative_to(root) and file.is_file() else None

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

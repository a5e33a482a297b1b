"""A plain web server for tests, with or without range requests."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from webrnn.web.server import in_background


class Handler(SimpleHTTPRequestHandler):
    extensions_map = {**SimpleHTTPRequestHandler.extensions_map, ".mjs": "text/javascript"}  # noqa: RUF012

    def __init__(self, *arguments: Any, ranges: bool, sent: list[int], **options: Any):
        self.ranges, self.sent = ranges, sent
        super().__init__(*arguments, **options)

    def send_head(self) -> Any:
        found = re.fullmatch(r"bytes=(\d*)-(\d*)", self.headers.get("Range", ""))
        file = Path(self.translate_path(self.path))
        if not (self.ranges and found and file.is_file()):
            self.sent.append(file.stat().st_size if file.is_file() else 0)
            return super().send_head()
        data = file.read_bytes()
        first = int(found[1]) if found[1] else len(data) - int(found[2])
        part = data[first : int(found[2]) + 1 if found[1] and found[2] else None]
        self.sent.append(len(part))
        self.send_response(206)
        self.send_header("Content-Range", f"bytes {first}-{first + len(part) - 1}/{len(data)}")
        self.send_header("Content-Length", str(len(part)))
        self.end_headers()
        return io.BytesIO(part)

    def log_message(self, *arguments: Any) -> None:
        pass


@contextmanager
def serving(folder: Path, ranges: bool = True, sent: list[int] | None = None) -> Iterator[str]:
    """The address at which `folder` is served meanwhile; the bytes of each answer go to `sent`."""
    handler = partial(Handler, directory=str(folder), ranges=ranges, sent=[] if sent is None else sent)
    with in_background(ThreadingHTTPServer(("127.0.0.1", 0), handler)) as address:
        yield address.rstrip("/")

"""The demo's web server."""

from __future__ import annotations

import signal
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from webrnn.web.server import serve

from .conftest import served

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    ("name", "mime"),
    [
        ("", "text/html; charset=utf-8"),
        ("page/main.js", "text/javascript; charset=utf-8"),
        ("page/style.css", "text/css; charset=utf-8"),
        ("kernels.json", "application/json"),
        ("python/workbench.py", "text/plain; charset=utf-8"),
        ("wasm_simd.wasm", "application/wasm"),
    ],
)
def test_types_and_policy(demo: Path, name: str, mime: str) -> None:
    with served(demo) as address, urllib.request.urlopen(address + name) as response:
        assert response.headers["Content-Type"] == mime
        assert response.headers["Content-Security-Policy"].startswith(
            "default-src 'none'; script-src 'self' 'wasm-unsafe"
        )
        assert "unsafe-inline" not in response.headers["Content-Security-Policy"]


def test_missing_files_and_files_outside_are_not_served(demo: Path) -> None:
    (demo.parent / "secret").write_text("x")
    with served(demo) as address:
        for name in ("missing.js", "../secret", "%2e%2e/secret"):
            with pytest.raises(urllib.error.HTTPError, match="404"):
                urllib.request.urlopen(address + name)


def test_next_free_port_is_taken(demo: Path) -> None:
    with serve(demo, port=8400) as first, serve(demo, port=first.server_port) as second:
        assert second.server_port > first.server_port


def webrnn_serve(*arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "webrnn.cli", "serve", *arguments]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_ctrl_c_ends_it_cleanly(full_demo: Path) -> None:
    process = webrnn_serve("--as-is", "--folder", str(full_demo))
    assert process.stdout is not None
    assert process.stdout.readline().startswith("webrnn demo: http://127.0.0.1:")
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=20)
    assert (process.returncode, errors) == (0, "")


def test_says_what_to_do_when_there_is_no_page(tmp_path: Path) -> None:
    process = webrnn_serve("--as-is", "--folder", str(tmp_path))
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 1
    assert "leave out --as-is" in errors

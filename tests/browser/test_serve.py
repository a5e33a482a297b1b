"""The demo's web server."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from http.server import ThreadingHTTPServer
from pathlib import Path

import pytest

from webrnn.web.server import in_background, serve

from .conftest import served

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    ("name", "mime"),
    [
        ("", "text/html; charset=utf-8"),
        ("page/main.js", "text/javascript; charset=utf-8"),
        ("page/style.css", "text/css; charset=utf-8"),
        ("data.json", "application/json"),
        ("python/workbench.py", "text/plain; charset=utf-8"),
        ("host/wasm_simd.wasm", "application/wasm"),
    ],
)
def test_types_and_policy(demo: Path, name: str, mime: str) -> None:
    (demo / "data.json").write_text("{}")
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


def answer(server: ThreadingHTTPServer, request: bytes) -> bytes:
    """All that the server says to these bytes."""
    with socket.create_connection(("127.0.0.1", server.server_port), timeout=20) as connection:
        connection.sendall(request)
        connection.shutdown(socket.SHUT_WR)
        return b"".join(iter(lambda: connection.recv(65536), b""))


def asked(target: bytes | str, method: str = "GET", host: str | None = "localhost", rest: bytes = b"") -> bytes:
    path = target if isinstance(target, bytes) else target.encode()
    named = b"" if host is None else f"Host: {host}\r\n".encode()
    return method.encode() + b" " + path + b" HTTP/1.1\r\n" + named + rest + b"\r\n"


def status(said: bytes) -> int:
    return int(said.split(b" ", 2)[1])


@pytest.fixture
def guarded(tmp_path: Path) -> Iterator[tuple[ThreadingHTTPServer, Path]]:
    """A server of a small folder beside which there is a secret."""
    (tmp_path / "secret").write_text("secret")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret").write_text("secret")
    (tmp_path / "site-other").mkdir()
    (tmp_path / "site-other" / "secret").write_text("secret")
    folder = tmp_path / "site"
    (folder / "inner").mkdir(parents=True)
    (folder / "index.html").write_text('<meta http-equiv="Content-Security-Policy" content="default-src \'none\'">')
    (folder / "inner" / "a b.txt").write_text("inner")
    (folder / "inner" / "ü.txt").write_text("umlaut")
    (folder / "link").symlink_to(tmp_path / "secret")
    (folder / "linked").symlink_to(tmp_path / "outside", target_is_directory=True)
    (folder / "relative").symlink_to(Path("..") / "secret")
    (folder / "circle").symlink_to("circle")
    (folder / "within").symlink_to(folder / "inner" / "a b.txt")
    os.mkfifo(folder / "pipe")
    server = serve(folder, port=0)
    with in_background(server):
        yield server, folder


def test_files_of_the_folder_are_served(guarded: tuple[ThreadingHTTPServer, Path]) -> None:
    server, _ = guarded
    for target, content in [
        ("/", b"<meta"), ("/index.html?x=1#y", b"<meta"), ("/inner/a%20b.txt", b"inner"), ("/within", b"inner"),
        ("/inner/%C3%BC.txt", b"umlaut"), ("//index.html", b"<meta"),
    ]:  # fmt: skip
        said = answer(server, asked(target))
        assert status(said) == 200, target
        assert said.split(b"\r\n\r\n", 1)[1].startswith(content), target
    head, _, body = answer(server, asked("/inner/a%20b.txt", method="HEAD")).partition(b"\r\n\r\n")
    assert (status(head), body) == (200, b"")
    assert b"Content-Length: 5" in head


BAD_TARGETS = [
    "/%00", "/index.html%00", "/%00/../secret", "/../secret", "/%2e%2e/secret", "/%2E%2E%2Fsecret", "/..%2fsecret",
    "/inner/../../secret", "/inner/%2e%2e/%2e%2e/secret", "/..\\secret", "/%5c..%5csecret", "/inner\\..\\..\\secret",
    "/%252e%252e/secret", "/....//secret", "/./index.html", "/../site-other/secret", "/..;/secret",
    "/link", "/relative", "/linked/secret", "/linked", "/linked/", "/circle", "/circle/x", "/pipe", "/pipe/",
    "/inner", "/inner/", "/inner//a%20b.txt", "/index.html/", "/index.html/x", "/missing", "/C:/secret",
    "/" + "a" * 300, "/" + "a" * 5000, "/" + "a/" * 3000, "/%ff", "/%ff%fe", "/%ed%a0%80", "/%c0%ae%c0%ae/secret",
    b"/\xff", b"/\xc3\xbc", "/%0d%0aSet-Cookie:%20a", "/%0a", "/%7f", "/%1b[2J", "/~root", "/%", "/%zz",
    "http://localhost/index.html", "http://elsewhere/", "*", "index.html", "/file:///etc/passwd", "/etc/passwd",
    "//etc/passwd", "///etc/passwd", "/%2fetc/passwd", "/%2f%2fetc/passwd", "/C:%5Csecret",
]  # fmt: skip
METHODS = ("POST", "PUT", "DELETE", "OPTIONS", "TRACE", "CONNECT", "PATCH", "get", "G\x01T", "__init__", "GET\x00")
BAD_REQUESTS = [
    *(asked("/", method) for method in METHODS),
    b"GET / HTTP/9.9\r\nHost: localhost\r\n\r\n",
    b"GET / HTTP/1.1 more\r\nHost: localhost\r\n\r\n",
    b"GET /\r\n\r\n",
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
    b"\xff\xfe\xfd\r\n\r\n",
    b"GET /" + b"a" * 70_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
    asked("/", rest=b"X: " + b"a" * 70_000 + b"\r\n"),
    asked("/", rest=b"X: a\r\n" * 200),
    asked("/", rest=b" elsewhere.example\r\n"),
    asked("/", host=None),
]


def test_odd_paths_are_answered_with_4xx_and_without_a_traceback(
    guarded: tuple[ThreadingHTTPServer, Path], capfd: pytest.CaptureFixture[str]
) -> None:
    server, _ = guarded
    for target in BAD_TARGETS:
        for method in ("GET", "HEAD"):
            said = answer(server, asked(target, method))
            assert 400 <= status(said) < 500, (target, said)
            assert b"secret" not in said.split(b"\r\n\r\n", 1)[1], target
            assert b"Set-Cookie" not in said.split(b"\r\n\r\n")[0], target
            assert b"Location" not in said, target
    assert capfd.readouterr() == ("", "")


def test_odd_requests_are_refused(guarded: tuple[ThreadingHTTPServer, Path], capfd: pytest.CaptureFixture[str]) -> None:
    server, _ = guarded
    for request in BAD_REQUESTS:
        said = answer(server, request)
        assert b"http-equiv" not in said, request
        version = request.startswith(b"GET / HTTP/9.9")
        if said.startswith(b"HTTP/"):
            assert 400 <= status(said) < 500 or (version and status(said) == 505), (request, said)
    assert capfd.readouterr() == ("", "")


def test_odd_headers_do_no_harm(guarded: tuple[ThreadingHTTPServer, Path], capfd: pytest.CaptureFixture[str]) -> None:
    server, _ = guarded
    for rest in (
        b"If-Modified-Since: yesterday\r\n", b"If-Modified-Since: \xff\r\n", b"Range: bytes=9-1\r\n", b"\xff: \xff\r\n",
        b"Expect: 100-continue\r\n", b"Content-Length: -1\r\n", b"Content-Length: 99999999999999999999\r\n",
        b"If-Modified-Since: Fri, 31 Dec 99999 23:59:59 GMT\r\n", b"Connection: keep-alive, close\r\n",
    ):  # fmt: skip
        assert b" 200 " in answer(server, asked("/", rest=rest)), rest
    assert b" 304 " in answer(server, asked("/", rest=b"If-Modified-Since: Fri, 31 Dec 2100 23:59:59 GMT\r\n"))
    with socket.create_connection(("127.0.0.1", server.server_port)):
        pass
    assert capfd.readouterr() == ("", "")


def test_only_requests_to_this_machine_are_answered(guarded: tuple[ThreadingHTTPServer, Path]) -> None:
    server, _ = guarded
    port = server.server_port
    for host in (
        "127.0.0.1",
        "localhost",
        "[::1]",
        f"127.0.0.1:{port}",
        f"localhost:{port}",
        f"[::1]:{port}",
        "LocalHost",
    ):
        assert status(answer(server, asked("/", host=host))) == 200, host
    for host in (
        "elsewhere.example", f"elsewhere.example:{port}", "127.0.0.1.elsewhere.example", "localhost.elsewhere.example",
        "elsewhere.example@localhost", "localhost@elsewhere.example", "localhost:", "localhost:x", "localhost:80:80",
        "localhost,elsewhere.example", "127.0.0.2", "0.0.0.0", "2130706433", "::1", "localhost/", "xlocalhost",
        "localhost.", "",
    ):  # fmt: skip
        said = answer(server, asked("/", host=host))
        assert status(said) == 403, host
        assert b"http-equiv" not in said
    twice = asked("/", rest=b"Host: elsewhere.example\r\n")
    assert status(answer(server, twice)) == 403


def test_next_free_port_is_taken(demo: Path) -> None:
    with serve(demo, port=8400) as first, serve(demo, port=first.server_port) as second:
        assert second.server_port > first.server_port


def webrnn_serve(*arguments: str, on_ctrl_c: signal.Handlers = signal.SIG_DFL) -> subprocess.Popen[str]:
    """A shell starts jobs in the background with SIG_IGN, and so, perhaps, these tests."""
    start = f"import signal; signal.signal(signal.SIGINT, signal.Handlers({int(on_ctrl_c)}))"
    go_on = "import os, sys; os.execv(sys.executable, [sys.executable, *sys.argv[1:]])"
    command = [sys.executable, "-c", f"{start}; {go_on}", "-m", "webrnn.cli", "serve", *arguments]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_ctrl_c_ends_it_cleanly(full_demo: Path) -> None:
    process = webrnn_serve("--as-is", "--folder", str(full_demo))
    assert process.stdout is not None
    assert process.stdout.readline().startswith("webrnn demo: http://127.0.0.1:")
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=20)
    assert (process.returncode, errors) == (0, "")


def test_a_job_in_the_background_goes_on_after_ctrl_c(demo: Path) -> None:
    (demo / "site.json").write_text("{}")
    process = webrnn_serve("--as-is", "--folder", str(demo), on_ctrl_c=signal.SIG_IGN)
    assert process.stdout is not None
    address = process.stdout.readline().split()[2]
    process.send_signal(signal.SIGINT)
    with urllib.request.urlopen(address) as response:
        assert response.status == 200
    process.terminate()
    assert process.wait(timeout=20) == -signal.SIGTERM


def test_says_what_to_do_when_there_is_no_page(tmp_path: Path) -> None:
    process = webrnn_serve("--as-is", "--folder", str(tmp_path))
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 1
    assert "leave out --as-is" in errors

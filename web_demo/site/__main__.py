"""`python -m web_demo.site [--output FOLDER] [--serve]`: the site, below build/site unless told otherwise."""

from __future__ import annotations

import argparse
import functools
import sys
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from pyodide_pkg import core
from webrnn.errors import Error

from . import build, pages


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m web_demo.site", description=(__doc__ or "").partition(": ")[2])
    parser.add_argument("--output", type=Path, default=core.ROOT / "build" / "site")
    parser.add_argument("--no-jupyter", action="store_true", help="leave JupyterLite out")
    parser.add_argument(
        "--same-each-time", action="store_true", help="nothing of this machine: no timings, no onnxruntime-web"
    )
    parser.add_argument("--serve", action="store_true", help="then serve it on this machine")
    parser.add_argument("--port", type=int, default=8000, help="for --serve (default: 8000)")
    arguments = parser.parse_args(argv)
    folder = arguments.output.resolve()
    peer = core.ROOT / "build" / "peers" / "node_modules" / "onnxruntime-web" / "dist"
    is_compared = peer.exists() and not arguments.same_each_time
    playground = functools.partial(
        build.playground, peer=peer if is_compared else None, has_timings=not arguments.same_each_time
    )
    try:
        build.write(folder, build.Parts(playground, has_jupyter=not arguments.no_jupyter))
    except (Error, core.SetupError, pages.BrokenLink, FileExistsError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return serve(folder, arguments.port) if arguments.serve else 0


def serve(folder: Path, port: int) -> int:
    """Until it is interrupted. The server of `webrnn serve` sends a policy that JupyterLite cannot run with."""
    handler = functools.partial(SimpleHTTPRequestHandler, directory=str(folder))
    try:
        with ThreadingHTTPServer(("127.0.0.1", port), handler) as server:
            print(f"http://127.0.0.1:{server.server_port}/")
            server.serve_forever()
    except OSError as error:
        print(f"error: port {port}: {error}; choose another with --port", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        pass
    return 0


if __name__ == "__main__":
    sys.exit(main())

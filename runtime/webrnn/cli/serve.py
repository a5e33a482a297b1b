"""`webrnn serve`: the demo page, put together for this machine and served on it."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from webrnn.web.server import PORT


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--port", type=int, default=PORT, help="the first port to try (default: %(default)s)")
    parser.add_argument("--folder", type=Path, help="where the page is put together (default: build/demo, or a cache)")
    parser.add_argument("--pyodide", type=Path, metavar="FOLDER", help="a Pyodide with numpy and webrnn to use")
    parser.add_argument(
        "--onnxruntime-web",
        type=Path,
        metavar="FOLDER",
        default=os.environ.get("ONNXRUNTIME_WEB"),
        help="its dist folder, to time it beside webrnn (default: $ONNXRUNTIME_WEB)",
    )
    parser.add_argument("--no-models", action="store_true", help="do without the models that would be downloaded")
    parser.add_argument("--as-is", action="store_true", help="serve what was put together before")
    parser.add_argument("--build-only", action="store_true", help="put the page together and end")


def main(arguments: argparse.Namespace) -> None:
    from webrnn.demo import site
    from webrnn.errors import OptionError
    from webrnn.web import pyodide_source
    from webrnn.web.server import serve

    folder: Path = arguments.folder or site.default_folder()
    if arguments.as_is:
        if not (folder / "site.json").exists():
            raise OptionError(f"there is no page in {folder} yet: leave out --as-is")
    else:
        given = arguments.pyodide
        sources = site.Sources(
            pyodide=(lambda: Path(given)) if given else pyodide_source.ensure,
            peer=Path(arguments.onnxruntime_web) if arguments.onnxruntime_web else None,
            has_bundled=not arguments.no_models,
        )
        site.write(folder, sources, say=lambda line: print(line, flush=True))
    if arguments.build_only:
        return
    with serve(folder, arguments.port) as server:
        try:
            print(f"webrnn demo: {server.address}  (Ctrl-C ends it)", flush=True)
            server.serve_forever()
        except KeyboardInterrupt:
            print()

"""`python -m webrnn.web FOLDER`: webrnn.js and its WebAssembly, for a page that runs plans."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from webrnn.errors import Error
from webrnn.web.folders import write_host


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m webrnn.web", description="Write webrnn.js and its WebAssembly, for a page that runs plans."
    )
    parser.add_argument("folder", type=Path, help="where to write them; a page imports ./FOLDER/webrnn.js")
    folder = parser.parse_args(argv).folder
    try:
        write_host(folder)
    except (Error, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print(f"{folder / 'webrnn.js'}, with what it loads beside it")
    return 0


if __name__ == "__main__":
    sys.exit(main())

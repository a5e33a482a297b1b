"""`python -m bench.resampler`: what resampling costs in each quantum of 128 samples, in Node: down, and up again."""

from __future__ import annotations

import argparse
import subprocess
import tempfile
from pathlib import Path

from pyodide_pkg.core import node
from webrnn.web.folders import write_host


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.resampler", description=__doc__)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--rates", default="48000:16000,44100:16000,48000:8000,96000:16000,48000:44100")
    arguments = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as folder:
        write_host(Path(folder))
        (Path(folder) / "package.json").write_text('{"type": "module"}')
        script = Path(__file__).with_suffix(".mjs")
        subprocess.run([node(), str(script), folder, str(arguments.rounds), arguments.rates], check=True)


if __name__ == "__main__":
    main()

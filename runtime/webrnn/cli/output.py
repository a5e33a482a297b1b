"""What a command prints: text for people within the terminal, or with `--json` one JSON document and nothing else."""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from webrnn.errors import OptionError
from webrnn.tables import wrapped

STDOUT = "-"


_OPTIONS = {
    'session.export(..., carry="internal")': "webrnn export --carry internal",
    'carry={"input": "output"}': "--carry INPUT=OUTPUT",
    'carry="internal"': "--carry internal",
    'carry="auto"': "--carry auto",
    'time={"input": axis}': "--time INPUT=AXIS",
    "shapes={input: shape}": "--shape INPUT=1x16",
}
"""What errors say to callers in Python, and to people at a terminal."""


def in_options(text: str) -> str:
    """
    >>> in_options('it is for a fixed number of frames: time={"input": axis} opens the axis of time')
    'it is for a fixed number of frames: --time INPUT=AXIS opens the axis of time'
    """
    for argument, option in _OPTIONS.items():
        text = text.replace(argument, option)
    return text


def add_json_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--json",
        nargs="?",
        const=Path(STDOUT),
        type=Path,
        metavar="FILE.json",
        help="print JSON and nothing else; with a file: write it there, too",
    )


def with_json_value(argv: Sequence[str]) -> list[str]:
    """`--json` alone prints; what follows it is a file only if it is called like one, so that `--json model.onnx` does
    not take the model for it.

    >>> with_json_value(["run", "--json", "model.onnx"]), with_json_value(["run", "--json", "out.json"])
    (['run', '--json', '-', 'model.onnx'], ['run', '--json', 'out.json'])
    """
    found: list[str] = []
    for index, word in enumerate(argv):
        found.append(word)
        follows = argv[index + 1] if index + 1 < len(argv) else STDOUT
        if word == "--json" and follows != STDOUT and not follows.startswith("-") and not follows.endswith(".json"):
            found.append(STDOUT)
    return found


def prints_json(arguments: argparse.Namespace) -> bool:
    return arguments.json is not None and str(arguments.json) == STDOUT


def show(arguments: argparse.Namespace, data: Any, text: Callable[[], str], file: str = "") -> None:
    """Print the text, or the data; write the data if a file is to have them. `file` is a line with a path, which stays
    a line."""
    if prints_json(arguments):
        print(to_json(data))
        return
    print(wrapped(text()) + (f"\n\n{file}" if file else ""))
    if arguments.json is not None:
        write_text(arguments.json, to_json(data) + "\n")


def to_json(data: Any) -> str:
    """As JSON has it: numbers that are not finite are null."""
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"  # a notebook's, or a buffer's, may say nothing
    return json.dumps(_plain(data), indent=1, ensure_ascii=encoding.lower() not in ("utf-8", "utf8"))


def _plain(data: Any) -> Any:
    if isinstance(data, dict):
        return {str(name): _plain(item) for name, item in data.items()}
    if isinstance(data, list | tuple):
        return [_plain(item) for item in data]
    if isinstance(data, np.generic | np.ndarray):
        return _plain(data.tolist())
    if isinstance(data, float):
        return data if math.isfinite(data) else None
    return data if data is None or isinstance(data, str | int | bool) else str(data)


def write_text(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise OptionError(f"cannot write {str(path)!r}: {error.strerror}") from None

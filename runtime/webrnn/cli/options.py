"""Options that several commands have."""

from __future__ import annotations

import argparse
import ast
from collections.abc import Sequence
from typing import Any

import numpy as np

from webrnn.errors import OptionError


def add_model_options(parser: argparse.ArgumentParser) -> None:
    """How a model is read and optimized."""
    parser.add_argument(
        "--fixed",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="bind an input: a number, a list or a .npy file",
    )
    parser.add_argument("--disable", default="", metavar="PASS,...", help='passes not to run; "all" is every one')


def pairs(items: Sequence[str]) -> list[tuple[str, str]]:
    """
    >>> pairs(["x:0=a.npy", "y=3"])
    [('x:0', 'a.npy'), ('y', '3')]
    """
    found = []
    for item in items:
        name, sign, rest = item.rpartition("=")
        if not sign:
            raise OptionError(f"{item!r} is not of the form NAME=VALUE")
        found.append((name, rest))
    return found


def add_shape_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--shape",
        nargs="+",
        action="extend",
        default=[],
        metavar="NAME=N,N,...",
        help="shape of an input, for a model that has no plan for all sizes",
    )


def input_shapes(items: Sequence[str]) -> dict[str, list[int]]:
    """
    >>> input_shapes(["x=1,512", "sr="])
    {'x': [1, 512], 'sr': []}
    """
    found = {}
    for name, text in pairs(items):
        numbers = [size.strip() for size in text.split(",")] if text else []
        if not all(size.isdecimal() for size in numbers):
            raise OptionError(f"{text!r} is not a shape, such as 1,512")
        found[name] = [int(size) for size in numbers]
    return found


def sizes(items: Sequence[str]) -> dict[str, int]:
    """
    >>> sizes(["steps=100"])
    {'steps': 100}
    """
    return {name: _size(text) for name, text in pairs(items)}


def _size(text: str) -> int:
    if not text.isdecimal():
        raise OptionError(f"{text!r} is not a size")
    return int(text)


def loaded(file: str) -> np.ndarray:
    try:
        return np.load(file, allow_pickle=False)
    except (OSError, ValueError) as error:
        raise OptionError(f"cannot read {file!r}: {error}") from None


def fixed_inputs(items: Sequence[str]) -> dict[str, Any]:
    """A number, a list of numbers, True or False, or the path of an array.

    >>> fixed_inputs(["sr=16000", "gain=[0.5, 1]"])
    {'sr': 16000, 'gain': [0.5, 1]}
    """
    return {name: loaded(text) if text.endswith(".npy") else _literal(text) for name, text in pairs(items)}


def _literal(text: str) -> Any:
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        raise OptionError(f"{text!r} is neither a number, nor a list of them, nor the path of a .npy file") from None


def pass_names(text: str) -> list[str]:
    """
    >>> pass_names("fold_constants,merge_common")
    ['fold_constants', 'merge_common']
    """
    return [name for name in text.split(",") if name]

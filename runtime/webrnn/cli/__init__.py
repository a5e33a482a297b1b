"""The `webrnn` command: one module a sub-command."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from importlib import import_module

from webrnn.errors import Error

COMMANDS = {
    "info": "inputs, outputs, states, ops and weights of a model",
    "run": "run a model on given or random inputs",
    "map": "run a model on each of many files, on all cores or on a cluster",
    "optimize": "what the passes do to a model, and what it is then",
    "export": "write a model as a plan file, for a page or for another process",
    "quantize": "what small weights do to a model: size, error and time, node by node",
    "plan": "the program that a model becomes, instruction by instruction",
    "serve": "the demo page, with models, Python and timings of this machine",
    "profile": "where the time of a model goes: nodes, instructions, what is fused inside them",
    "bench": "how long models take on each backend, or ticks of streams",
}
"""Each command and what it does. The module of the same name has `add_arguments(parser)` and `main(arguments)`, which
may return an exit code."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command: its exit code, by default 0. Errors of webrnn's are printed, and the result is 1."""
    parser = argparse.ArgumentParser(prog="webrnn", description="Recurrent ONNX models.")
    commands = parser.add_subparsers(dest="command", required=True, metavar="command")
    modules = {}
    for name, summary in COMMANDS.items():
        modules[name] = import_module(f"{__package__}.{name}")
        modules[name].add_arguments(commands.add_parser(name, help=summary, description=summary))
    arguments = parser.parse_args(argv)
    try:
        code: int | None = modules[arguments.command].main(arguments)
        sys.stdout.flush()
    except BrokenPipeError:  # the reader, `head` say, has seen enough; the interpreter must not flush again
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except Error as error:
        print(f"webrnn: {type(error).__name__}: {error}", file=sys.stderr)
        return 1
    else:
        return code or 0
    return 0

"""The `webrnn` command: one module a sub-command.

It ends with 0; with 1 if something is wrong, which is one line on stderr, `webrnn: Kind: message`, also with `--json`;
with 2 and its usage if the command line cannot be read at all. On stdout nothing is said of errors.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any

from webrnn import __version__
from webrnn.errors import Error, OptionError

COMMANDS = {
    "info": "inputs, outputs, states, ops and weights of a model",
    "run": "run a model on given inputs, or on inputs that are made up",
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

FAILED, INTERRUPTED = 1, 130
"""Exit codes; wrong usage is argparse's 2."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command: its exit code, by default 0. Errors are printed, and end no process: see above."""
    try:
        return _main(sys.argv[1:] if argv is None else argv)
    except KeyboardInterrupt:  # also while modules are imported, which is why none is above
        return INTERRUPTED


def _main(words: Sequence[str]) -> int:
    from .output import with_json_value

    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # names of models may have letters that a terminal lacks
            stream.reconfigure(errors="replace" if stream is sys.stdout else "backslashreplace")
    parser, modules = _parser(words)
    arguments = parser.parse_args(with_json_value(words))
    try:
        code: int | None = modules[arguments.command].main(arguments)
        if sys.stdout is not None:
            sys.stdout.flush()
    except BrokenPipeError:  # the reader, `head` say, has seen enough; the interpreter must not flush again
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except Error as error:
        return _say(error)
    except OSError as error:
        place = f" {error.filename!r}" if error.filename else ""
        return _say(OptionError(f"{(error.strerror or str(error)).lower()}{place}"))
    except MemoryError as error:
        return _say(OptionError(f"there is not enough memory: {error}"))
    else:
        return code or 0
    return 0


def _parser(words: Sequence[str]) -> tuple[argparse.ArgumentParser, dict[str, Any]]:
    """Of all commands, but the options only of the one that is asked for: its module alone is imported."""
    parser = argparse.ArgumentParser(prog="webrnn", description="Recurrent ONNX models.")
    parser.add_argument("--version", action="version", version=f"webrnn {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="command")
    modules = {}
    for name, summary in COMMANDS.items():
        command = commands.add_parser(name, help=summary, description=summary)
        if name in words[:1]:
            modules[name] = import_module(f"{__package__}.{name}")
            modules[name].add_arguments(command)
    return parser, modules


def _say(error: Error) -> int:
    """In one line, whatever it lists."""
    from .output import in_options

    first, *more = [line.strip() for line in in_options(str(error)).splitlines()] or [""]
    print(f"webrnn: {type(error).__name__}: {' '.join([first, '; '.join(more)]).rstrip()}", file=sys.stderr)
    return FAILED

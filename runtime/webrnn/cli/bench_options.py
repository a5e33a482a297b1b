"""Which options of `webrnn bench` apply to what: one that does not raises instead of being ignored."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from webrnn.bench.revision import revision
from webrnn.errors import OptionError

TIMES, AB, AGAINST = "times of models", "--ab", "--against"
STREAM, STREAM_AB, STREAM_AGAINST = "--stream", "--stream --ab", "--stream --against"
OF_MODELS, OF_STREAMS = (TIMES, AB, AGAINST), (STREAM, STREAM_AB, STREAM_AGAINST)
MODES = (*OF_MODELS, *OF_STREAMS)
PAIRED = (AGAINST, STREAM_AB, STREAM_AGAINST)

Needs = tuple[tuple[str, ...], ...]
"""Options that have to be there too: of each group one."""


@dataclass(frozen=True)
class Rule:
    """Where an option applies."""

    modes: tuple[str, ...] = MODES
    needs: Mapping[str, Needs] = field(default_factory=dict)
    """By mode."""


WEB: Needs = (("browser", "pyodide"),)
RULES = {
    "model": Rule(),
    "json": Rule(),
    "backend": Rule(),
    "seconds": Rule(),
    "size": Rule(),
    "shape": Rule(),
    "fixed": Rule(),
    "compare": Rule((TIMES, STREAM)),
    "inputs": Rule(OF_MODELS),
    "tolerance": Rule((TIMES, AB)),
    "peers": Rule((TIMES, STREAM), {STREAM: (("browser",),)}),
    "browser": Rule((TIMES, STREAM)),
    "pyodide": Rule((TIMES,)),
    "html": Rule((TIMES,)),
    "ab": Rule((AB, STREAM_AB)),
    "against": Rule((AGAINST, STREAM_AGAINST)),
    "weights": Rule((TIMES,)),
    "rounds": Rule((TIMES, AB, *PAIRED)),
    "tflite": Rule((TIMES,), {TIMES: (("peers",),)}),
    "modules": Rule((TIMES, STREAM), {TIMES: (("peers",), *WEB), STREAM: (("peers",), ("browser",))}),
    "stream": Rule(OF_STREAMS),
    "carry": Rule(OF_STREAMS),
    "depth": Rule(OF_STREAMS),
    "frame_ms": Rule((STREAM,)),
    "no_onnxruntime": Rule((STREAM,)),
}
"""By name in the namespace."""


def flag(name: str) -> str:
    """
    >>> flag("frame_ms")
    '--frame-ms'
    """
    return f"--{name.replace('_', '-')}" if name != "model" else "a model"


def mode_of(arguments: argparse.Namespace) -> str:
    if arguments.ab is not None and arguments.against is not None:
        raise OptionError("--ab and --against exclude each other: a switch on and off, or two revisions")
    if arguments.ab is not None:
        return STREAM_AB if arguments.stream else AB
    if arguments.against is not None:
        return STREAM_AGAINST if arguments.stream else AGAINST
    return STREAM if arguments.stream else TIMES


def checked_mode(arguments: argparse.Namespace) -> str:
    """What is asked for. Raises if an option was given that does not apply to it."""
    mode = mode_of(arguments)
    given = given_options(arguments)
    if arguments.ab == "help":
        if others := [flag(name) for name in given if name not in ("ab", "stream")]:
            raise OptionError(f"--ab help lists what there is; {others[0]} does not apply to it")
        return mode
    for name in given:
        rule = RULES[name]
        if mode not in rule.modes:
            raise OptionError(f"{flag(name)} does not apply to {_said(mode)}: it applies to {_listed(rule.modes)}")
        for group in rule.needs.get(mode, ()):
            if not any(each in given for each in group):
                wanted = " or ".join(flag(each) for each in group)
                raise OptionError(f"{flag(name)} applies only together with {wanted}")
    if mode in OF_STREAMS and len(arguments.model) > 1:
        raise OptionError(f"--stream takes one model, not {len(arguments.model)}")
    for name in ("json", "html"):
        _check_place(flag(name), getattr(arguments, name))
    return mode


def given_options(arguments: argparse.Namespace) -> list[str]:
    """Those that are not as they are by default, which is None, False or an empty list for all of them."""
    values = {name: getattr(arguments, name) for name in RULES}
    return [name for name, value in values.items() if value is not None and value is not False and value != []]


def _said(mode: str) -> str:
    return mode if mode != TIMES else "times of models (without --stream, --ab and --against)"


def _listed(modes: tuple[str, ...]) -> str:
    return ", ".join(_said(mode) for mode in modes)


def _check_place(option: str, file: Path | None) -> None:
    """Before hours are spent on what then cannot be written."""
    if file is not None and str(file) != "-" and (file.is_dir() or not file.absolute().parent.is_dir()):
        raise OptionError(f"{option} {file}: that is no place for a file")


def names(option: str, text: str | None) -> list[str]:
    """Of a list with commas; none if the option was not given.

    >>> names("--backend", "native,wasm"), names("--backend", None)
    (['native', 'wasm'], [])
    """
    found = [name for name in (text or "").split(",") if name]
    if text is not None and not found:
        raise OptionError(f"{option} names nothing")
    return found


def require_files(arguments: argparse.Namespace, files: list[str]) -> None:
    """Built-in models have inputs and sizes of their own."""
    for name in ("size", "shape", "fixed", "inputs"):
        if getattr(arguments, name) and not files:
            raise OptionError(f"{flag(name)} applies to models from files: the built-in ones have their own")


def measured_with(arguments: argparse.Namespace, mode: str, **chosen: Any) -> dict[str, Any]:
    """The revision and all options, for JSON; `chosen` is what was taken where nothing was given."""
    options = {name: _plain(getattr(arguments, name)) for name in RULES}
    for name, value in chosen.items():
        if name not in given_options(arguments):
            options[name] = _plain(value)
    return {"revision": revision().as_data(), "options": {"mode": mode, **options}}


def _plain(value: Any) -> Any:
    return str(value) if isinstance(value, Path) else value

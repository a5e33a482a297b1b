"""The reference of the Python package, from its signatures and docstrings, as Markdown."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import re
from collections.abc import Iterator
from pathlib import PurePath
from types import ModuleType
from typing import Any

MODULES = {
    "webrnn": "Sessions, streams and errors",
    "webrnn.audio": "Frames, spectra, rates, speech",
    "webrnn.audio.plans": "Audio models as plans",
    "webrnn.build": "Models from weights",
    "webrnn.corpora": "A model on many items",
    "webrnn.quantize": "Small weights, weighed",
    "webrnn.models": "Real models to try things with",
    "webrnn.engine.kernels": "The C kernels by hand",
}
"""The public modules, and what each is for."""
ALSO = {
    "webrnn": {
        "Stream": "webrnn.engine.streams.stream:Stream",
        "StreamPool": "webrnn.engine.streams.pool:StreamPool",
        "map": "webrnn.corpora.api:map",
    },
    "webrnn.models": {"fetch": "webrnn.models:fetch"},
}
"""What one gets from a module without importing it by name."""
UNINHERITED = (object, Exception, BaseException, ValueError, RuntimeError, TypeError, tuple, dict, list)


def page(name: str) -> str:
    """The page of a module."""
    module = importlib.import_module(name)
    parts = [f"# {name}\n\n{_prose(module)}"]
    modules = [other for other in MODULES if other.rpartition(".")[0] == name]
    for label, value in sorted(_members(name, module), key=_order):
        if isinstance(value, ModuleType):
            if value.__name__ not in modules:
                modules.append(value.__name__)
        elif inspect.isclass(value):
            parts += _class(label, value)
        elif callable(value):
            parts.append(f"## {label}\n\n{_signature(label, value)}\n{_prose(value)}")
    if modules:
        rows = "\n".join(
            f"- [`{other}`]({other}.md): {MODULES[other]}" for other in sorted(modules) if other in MODULES
        )
        parts.append(f"## Modules\n\n{rows}")
    return "\n\n".join(parts) + "\n"


def _members(name: str, module: ModuleType) -> Iterator[tuple[str, Any]]:
    public = getattr(module, "__all__", None) or [
        label
        for label, value in vars(module).items()
        if not label.startswith("_") and inspect.isfunction(value) and value.__module__ == name
    ]
    for label in public:
        if not label.startswith("__"):
            yield label, getattr(module, label)
    for label, place in ALSO.get(name, {}).items():
        home, _, attribute = place.partition(":")
        if label not in public:
            yield label, getattr(importlib.import_module(home), attribute)


def _order(member: tuple[str, Any]) -> tuple[bool, bool, str]:
    """Classes, functions, and errors at the end."""
    label, value = member
    return (inspect.isclass(value) and issubclass(value, BaseException), not inspect.isclass(value), label)


def _class(label: str, value: type) -> list[str]:
    bases = [base.__name__ for base in value.__bases__ if base not in (object,) and not base.__name__.startswith("_")]
    is_error = issubclass(value, BaseException)
    head = f"```python\nclass {label}({', '.join(bases)})\n```\n" if is_error else _signature(label, value, "class ")
    parts = [f"## {label}\n\n{head}\n{_prose(value)}"]
    for name, member in _public_attributes(value):
        kind = inspect.getattr_static(value, name)
        if isinstance(kind, property) or not callable(member):
            doc = _prose(kind.fget if isinstance(kind, property) else None)
            of = inspect.signature(kind.fget).return_annotation if isinstance(kind, property) and kind.fget else ""
            shown = "" if of in ("", inspect.Signature.empty) else f": {_annotation(of)}"
            parts.append(f"### {label}.{name}\n\n```python\n{name}{shown}\n```\n{doc}")
        else:
            parts.append(f"### {label}.{name}\n\n{_signature(name, member, without_self=True)}\n{_prose(member)}")
    if dataclasses.is_dataclass(value) and (fields := _fields(value)):
        parts[0] += f"\n\n{fields}"
    return parts


def _public_attributes(value: type) -> Iterator[tuple[str, Any]]:
    names: dict[str, None] = {}
    for base in value.__mro__:
        if base in UNINHERITED or not base.__module__.startswith("webrnn"):
            continue
        for name, member in vars(base).items():
            if name.startswith("_") or not (
                callable(member) or isinstance(member, (property, classmethod, staticmethod))
            ):
                continue
            names.setdefault(name)
    for name in names:
        yield name, getattr(value, name)


def _fields(value: type) -> str:
    """The fields of a dataclass, with the strings that stand below them in the source."""
    try:
        source = inspect.getsource(value)
    except (OSError, TypeError):
        return ""
    rows = []
    for item in dataclasses.fields(value):
        if item.name.startswith("_"):
            continue
        found = re.search(rf'^    {item.name}\b.*\n    """((?:.|\n)*?)"""', source, re.M)
        about = " ".join(found[1].split()) if found else ""
        rows.append(f"- `{item.name}: {_annotation(item.type)}`" + (f": {about}" if about else ""))
    return "\n".join(rows)


def _annotation(of: Any) -> str:
    return of if isinstance(of, str) else inspect.formatannotation(of)


def _signature(label: str, value: Any, before: str = "", without_self: bool = False) -> str:
    """As a block of code, with a line for each parameter if it is long."""
    try:
        signature = inspect.signature(value)
    except (ValueError, TypeError):
        return f"```python\n{before}{label}(...)\n```\n"
    parameters = list(signature.parameters.values())
    if without_self and parameters and parameters[0].name in ("self", "cls"):
        parameters = parameters[1:]
    signature = signature.replace(parameters=[_as_written(each, value) for each in parameters])
    if before:
        signature = signature.replace(return_annotation=inspect.Signature.empty)
    text = re.sub(r"'([^']*)'", _unquoted, str(signature))
    line = f"{before}{label}{text}"
    if len(line) > 88:
        inner, _, result = text[1:].rpartition(")")
        pieces = "".join(f"    {piece},\n" for piece in _split(inner))
        line = f"{before}{label}(\n{pieces}){result}"
    return f"```python\n{line}\n```\n"


class _Name(str):
    __repr__ = str.__str__


def _as_written(parameter: inspect.Parameter, function: Any) -> inspect.Parameter:
    """With the name of the constant that is the default, if that is no plain value: a folder is another one on each
    machine."""
    default = parameter.default
    if default is None or isinstance(default, (bool, int, float, str, bytes, tuple)):
        return parameter
    known = vars(importlib.import_module(function.__module__))
    name = next((name for name, value in known.items() if name.isupper() and value is default), None)
    if name is None and isinstance(default, PurePath):
        raise ValueError(f"{function.__qualname__}: the path that {parameter.name} is by default has no name")
    return parameter.replace(default=_Name(name)) if name else parameter


def _unquoted(found: re.Match[str]) -> str:
    """Annotations are strings here; defaults that are strings keep their quotes."""
    is_default = found.string[: found.start()].rstrip().endswith("=")
    return found[0] if is_default else found[1]


def _split(text: str) -> list[str]:
    """At commas that are in no bracket."""
    pieces, depth, start = [], 0, 0
    for index, letter in enumerate(text):
        depth += (letter in "([{") - (letter in ")]}")
        if letter == "," and not depth:
            pieces.append(text[start:index].strip())
            start = index + 1
    return [*pieces, text[start:].strip()]


def _prose(value: Any) -> str:
    """A docstring, its examples as code and its references to pages as links."""
    own = inspect.getdoc(value) if value is not None else None
    if not own:
        return ""
    text, is_example = [], False
    for line in own.splitlines():
        if line.startswith(">>>") and not is_example:
            text.append("\n```pycon")
            is_example = True
        elif is_example and not line.strip():
            text.append("```\n")
            is_example = False
        text.append(line if is_example else re.sub(r"\bdocs/([\w-]+)\.md\b", r"[docs/\1.md](../docs/\1.md)", line))
    if is_example:
        text.append("```")
    return "\n".join(text)

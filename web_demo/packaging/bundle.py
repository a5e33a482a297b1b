"""JavaScript modules joined to one, so that a page loads one file, with a source map.

It knows the forms that the modules here use: named imports and exports, each in one statement that begins a line, and
no text that goes over several lines. Names that a module has for itself may be those of other modules.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, replace
from pathlib import Path
from string import ascii_lowercase, ascii_uppercase, digits

from webrnn.web.folders import IMPORT, modules

from .smaller import smaller

_BASE64 = ascii_uppercase + ascii_lowercase + digits + "+/"

_DECLARED = re.compile(r"^(export )?(?:async )?(?:const|let|class|function) (\w+)", re.M)
_SEVERAL = re.compile(r"^(?:const|let) [\[{]([^\]}]*)[\]}] =", re.M)
_OTHER_FORMS = re.compile(r"^(import [^{(]|export (?!\{|const|let|class|function|async)).*", re.M)


class BundleError(Exception):
    """The modules cannot be joined as they are."""


@dataclass(frozen=True)
class Line:
    text: str
    module: str | None = None
    """Where it is from, and its number there, from 0; None if it is the bundle's own."""
    number: int = 0


@dataclass
class Bundle:
    modules: list[str]
    """Those that are joined."""
    lines: list[Line]
    imported: dict[str, set[str]]
    """What it still imports, by module."""

    @property
    def text(self) -> str:
        return "".join(f"{line.text}\n" for line in self.lines)

    def source_map(self, name: str, folder: str) -> str:
        """For the script `name`, whose modules are in a folder beside it: where each of its lines is from."""
        segments, source, number = [], 0, 0
        for line in self.lines:
            if line.module is None:
                segments.append("")
                continue
            place = self.modules.index(line.module)
            segments.append("".join(map(_digits, (0, place - source, line.number - number, 0))))
            source, number = place, line.number
        sources = [f"{folder}/{module}" for module in self.modules]
        found = {"version": 3, "file": name, "sources": sources, "names": [], "mappings": ";".join(segments)}
        return json.dumps(found, separators=(",", ":"))


def _digits(number: int) -> str:
    """A number in a source map: five bits a digit, the sign in the lowest bit.

    >>> [_digits(number) for number in (0, 1, -1, 16)]
    ['A', 'C', 'D', 'gB']
    """
    rest = (abs(number) << 1) | (number < 0)
    found = ""
    while True:
        rest, digit = rest >> 5, rest & 31
        found += _BASE64[digit | (32 if rest else 0)]
        if not rest:
            return found


def bundle(
    folder: Path, entry: str, external: dict[str, str] | None = None, also_export: Collection[str] = ()
) -> Bundle:
    """The module `entry` with all that it imports; `external` says where modules are that are left out."""
    external = external or {}
    texts = {name: (folder / name).read_text() for name in modules(folder, entry, without=external)}
    _check(texts)
    imported: dict[str, set[str]] = {}
    exported = {*_exports(texts[entry]), *also_export}
    for name, text in texts.items():
        for kind, names, module in IMPORT.findall(text):
            if kind == "export" and name == entry:
                exported |= _names(names)
            if module in external:
                imported.setdefault(external[module], set()).update(_names(names))
    apart = _apart(texts)
    lines = [Line(f'import {{ {", ".join(sorted(names))} }} from "./{module}";') for module, names in imported.items()]
    for name, text in texts.items():
        blank = IMPORT.sub(lambda found: "\n" * found[0].count("\n"), text)
        plain = _DECLARED.sub(lambda found: found[0].removeprefix("export "), blank)
        own = [Line(each, name, number) for number, each in enumerate(plain.splitlines())]
        lines += _enclosed(own, _exports(text)) if name in apart else own
    if exported:
        lines.append(Line(f"export {{ {', '.join(sorted(exported))} }};"))
    kept = smaller("\n".join(line.text for line in lines)).split("\n")
    whole = [replace(line, text=text) for line, text in zip(lines, kept, strict=True) if text]
    return Bundle(list(texts), whole, imported)


def _names(text: str) -> set[str]:
    return {name.strip() for name in text.split(",") if name.strip()}


def _check(texts: dict[str, str]) -> None:
    for name, text in texts.items():
        if found := _OTHER_FORMS.search(IMPORT.sub("", text)):
            raise BundleError(f"{name}: {found[0]!r} is of a form that is not known here")
        if any(line.count("`") % 2 for line in text.splitlines()):
            raise BundleError(f"{name} has a text that goes over several lines")
        if " as " in "".join(names for _, names, _ in IMPORT.findall(text)):
            raise BundleError(f"{name} gives an import another name")
    counts = Counter(name for text in texts.values() for name in _exports(text))
    twice = [name for name, count in counts.items() if count > 1]
    if twice:
        raise BundleError(f"several modules export {', '.join(twice)}")


def _exports(text: str) -> list[str]:
    return [name for keyword, name in _DECLARED.findall(text) if keyword]


def _declared(text: str) -> list[str]:
    """All names that a module has for itself or exports, those of `const [a, b] = ...` too."""
    several = [name for names in _SEVERAL.findall(text) for name in _names(names)]
    return [*(name for _, name in _DECLARED.findall(text)), *several]


def _apart(texts: dict[str, str]) -> set[str]:
    """The modules that have a name for themselves which another one has, too: each gets a function of its own."""
    counts = Counter(name for text in texts.values() for name in _declared(text))
    return {
        module
        for module, text in texts.items()
        if any(counts[name] > 1 for name in set(_declared(text)) - set(_exports(text)))
    }


def _enclosed(lines: list[Line], exports: list[str]) -> list[Line]:
    names = f"{{ {', '.join(exports)} }}"
    given, returned = (f"const {names} = ", f"return {names};") if exports else ("", "")
    return [Line(f"{given}(() => {{"), *lines, Line(f"{returned}}})();")]

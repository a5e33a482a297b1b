"""JavaScript modules joined to one, so that a page loads one file: only imports and exports change, and comments go.

It knows the forms that the modules here use: named imports and exports, each in one statement that begins a line, and
no text that goes over several lines.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from webrnn.web.folders import IMPORT, modules

_DECLARED = re.compile(r"^(export )?(?:async )?(?:const|let|class|function) (\w+)", re.M)
_COMMENTS = re.compile(
    r"^ *//.*\n|^ */\*\*?\s[\s\S]*?\*/\n"  # lines of their own
    r"|(?<=[;,{}()\[\]]) +//[^\n\"'`]*$",  # behind code; in a text the end of the text would follow
    re.M,
)
_OTHER_FORMS = re.compile(r"^(import [^{(]|export (?!\{|const|let|class|function|async)).*", re.M)


class BundleError(Exception):
    """The modules cannot be joined as they are."""


@dataclass
class Bundle:
    modules: list[str]
    """Those that are joined."""
    text: str
    imported: dict[str, set[str]]
    """What it still imports, by module."""


def bundle(
    folder: Path, entry: str, external: dict[str, str] | None = None, also_export: Collection[str] = ()
) -> Bundle:
    """The module `entry` with all that it imports; `external` says where modules are that are left out."""
    external = external or {}
    texts = {name: (folder / name).read_text() for name in modules(folder, entry, without=external)}
    _check(texts)
    imported: dict[str, set[str]] = {}
    exported = {name for keyword, name in _DECLARED.findall(texts[entry]) if keyword} | set(also_export)
    for name, text in texts.items():
        for kind, names, module in IMPORT.findall(text):
            if kind == "export" and name == entry:
                exported |= _names(names)
            if module in external:
                imported.setdefault(external[module], set()).update(_names(names))
    parts = [f'import {{ {", ".join(sorted(names))} }} from "./{module}";\n' for module, names in imported.items()]
    for text in texts.values():
        parts.append(_DECLARED.sub(lambda found: found[0].removeprefix("export "), IMPORT.sub("", text)))
    if exported:
        parts.append(f"export {{ {', '.join(sorted(exported))} }};\n")
    return Bundle(list(texts), without_comments("\n".join(parts)), imported)


def without_comments(text: str) -> str:
    """A script without comments, indentation and empty lines: a fifth less to load, compressed.

    >>> print(without_comments("/** A doubled\\n * number */\\nfunction f(a) {\\n\\n  return 2 * a; // twice\\n}"))
    function f(a) {
    return 2 * a;
    }
    """
    return re.sub(r"^\s+", "", _COMMENTS.sub("", text), flags=re.M)


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
    counts = Counter(name for text in texts.values() for _, name in _DECLARED.findall(text))
    twice = [name for name, count in counts.items() if count > 1]
    if twice:
        raise BundleError(f"several modules declare {', '.join(twice)}")

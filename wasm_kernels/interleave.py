"""Assembly of several builds of the same functions as one file: `python interleave.py merged.s first.s second.s ...`.

A function of one build stands beside the same function of the others. They are alike, and an archive sees what is alike
only when it is near: the native library takes a third less of a wheel. It is done in assembly, because not every linker
can be told an order.

A name that is not global gets the name of the build: each may have a `static` function of that name.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

BEGIN = re.compile(r"[#@/;]+ -- Begin function (\S+)\s*$")
END = re.compile(r"[#@/;]+ -- End function\s*$")
LABEL = re.compile(r"([A-Za-z_.$][\w.$]*):")
GLOBAL = re.compile(r"\s*\.(?:globl|weak)\s+(\S+)")
SECTION = re.compile(r"\s*\.(?:section|text|data|bss)\b")
OPENING = re.compile(r"\s*[\w.$]+")
NAME = re.compile(r"(?<![\w.$%])[A-Za-z_.$][\w.$]*")
TEXT = re.compile(r"\s*\.(?:ascii|asciz|string)\b")
#: Of a file, not of a part of it.
ONCE = re.compile(r"^[ \t]*\.(?:build_version|file|ident)\b.*\n", re.MULTILINE)


class NotAsExpected(Exception):
    """The compiler wrote something else than is known here."""


def merged(builds: dict[str, str]) -> str:
    """One text from the text of each build by its name."""
    together: dict[str, list[str]] = {}
    ends: list[str] = []
    for build, text in builds.items():
        *functions, (_, end) = _split(_with_own_names(ONCE.sub("", text) if ends else text, build))
        if not functions:
            raise NotAsExpected(f"the assembly of {build} does not mark where functions begin and end")
        for name, lines in functions:
            together.setdefault(name.removesuffix(f".{build}").removesuffix(f"_{build}"), []).append(lines)
        ends.append(end)
    return "\n".join([*(lines for alike in together.values() for lines in alike), *ends])


def _split(text: str) -> Iterator[tuple[str, str]]:
    """Each function with its name and all that precedes it, then the rest; each begins in the section that it needs."""
    name, section = "", ""
    lines: list[str] = []
    for line in text.splitlines():
        lines.append(line)
        if SECTION.match(line):
            section = line
        if found := BEGIN.search(line):
            name = found[1]
        elif END.search(line):
            yield name, "\n".join(lines)
            lines = [section]
    yield "", "\n".join(lines)


def _with_own_names(text: str, build: str) -> str:
    own = {label[1] for label in map(LABEL.match, text.splitlines()) if label} - set(GLOBAL.findall(text))

    def renamed(name: re.Match[str]) -> str:
        return f"{name[0]}.{build}" if name[0] in own else name[0]

    def line_with_own_names(line: str) -> str:
        if TEXT.match(line):
            return line
        opening = None if LABEL.match(line) else OPENING.match(line)  # an instruction may be called as a function is
        start = opening.end() if opening else 0
        return line[:start] + NAME.sub(renamed, line[start:])

    return "\n".join(map(line_with_own_names, text.splitlines()))


def main(target: str, *sources: str) -> None:
    Path(target).write_text(merged({Path(source).stem: Path(source).read_text() for source in sources}))


if __name__ == "__main__":
    main(*sys.argv[1:])

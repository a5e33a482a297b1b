"""Assembly of several builds of the same functions as one file: `python interleave.py merged.s first.s second.s ...`.

A function of one build stands beside the same function of the others. They are alike, and an archive sees what is alike
only when it is near: the native library takes a third less of a wheel. It is done in assembly, because not every linker
can be told an order.

A function with the same instructions in several builds, which calls what is the same again, is there once and has the
names of all: checks of plans, copies, integers, and whatever else multiplies nothing.

A name that is not global gets the name of the build: each may have a `static` function of that name.
"""

from __future__ import annotations

import re
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

BEGIN = re.compile(r"([#@/;]+) -- Begin function (\S+)\s*$")
END = re.compile(r"[#@/;]+ -- End function\s*$")
LABEL = re.compile(r"([A-Za-z_.$][\w.$]*):")
GLOBAL = re.compile(r"\s*\.(?:globl|weak)\s+(\S+)")
SECTION = re.compile(r"\s*\.(?:section|text|data|bss)\b")
OPENING = re.compile(r"\s*[\w.$]+")
NAME = re.compile(r"(?<![\w.$%])[A-Za-z_.$][\w.$]*")
TEXT = re.compile(r"\s*\.(?:ascii|asciz|string)\b")
ABOUT_LABEL = re.compile(r"\s*\.(?:globl|weak|hidden|private_extern|type|def|scl|endef)\b")
#: Of a file, not of a part of it.
ONCE = re.compile(r"^[ \t]*\.(?:build_version|file|ident)\b.*\n", re.MULTILINE)


class NotAsExpected(Exception):
    """The compiler wrote something else than is known here."""


@dataclass(frozen=True, eq=False)
class Function:
    """A function of one build, with the constants and jump tables that the compiler puts around it."""

    name: str
    build: str
    text: str

    @property
    def base(self) -> str:
        """What it is called in all builds."""
        return self.name.removesuffix(f".{self.build}").removesuffix(f"_{self.build}")

    @cached_property
    def lines(self) -> list[str]:
        return self.text.splitlines()

    @cached_property
    def labels(self) -> list[str]:
        return [label[1] for label in map(LABEL.match, self.lines) if label]

    @cached_property
    def label(self) -> str:
        """The one that others call."""
        names = {f"{prefix}{self.name}{end}" for prefix in ("", "_") for end in ("", f".{self.build}")}
        found = [label for label in self.labels if label in names]
        if len(found) != 1:
            raise NotAsExpected(f"{self.name} of {self.build} begins {len(found)} times")
        return found[0]

    @cached_property
    def code(self) -> tuple[str, tuple[str, ...]]:
        """Its text, with numbers in place of names that it alone has, and the names of others in it in their order."""
        comment = next(found[1] for found in map(BEGIN.search, self.lines) if found)
        without = re.compile(rf"(?:^|\s+){re.escape(comment)}(?:\s.*|$)")
        own = {label: f"({number})" for number, label in enumerate(self.labels)} | {self.label: "(own)"}
        others: list[str] = []

        def numbered(name: re.Match[str]) -> str:
            if name[0] not in own:
                others.append(name[0])
            return own.get(name[0], "(other)")

        text = "\n".join(_renamed(without.sub("", line), numbered) for line in self.lines)
        return text, tuple(others)

    def with_names_of(self, others: Iterable[Function]) -> str:
        """The text, in which the function has the names of these others too."""
        start = self._start()
        more = [line for other in others for line in other._opening()]
        return "\n".join([*self.lines[:start], *more, *self.lines[start:]])

    def _opening(self) -> Iterator[str]:
        """What says of which kind its label is, and the label."""
        yield from (BEGIN.sub("", line) for line in self.lines[: self._start()] if ABOUT_LABEL.match(line))
        yield f"{self.label}:"

    def _start(self) -> int:
        return next(number for number, line in enumerate(self.lines) if line.startswith(f"{self.label}:"))


def merged(builds: dict[str, str]) -> str:
    """One text from the text of each build by its name."""
    functions: list[Function] = []
    ends: list[str] = []
    for build, text in builds.items():
        *found, (_, end) = _split(_with_own_names(ONCE.sub("", text) if ends else text, build))
        if not found:
            raise NotAsExpected(f"the assembly of {build} does not mark where functions begin and end")
        functions += [Function(name, build, lines) for name, lines in found]
        ends.append(end)
    together: dict[str, dict[int, list[Function]]] = defaultdict(lambda: defaultdict(list))
    for function, kind in zip(functions, _kinds(functions), strict=True):
        together[function.base][kind].append(function)
    alike = [same for kinds in together.values() for same in kinds.values()]
    return "\n".join([*(first.with_names_of(others) for first, *others in alike), *ends])


def _kinds(functions: list[Function]) -> list[int]:
    """A number for each function; those that are the same have the same number.

    At first all functions with the same text are, whatever they call. Then those that call different ones are not,
    until nothing changes: so functions that call each other may be the same, too.
    """
    place = {function.label: number for number, function in enumerate(functions)}
    codes = [function.code for function in functions]
    kinds = _numbered((function.base, text) for function, (text, _) in zip(functions, codes, strict=True))
    while True:
        called = [tuple(kinds[place[name]] if name in place else name for name in names) for _, names in codes]
        finer = _numbered(zip(kinds, called, strict=True))
        if max(finer) == max(kinds):
            return kinds
        kinds = finer


def _numbered(items: Iterable[object]) -> list[int]:
    """Equal items get the same number, from 0 in the order of the first ones."""
    numbers: dict[object, int] = {}
    return [numbers.setdefault(item, len(numbers)) for item in items]


def _split(text: str) -> Iterator[tuple[str, str]]:
    """Each function with its name and all that precedes it, then the rest; each begins in the section that it needs."""
    name, section = "", ""
    lines: list[str] = []
    for line in text.splitlines():
        lines.append(line)
        if SECTION.match(line):
            section = line
        if found := BEGIN.search(line):
            name = found[2]
        elif END.search(line):
            yield name, "\n".join(lines)
            lines = [section]
    yield "", "\n".join(lines)


def _with_own_names(text: str, build: str) -> str:
    own = {label[1] for label in map(LABEL.match, text.splitlines()) if label} - set(GLOBAL.findall(text))

    def renamed(name: re.Match[str]) -> str:
        return f"{name[0]}.{build}" if name[0] in own else name[0]

    return "\n".join(_renamed(line, renamed) for line in text.splitlines())


def _renamed(line: str, renamed: Callable[[re.Match[str]], str]) -> str:
    if TEXT.match(line):
        return line
    opening = None if LABEL.match(line) else OPENING.match(line)  # an instruction may be called as a function is
    start = opening.end() if opening else 0
    return line[:start] + NAME.sub(renamed, line[start:])


def main(target: str, *sources: str) -> None:
    Path(target).write_text(merged({Path(source).stem: Path(source).read_text() for source in sources}))


if __name__ == "__main__":
    main(*sys.argv[1:])

"""A script as a page loads it: without comments and needless spaces, and with short private names.

Lines stay lines, so that a source map only says which line was which. Texts and regular expressions stay as they are;
none goes over several lines (bundle.py makes sure of it).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from itertools import product
from string import ascii_letters

_BLOCKS = re.compile(r"^ */\*[\s\S]*?\*/$", re.M)
_PRIVATE = re.compile(r"#[A-Za-z_]\w*")
_SPACE = re.compile(r" +")
_ADDRESS = re.compile(r",(?=import\.meta\.url\))")
_REGEX = re.compile(r"/(?:\\.|\[(?:\\.|[^\]\\])*\]|[^/\\\[])+/[a-z]*")
_BEFORE_REGEX = re.compile(r"(?:^|[(,=:\[!&|?{};]|\breturn|=>)\s*$")


def smaller(text: str) -> str:
    """The script with as many lines.

    >>> print(smaller("function f(a) {\\n  return 2 * a; // twice\\n}"))
    function f(a){
    return 2*a;
    }
    """
    lines = [list(_pieces(line.strip())) for line in _without_blocks(text).split("\n")]
    names = Counter(name for line in lines for is_code, part in line if is_code for name in _PRIVATE.findall(part))
    short = {name: f"#{letters}" for (name, _), letters in zip(names.most_common(), _letters(), strict=False)}

    def shortened(part: str) -> str:
        part = _SPACE.sub(_space, _PRIVATE.sub(lambda found: short[found[0]], part))
        return _ADDRESS.sub(", ", part)  # the form that people and tools search for

    return "\n".join("".join(shortened(part) if is_code else part for is_code, part in line) for line in lines)


def _letters() -> Iterator[str]:
    yield from ascii_letters
    yield from map("".join, product(ascii_letters, repeat=2))


def _without_blocks(text: str) -> str:
    """Without comments of several lines, but with the line ends of those."""
    return _BLOCKS.sub(lambda found: "\n" * found[0].count("\n"), text)


def _space(found: re.Match[str]) -> str:
    both = found.string[: found.start()][-1:] + found.string[found.end() :][:1]
    return " " if re.fullmatch(r"[\w$][\w$#]|\+\+|--", both) else ""


def _pieces(line: str) -> Iterator[tuple[bool, str]]:
    """A line as parts (is_code, text), where what is no code is a text or a regular expression."""
    code, at = 0, 0
    while at < len(line) and not line.startswith("//", at):
        end = _end_of_text(line, at)
        if end is None:
            at += 1
            continue
        yield True, line[code:at]
        if line[at] == "`":
            yield from _template(line[at:end])
        else:
            yield False, line[at:end]
        code = at = end
    yield True, line[code:at].rstrip()


def _end_of_text(line: str, at: int) -> int | None:
    """Where the text or regular expression that begins at a place ends; None if none begins there."""
    quote = line[at]
    if quote == "/":
        found = _REGEX.match(line, at) if _BEFORE_REGEX.search(line[:at]) else None
        return found.end() if found else None
    if quote not in "\"'`":
        return None
    at += 1
    while line[at] != quote:
        if line[at] == "\\":
            at += 1
        elif quote == "`" and line.startswith("${", at):
            at = _end_of_expression(line, at + 2)
        at += 1
    return at + 1


def _end_of_expression(line: str, at: int) -> int:
    """The place of the brace that ends an expression in a template."""
    depth = 0
    while depth or line[at] != "}":
        end = _end_of_text(line, at)
        if end is not None:
            at = end
            continue
        depth += {"{": 1, "}": -1}.get(line[at], 0)
        at += 1
    return at


def _template(text: str) -> Iterator[tuple[bool, str]]:
    start, at = 0, 1
    while at < len(text) - 1:
        if text[at] == "\\":
            at += 2
        elif text.startswith("${", at):
            end = _end_of_expression(text, at + 2)
            yield False, text[start : at + 2]
            yield from _pieces(text[at + 2 : end])
            start = at = end
        else:
            at += 1
    yield False, text[start:]

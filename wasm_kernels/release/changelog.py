"""CHANGELOG.md, as Keep a Changelog has it: what is under [Unreleased] becomes the section of a version."""

from __future__ import annotations

import re

from wasm_kernels.release import ReleaseError

FILE = "CHANGELOG.md"
UNRELEASED = "## [Unreleased]"
DATE = r"\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])"


def released(text: str, version: str, date: str) -> str:
    """The text with what is not released yet as the section of a version. Headings without entries go.

    >>> print(released("## [Unreleased]\\n\\n### Added\\n- A\\n\\n## [0.1.0]\\n- B", "0.2.0", "2026-11-18"))
    ## [Unreleased]
    <BLANKLINE>
    ## [0.2.0] - 2026-11-18
    <BLANKLINE>
    ### Added
    - A
    <BLANKLINE>
    ## [0.1.0]
    - B
    """
    if not re.fullmatch(DATE, date, re.ASCII):
        raise ReleaseError(f"{date!r} is no date: write it as 2026-11-18")
    if date_of(text, version) is not None:
        raise ReleaseError(f"{FILE} has a section [{version}] already")
    before, body, rest = _parts(text)
    kept = [part.strip("\n") for part in re.split(r"(?m)^(?=### )", body) if _has_entries(part)]
    if not kept:
        raise ReleaseError(f"nothing is under [Unreleased] in {FILE}: say what the release brings, a bullet each")
    return (
        f"{before}{UNRELEASED}\n\n## [{version}] - {date}\n\n"
        + "\n\n".join(kept)
        + "\n"
        + (f"\n{rest}" if rest else "")
    )


def date_of(text: str, version: str) -> str | None:
    """The date of a version's section; "" if it has none, None if there is no such section."""
    found = re.search(rf"^## \[{re.escape(version)}\](?: - ({DATE}))?[ \t]*$", text, re.M)
    return (found[1] or "") if found else None


def is_empty(text: str) -> bool:
    return not _has_entries(_parts(text)[1])


def _has_entries(text: str) -> bool:
    """Whether anything but headings and space is in it."""
    return any(line.strip() and not line.startswith("#") for line in text.splitlines())


def _parts(text: str) -> tuple[str, str, str]:
    """What is before the section, what is in it, and what follows."""
    starts = list(re.finditer(r"^## \[Unreleased\][ \t]*$", text, re.M))
    if len(starts) != 1:
        raise ReleaseError(f"{FILE} has {len(starts)} headings {UNRELEASED!r}: it takes one")
    start, end = starts[0].span()
    following = re.search(r"^## ", text[end:], re.M)
    stop = end + following.start() if following else len(text)
    return text[:start], text[end:stop], text[stop:]

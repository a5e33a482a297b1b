"""What a build says while pip runs it. pip keeps that to itself, unless it is asked with -v or the build fails: a user
would look at a still line for minutes. So it goes to the terminal as well, if there is one."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path

#: In the environment of builds that pip runs.
PIP = "PIP_BUILD_TRACKER"
TERMINAL = Path("/dev/tty")


def also_on_terminal(
    say: Callable[[str], None], environment: Mapping[str, str] = os.environ, terminal: Path = TERMINAL
) -> Callable[[str], None]:
    """`say`, which writes to the terminal, too, where pip hides what it says."""
    if PIP not in environment:
        return say

    def both(line: str) -> None:
        say(line)
        try:
            with terminal.open("w") as opened:
                opened.write(f"\r  webrnn: {line}\n")
        except OSError:  # no terminal: in a script, or on Windows
            pass

    return both

"""What a build under pip says to the one who waits for it."""

from __future__ import annotations

import os
import pty
from pathlib import Path

from wasm_kernels.terminal import PIP, also_on_terminal


def said_on(terminal: Path, environment: dict[str, str]) -> list[str]:
    said: list[str] = []
    also_on_terminal(said.append, environment, terminal)("[1/13] native built")
    return said


def test_under_pip_it_goes_to_the_terminal_as_well() -> None:
    ours, theirs = pty.openpty()
    assert said_on(Path(os.ttyname(theirs)), {PIP: "folder"}) == ["[1/13] native built"]
    assert os.read(ours, 100) == b"\r  webrnn: [1/13] native built\r\n"
    os.close(ours)
    os.close(theirs)


def test_without_a_terminal_nothing_is_lost(tmp_path: Path) -> None:
    assert said_on(tmp_path / "nowhere" / "tty", {PIP: "folder"}) == ["[1/13] native built"]


def test_without_pip_it_is_said_once(tmp_path: Path) -> None:
    assert said_on(tmp_path / "tty", {}) == ["[1/13] native built"]
    assert not (tmp_path / "tty").exists()

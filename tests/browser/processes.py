"""Programs that tests start and end: they are ended by their own ids, with all that they have started."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress

START_SECONDS = 60.0
"""A browser starts within this time also on a machine that does much else."""


class NotStarted(Exception):
    """A program that is installed does not start; the message has what it wrote."""


class Program:
    """A program in a process group of its own, and the last lines that it wrote."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str] | None = None):
        self.name = os.path.basename(command[0])
        self._process = subprocess.Popen(
            list(command),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env={**os.environ, **(environment or {})},
            start_new_session=True,
            text=True,
            errors="replace",
        )
        self._lines: deque[str] = deque(maxlen=200)
        self._wrote = threading.Condition()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            with self._wrote:
                self._lines.append(line.rstrip())
                self._wrote.notify_all()
        with self._wrote:
            self._wrote.notify_all()

    @property
    def said(self) -> str:
        return "\n".join(self._lines)

    def wait_for(self, pattern: str) -> re.Match[str]:
        """The first line that matches."""

        def matched() -> re.Match[str] | None:
            return next((match for line in self._lines if (match := re.search(pattern, line))), None)

        with self._wrote:
            self._wrote.wait_for(lambda: matched() or not self._reader.is_alive(), START_SECONDS)
            match = matched()
        if match is None:
            raise NotStarted(f"{self.name} did not say {pattern!r}:\n{self.said}")
        return match

    def check(self) -> None:
        if self._process.poll() is not None:
            raise NotStarted(f"{self.name} has ended with {self._process.returncode}:\n{self.said}")

    def end(self) -> None:
        for number, seconds in ((signal.SIGTERM, 5), (signal.SIGKILL, 5)):
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, number)
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(seconds)
        self._reader.join(5)


@contextmanager
def started(command: Sequence[str], environment: Mapping[str, str] | None = None) -> Iterator[Program]:
    program = Program(command, environment)
    try:
        yield program
    finally:
        program.end()


def until(program: Program, is_there: Callable[[], bool], what: str) -> None:
    """Waits until `is_there()`; the program has to run meanwhile."""
    end = time.monotonic() + START_SECONDS
    while not is_there():
        program.check()
        if time.monotonic() > end:
            raise NotStarted(f"{program.name} runs, but {what} is missing:\n{program.said}")
        time.sleep(0.02)

"""How far it is: a bar on a terminal, lines elsewhere, or nothing."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterable
from typing import IO, Any

BAR_WIDTH = 24
BETWEEN_DRAWINGS, BETWEEN_LINES = 0.2, 10.0


class Progress:
    """Tells a stream, by default stderr, how many items are done."""

    def __init__(self, show: bool = True, stream: IO[str] | None = None):
        self._stream = sys.stderr if stream is None else stream
        self._shows = show
        self._is_terminal = show and self._stream.isatty()
        self._started = time.monotonic()
        self._last = self._started
        self._skipped: int | None = None
        self.total: int | None = None
        """All items, once they are counted."""

    def count(self, items: Iterable[Any]) -> None:
        """Count items, which may take a while, in a thread."""

        def run() -> None:
            number = 0
            try:
                for number, _ in enumerate(items, 1):  # noqa: B007
                    pass
            except Exception:
                return  # who maps the items says what is wrong with them
            self.total = number

        if self._shows:
            threading.Thread(target=run, daemon=True).start()

    def tell(self, done: int, failed: int, skipped: int) -> None:
        """`skipped` of the items that are done were so before."""
        now = time.monotonic()
        between = BETWEEN_DRAWINGS if self._is_terminal else BETWEEN_LINES
        if self._shows and now - self._last >= between:
            self._last = now
            line = described(done, failed, skipped, self.total, now - self._started)
            if self._is_terminal:
                self._stream.write(f"\r\x1b[K{line}")
            else:
                self._stream.write(f"webrnn map: {line.lstrip()}\n")
            self._stream.flush()

    def end(self) -> None:
        if self._is_terminal:
            self._stream.write("\r\x1b[K")
            self._stream.flush()


def described(done: int, failed: int, skipped: int, total: int | None, seconds: float) -> str:
    """
    >>> described(500, 3, 100, 1000, 2.0)
    '[############............]  50%  500 of 1,000  200 a second  0:02 left  3 bad'
    >>> described(500, 0, 0, None, 2.0)
    '500  250 a second'
    """
    rate = (done - skipped) / seconds if seconds > 0 else 0.0
    words = [f"{done:,}" if total is None else f"{done:,} of {total:,}"]
    if total:
        full = min(BAR_WIDTH, BAR_WIDTH * done // total)
        words.insert(0, f"[{'#' * full:.<{BAR_WIDTH}}] {min(100, 100 * done // total):3d}%")
    words.append(f"{rate:,.0f} a second" if rate >= 10 else f"{rate:.2g} a second")
    if total is not None and rate > 0:
        words.append(f"{duration(max(0, total - done) / rate)} left")
    if failed:
        words.append(f"{failed:,} bad")
    return "  ".join(words)


def duration(seconds: float) -> str:
    """
    >>> duration(75), duration(7384)
    ('1:15', '2:03:04')
    """
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"

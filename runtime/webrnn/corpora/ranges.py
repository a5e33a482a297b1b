"""Sets of numbers that are few ranges."""

from __future__ import annotations

from bisect import bisect_right


class Ranges:
    """
    >>> ranges = Ranges()
    >>> ranges.add(10, 5); ranges.add(0, 3); ranges.add(3, 7)
    >>> 14 in ranges, 15 in ranges, ranges.end, ranges.pairs()
    (True, False, 15, [(0, 15)])
    """

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._ends: list[int] = []

    def add(self, first: int, count: int) -> None:
        """Numbers that are not there yet."""
        place = bisect_right(self._starts, first)
        end = first + count
        joins_left = place > 0 and self._ends[place - 1] == first
        joins_right = place < len(self._starts) and self._starts[place] == end
        if joins_left and joins_right:
            self._ends[place - 1] = self._ends.pop(place)
            self._starts.pop(place)
        elif joins_left:
            self._ends[place - 1] = end
        elif joins_right:
            self._starts[place] = first
        else:
            self._starts.insert(place, first)
            self._ends.insert(place, end)

    def __contains__(self, number: int) -> bool:
        place = bisect_right(self._starts, number)
        return place > 0 and number < self._ends[place - 1]

    @property
    def end(self) -> int:
        """Behind the last number."""
        return self._ends[-1] if self._ends else 0

    def pairs(self) -> list[tuple[int, int]]:
        return list(zip(self._starts, self._ends, strict=True))

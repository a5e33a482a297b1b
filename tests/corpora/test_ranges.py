import random
from itertools import pairwise

from webrnn.corpora.ranges import Ranges


def test_ranges_in_any_order_are_a_set():
    rng = random.Random(3)
    for _ in range(50):
        cuts = sorted(rng.sample(range(100), 20))
        parts = [(first, end - first) for first, end in pairwise(cuts)]
        chosen = rng.sample(parts, rng.randrange(1, len(parts)))
        ranges, numbers = Ranges(), set()
        for first, count in chosen:
            ranges.add(first, count)
            numbers |= set(range(first, first + count))
        assert {number for number in range(110) if number in ranges} == numbers
        assert ranges.end == max(numbers) + 1
        assert sum(end - first for first, end in ranges.pairs()) == len(numbers)
        assert all(a[1] < b[0] for a, b in pairwise(ranges.pairs()))


def test_nothing():
    assert Ranges().end == 0
    assert 0 not in Ranges()

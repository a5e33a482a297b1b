"""A pool beside streams that each run alone."""

from tests.engine.stream_models import (
    bits,
)


def same_state(a, b):
    return a.keys() == b.keys() and bits(a.values()) == bits(b.values())


class Oracle:
    """A pool and a single stream for each of its streams, which have to agree."""

    def __init__(self, s, carry="auto", **options):
        self.session, self.carry = s, carry
        self.pool = s.pool(carry=carry, **options)
        self.streams = {}

    def open(self):
        handle = self.pool.open()
        self.streams[handle] = self.session.stream(self.carry)
        return handle

    def close(self, handle):
        self.pool.close(handle)
        del self.streams[handle]

    def tick(self, feeds):
        for handle, fed in feeds.items():
            self.pool.submit(handle, fed)
        results = self.pool.tick()
        assert list(results) == list(feeds)
        for handle, fed in feeds.items():
            assert bits(results[handle]) == bits(self.streams[handle].step(fed))
        return results

    def check_states(self):
        for handle, stream in self.streams.items():
            assert same_state(self.pool.state(handle), stream.state)


# Bits

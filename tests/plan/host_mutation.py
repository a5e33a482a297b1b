"""Damaged plan files: names, types, sizes, externals and states in the metadata that do not fit what the program does.

Most damage keeps the file well formed, so that it gets as far as the VM. Many files have inputs and outputs that are
large enough to be passed by address.
"""

from __future__ import annotations

import json
import random
import struct
from copy import deepcopy
from functools import cache
from typing import Any

import numpy as np

from tests.engine.streams.timed_models import Averages
from tests.plan.corpus import Sample, samples
from tests.plan.corruption import corrupted
from tests.plan.handmade import Handmade
from tests.plan.hostile import hostile
from webrnn.engine.programs.plan_program import DIRECT_BYTES
from webrnn.passes.pipeline import run_passes
from webrnn.plan import opcodes
from webrnn.plan.encode import compile_graph, encode_again
from webrnn.plan.file import PlanFile, PlanState
from webrnn.plan.halves import stored

LARGE = DIRECT_BYTES // 4
NUMBERS = (0, 1, 2, 3, 5, 8, 24, LARGE - 1, LARGE, LARGE + 1, 20_000, 200_000, 2**31 - 1, -1)
NAMES = ("", "x0", "y", "h", "__proto__", "\ud800", "n", "state")
PARTS = (None, 3, -1, "x", [], {}, [[]], [1], 1e400, 10**30, True, [None], {"external": 0}, 0, 2**31, "1", 1.5)

PORTS = ("inputs", "outputs")
HEADER = opcodes.HEADER


def damaged(rng: random.Random) -> bytes:
    """A plan file that is not as it should be; a few are. Some have half floats."""
    data = _damaged(rng)
    return with_halves(data, rng) if rng.random() < 0.25 else data


def with_halves(data: bytes, rng: random.Random) -> bytes:
    """A file with half floats where the plan has weights, or anywhere; some are damaged."""
    file = _Words(data)
    first = file.header["data_offset"] if file.is_whole and rng.random() < 0.9 else 0
    end = min(len(data), first + file.header["data_bytes"]) if first > 0 else len(data)
    places, at = [], max(first, 0)
    for _ in range(rng.randrange(4)):
        start = at + 4 * rng.randrange(8)
        count = max((end - start) // 4, 0)
        count = rng.randint(0, count) if rng.random() < 0.7 else count
        if start + 4 * count <= end:
            places.append((start, count))
            at = start + 4 * count
    with np.errstate(all="ignore"):
        made = bytearray(stored(data, places))
    if rng.random() < 0.4:
        word = 4 * rng.randrange(2, len(opcodes.STORED_HEADER) + 2 * len(places) + 2)
        (number,) = struct.unpack_from("<i", made, word)
        number = rng.choice(
            (0, 1, -1, number + rng.choice((-4, -2, -1, 1, 2, 4)), 2 * number, 2**24, 2**31 - 1, -(2**31))
        )
        struct.pack_into("<I", made, word, number & 0xFFFFFFFF)
    if rng.random() < 0.1:
        made = made[: rng.randrange(len(made))] if rng.random() < 0.5 else made + bytes(rng.randrange(1, 9))
    return bytes(made)


def _damaged(rng: random.Random) -> bytes:
    kind = rng.random()
    if kind < 0.15:
        file = _Words(_large(rng))
    elif kind < 0.35:
        file = _Words(_with_ports(hostile(rng).data, rng))
    else:
        sample = rng.choice(_whole())
        file = _Words(corrupted(sample, rng) if kind < 0.6 else sample.data)
        if not file.is_whole:
            return file.data()
    if rng.random() < 0.45:
        file.grow(rng)
    for _ in range(rng.choice((0, 1, 1, 1, 2, 3))):
        rng.choice(_DAMAGES)(file, rng)
    return file.data()


@cache
def _whole() -> list[Sample]:
    """The plans of the corpus, those with a possible state a second time with it."""
    found = list(samples())
    for sample in samples():
        file = PlanFile(sample.data)
        pairs = [(a, b) for a in file.inputs for b in file.outputs if (a.dtype, a.shape) == (b.dtype, b.shape)]
        if pairs:
            port, after = pairs[0]
            start = np.ones([1] * len(port.shape), np.bool_ if port.dtype == "bool" else np.float32)
            states = [PlanState(port.name, after.name, start if port.dtype in ("f32", "bool") else None)]
            found.append(Sample(f"{sample.name}, a stream", encode_again(file, states, {"rate": 1}), sample.symbols))
    return [*found, *(_timed(kind) for kind in TIMED for _ in range(len(found) // 20))]


TIMED = (Averages(), Averages(width=5, left=1, right=3, stride=2, axis=2), Averages(gain=True, total=True))


def _timed(kind: Averages) -> Sample:
    """A stream with frames."""
    graph = kind.graph()
    run_passes(graph)
    file = PlanFile(compile_graph(graph))
    states = [PlanState(before, after, kind.starts.get(before)) for before, after in kind.carry.items()]
    return Sample(str(kind), encode_again(file, states, None, kind.timing), dict.fromkeys(file.symbols, 4))


def _large(rng: random.Random) -> bytes:
    """Copies between externals that would be passed by address, of sizes that the metadata know or not."""
    plan, sizes = Handmade(), (LARGE - 1, LARGE, LARGE + 1, 2 * LARGE)
    n = rng.choice(sizes)
    read = [plan.external([n]) for _ in range(rng.choice((0, 1, 1, 2)))]
    written = [plan.external([n], written=True) for _ in range(rng.choice((1, 1, 2)))]
    for tensor in written:
        if read and rng.random() < 0.7:
            plan.emit("copy", rng.choice(read), tensor)
        else:
            plan.fill(tensor, 3.0)

    def port_size() -> int:
        return n if rng.random() < 0.6 else rng.choice(sizes)

    for tensor in read:
        plan.input(f"x{tensor}", [port_size()], tensor)
    for tensor in written:
        external = tensor if rng.random() < 0.85 else rng.choice(written)
        plan.output(f"y{tensor}", [port_size()], external)
    states = [{"input": "x0", "output": f"y{len(read)}"}] if read and rng.random() < 0.5 else []
    return plan.data(states=states)


def _with_ports(data: bytes, rng: random.Random) -> bytes:
    """A plan of hostile.py, which has an external that is read and one that is written, with metadata for them."""
    file = _Words(data)
    for part, name, external in (("inputs", "x", 0), ("outputs", "y", 1)):
        if rng.random() < 0.9:
            row = rng.randrange(file.header["sizes"])
            shape = [file.sizes[row][1]]
            sizes = [row]
            file.meta[part].append({"name": name, "dtype": "f32", "shape": shape, "sizes": sizes, "external": external})
    if rng.random() < 0.3:
        file.meta["states"] = [{"input": "x", "output": "y"}]
    return file.data()


class _Words:
    """A plan file in parts that can be changed and put together again."""

    def __init__(self, data: bytes):
        self._raw = data
        n = len(HEADER)
        self.is_whole = len(data) >= 4 * n
        if not self.is_whole:
            return
        words = struct.unpack_from(f"<{len(data) // 4}i", data)
        self.header = dict(zip(HEADER, words, strict=False))
        counts = [self.header[name] for name in ("sizes", "buffers")]
        end = n + opcodes.SIZE_WORDS * counts[0] + opcodes.BUFFER_WORDS * counts[1]
        start, length = self.header["meta_offset"], self.header["meta_bytes"]
        self.is_whole = min(counts) >= 0 and end <= len(words) and 4 * end <= start <= len(data)
        try:
            self.meta: Any = json.loads(data[start : start + length]) if self.is_whole else None
        except ValueError:
            self.is_whole = False
        if not self.is_whole:
            return
        self.sizes = [list(words[at : at + 3]) for at in range(n, n + 3 * counts[0], 3)]
        self.buffers = [list(words[at : at + 4]) for at in range(n + 3 * counts[0], end, 4)]
        self._middle = data[4 * end : start]

    def data(self) -> bytes:
        if not self.is_whole:
            return self._raw
        text = json.dumps(self.meta).encode()
        header = {**self.header, "meta_bytes": len(text)}
        words = [*(header[name] for name in HEADER), *(word for row in (*self.sizes, *self.buffers) for word in row)]
        return struct.pack(f"<{len(words)}I", *(word & 0xFFFFFFFF for word in words)) + self._middle + text

    def ports(self) -> list[dict[str, Any]]:
        parts = [self.meta.get(part) for part in ("inputs", "outputs")]
        return [row for part in parts if isinstance(part, list) for row in part if isinstance(row, dict)]

    def set_number(self, row: int, number: int) -> None:
        """Change a size, and show it where the metadata do."""
        self.sizes[row] = [0, number, 0]
        for port in self.ports():
            shape, sizes = port.get("shape"), port.get("sizes")
            if isinstance(shape, list) and isinstance(sizes, list):
                for axis, size in enumerate(sizes[: len(shape)]):
                    if size == row and not isinstance(size, bool):
                        shape[axis] = number

    def grow(self, rng: random.Random) -> None:
        """Let a port be large enough to be passed by address, and mostly its buffer too."""
        ports = self.ports()
        if not ports or not self.sizes:
            return
        port = rng.choice(ports)
        number = rng.choice((LARGE - 1, LARGE, LARGE + 1, 20_000, 3 * LARGE))
        numbers = [row for row in port.get("sizes") or [] if type(row) is int and 0 <= row < len(self.sizes)]
        if numbers and rng.random() < 0.5:
            self.set_number(rng.choice(numbers), number)
            return
        row = rng.randrange(len(self.sizes))
        if self.sizes[row][0] == 0 and rng.random() < 0.5:
            self.set_number(row, number)
        else:
            rows = [row for row, (kind, _, _) in enumerate(self.sizes) if kind == 0]
            if not rows:
                return
            row = rng.choice(rows)
            self.set_number(row, number)
        port["shape"], port["sizes"] = [self.sizes[row][1]], [row]
        for buffer in self.buffers:
            is_its_own = buffer[0] == 2 and buffer[3] & ~opcodes.WRITABLE == port.get("external")
            if is_its_own and rng.random() < 0.8:
                buffer[2] = row


def _port(file: _Words, rng: random.Random) -> dict[str, Any]:
    return rng.choice(file.ports() or [{}])


def _external(file: _Words, rng: random.Random) -> None:
    _port(file, rng)["external"] = rng.choice((0, 1, 2, rng.randrange(max(file.header["externals"], 1)), -1))


def _externals(file: _Words, rng: random.Random) -> None:
    file.header["externals"] = rng.choice((0, 1, 2, 3, file.header["externals"] + 1, 4_000_000, 2**24, -1))


def _name(file: _Words, rng: random.Random) -> None:
    names = [port.get("name") for port in file.ports()]
    _port(file, rng)["name"] = rng.choice([*NAMES, *names])


def _dtype(file: _Words, rng: random.Random) -> None:
    _port(file, rng)["dtype"] = rng.choice((*opcodes.DTYPES, "f8", "", 0))


def _size_of_port(file: _Words, rng: random.Random) -> None:
    """Another row of the table for an axis, shown as it is, or not."""
    port = _port(file, rng)
    shape, sizes = port.get("shape"), port.get("sizes")
    if not isinstance(shape, list) or not isinstance(sizes, list) or not file.sizes:
        return
    row = rng.randrange(len(file.sizes))
    shown: Any = file.sizes[row][1] if file.sizes[row][0] == 0 else "n"
    if rng.random() < 0.2:
        shown = rng.choice((*NUMBERS, "m"))
    if shape and sizes and rng.random() < 0.6:
        axis = rng.randrange(min(len(shape), len(sizes)))
        shape[axis], sizes[axis] = shown, row
    elif rng.random() < 0.5:
        shape.append(shown), sizes.append(row)
    else:
        del shape[-1:], sizes[-1:]


def _number(file: _Words, rng: random.Random) -> None:
    rows = [row for row, (kind, _, _) in enumerate(file.sizes) if kind == 0]
    if rows:
        file.set_number(rng.choice(rows), rng.choice(NUMBERS))


def _size_row(file: _Words, rng: random.Random) -> None:
    if file.sizes:
        row = rng.randrange(len(file.sizes))
        earlier = [rng.randrange(row) if row else 0 for _ in range(2)]
        file.sizes[row] = [rng.randrange(-1, 6), *rng.choice((earlier, [rng.choice(NUMBERS), 0], [0, 0]))]


def _buffer(file: _Words, rng: random.Random) -> None:
    """Another size, or another external, for a buffer of the host's."""
    externals = [buffer for buffer in file.buffers if buffer[0] == 2]
    if not externals:
        return
    buffer = rng.choice(externals)
    if rng.random() < 0.5 and file.sizes:
        buffer[2] = rng.randrange(len(file.sizes))
    elif rng.random() < 0.5:
        buffer[3] ^= opcodes.WRITABLE
    else:
        buffer[3] = rng.randrange(max(file.header["externals"], 1)) | (buffer[3] & opcodes.WRITABLE)


def _list_of_ports(file: _Words, rng: random.Random) -> None:
    """Twice, not at all, in another order, or as the other kind."""
    part = rng.choice(("inputs", "outputs"))
    rows = file.meta.get(part)
    if not isinstance(rows, list) or not rows:
        return
    index, kind = rng.randrange(len(rows)), rng.random()
    if kind < 0.4:
        rows.insert(rng.randrange(len(rows) + 1), json.loads(json.dumps(rows[index])))
    elif kind < 0.7:
        del rows[index]
    elif kind < 0.85:
        rng.shuffle(rows)
    else:
        other = file.meta.get("outputs" if part == "inputs" else "inputs")
        if isinstance(other, list):
            other.append(rows.pop(index))


def _states(file: _Words, rng: random.Random) -> None:
    ports = [port.get("name") for port in file.ports()] or ["x"]
    rows = file.meta.setdefault("states", [])
    if not isinstance(rows, list):
        return
    row: dict[str, Any] = {"input": rng.choice(ports), "output": rng.choice(ports)}
    if rng.random() < 0.5:
        shape = [rng.choice((1, 1, 2, LARGE, -1)) for _ in range(rng.randrange(4))]
        row["start"] = {"offset": rng.choice((0, 4, 64, file.header["data_bytes"], -4, 2**31)), "shape": shape}
    rows.append(row)
    if len(rows) > 1 and rng.random() < 0.5:
        del rows[rng.randrange(len(rows))]


def _timing(file: _Words, rng: random.Random) -> None:
    """Frames along some axis of what is fed and returned; some of it wrong."""
    parts = [file.meta.get(part) for part in (*PORTS, "states")]
    inputs, outputs, states = (
        [row for row in part if isinstance(row, dict)] if isinstance(part, list) else [] for part in parts
    )

    def timed(ports: list[dict[str, Any]], key: str) -> list[dict[str, Any]]:
        carried = [row.get(key) for row in states] if rng.random() < 0.9 else []
        names = [port.get("name") for port in ports if port.get("name") not in carried]
        return [{"name": name, "axis": rng.choice((0, 0, 1, 2))} for name in names if rng.random() < 0.8]

    counters = [row.get("input") for row in states]
    file.meta["timing"] = {
        "stride": rng.choice((1, 1, 2, 3, *NUMBERS)),
        "inputs": timed(inputs, "input"),
        "outputs": [
            {**row, "rate": rng.choice((1, 1, 2, *NUMBERS)), "delay": delay, "extra": rng.choice((0, 0, 1, -delay, 3))}
            for row in timed(outputs, "output")
            for delay in [rng.choice((0, 0, 1, 2, *NUMBERS))]
        ],
        "position": rng.choice([*counters, "time.position"]),
        "end": rng.choice([None, None, *counters]),
    }


def _symbols(file: _Words, rng: random.Random) -> None:
    symbols = file.meta.get("symbols")
    if isinstance(symbols, list):
        if symbols and rng.random() < 0.5:
            symbols[rng.randrange(len(symbols))] = rng.choice((*NAMES, 3))
        else:
            symbols.append(rng.choice(NAMES))
        if rng.random() < 0.6:
            file.header["symbols"] = len(symbols)


def _any_part(file: _Words, rng: random.Random) -> None:
    """Something that nobody expects, anywhere in the metadata."""
    part: Any = file.meta
    while isinstance(part, dict | list) and part:
        key = rng.choice(list(part) if isinstance(part, dict) else range(len(part)))
        if isinstance(part[key], dict | list) and part[key] and rng.random() < 0.8:
            part = part[key]
            continue
        part[key] = deepcopy(rng.choice(PARTS))  # as later damage may change it
        return


def _header(file: _Words, rng: random.Random) -> None:
    name = rng.choice(HEADER[2:])
    file.header[name] = rng.choice((0, 1, 64, file.header[name] + rng.choice((-64, -1, 1, 64)), 2**24, 2**31 - 1, -1))


_DAMAGES = (
    _external, _external, _externals, _name, _dtype, _size_of_port, _size_of_port, _number, _number, _size_row,
    _buffer, _buffer, _list_of_ports, _list_of_ports, _states, _states, _symbols, _any_part, _header, _timing,
)  # fmt: skip

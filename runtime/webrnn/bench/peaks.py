"""What this processor can do at most, measured, and the time that a model cannot go below because of it.

A run has to do all multiply-adds of the model and to read all its weights: those of a loop once in each step, because
each step waits for the one before, all others once. The bound is the longer of the two, at the measured rates. No
result can be below it without keeping weights in registers or storing them smaller; nothing is said about whether it
can be reached.
"""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from math import prod
from typing import Any

import numpy as np

from webrnn.engine.kernels import native
from webrnn.engine.kernels.loading import ALIGNMENT, FOLDER
from webrnn.engine.programs.vm_program import with_shapes
from webrnn.errors import Error
from webrnn.formats import read_model
from webrnn.ir import Graph, Scan, Value, is_scan
from webrnn.passes import run_passes
from webrnn.report.measures import measure
from webrnn.shapes.facts import Facts
from webrnn.shapes.infer import infer, trip_count

FOOTPRINTS = tuple(1024 * kib for kib in (16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 65536))
"""Bytes that are read again and again: from within the nearest cache to beyond all of them."""
REPEATS = 12
CHAIN_ROUNDS = 20_000
PASS_FLOATS = 2_000_000
"""Floats that one timing reads at least."""
VECTORS = 14 * 16
"""Floats that the loop of multiply-adds takes: two operands and twelve chains of the widest vectors."""


@dataclass(frozen=True)
class Limits:
    isa: str
    flops: float
    """Floating-point operations a second; a multiply-add is two."""
    reading: tuple[tuple[int, float], ...]
    """Bytes a second, by how many bytes are read again and again."""

    def bandwidth(self, footprint: float) -> float:
        """Bytes a second for any footprint, between those that were measured.

        >>> Limits("", 1.0, ((1000, 30.0), (2000, 10.0))).bandwidth(1500)
        20.0
        """
        sizes, rates = zip(*self.reading, strict=True)
        return float(np.interp(footprint, sizes, rates))

    def or_better(self, other: Limits) -> Limits:
        """The higher rates of two measurements."""
        rates = [max(mine[1], theirs[1]) for mine, theirs in zip(self.reading, other.reading, strict=True)]
        reading = zip((size for size, _ in self.reading), rates, strict=True)
        return Limits(self.isa, max(self.flops, other.flops), tuple(reading))

    def as_data(self) -> dict[str, Any]:
        rates = {str(size): round(rate / 1e9, 2) for size, rate in self.reading}
        return {"isa": self.isa, "gflops": round(self.flops / 1e9, 2), "read_gbs": rates}


@dataclass(frozen=True)
class Bound:
    seconds: float
    """A run cannot take less."""
    by: str
    """"arithmetic" or "memory"."""
    flops: int
    read_bytes: int
    """In a run, repeated reads counted."""

    def as_data(self) -> dict[str, Any]:
        us = round(self.seconds * 1e6, 3)
        return {"us": us, "by": self.by, "flops": self.flops, "read_bytes": self.read_bytes}


@dataclass(frozen=True)
class ModelWork:
    """What a run has to do at least."""

    flops: int
    traffic: tuple[tuple[int, int], ...]
    """Bytes, and how often they are read."""

    def bound(self, limits: Limits) -> Bound:
        """
        >>> limits = Limits("", 1e9, ((100, 1e6), (1000, 1e5)))
        >>> ModelWork(1000, ((100, 10),)).bound(limits)
        Bound(seconds=0.001, by='memory', flops=1000, read_bytes=1000)
        """
        footprint = sum(size for size, _ in self.traffic)
        memory = 0.0
        for size, times in self.traffic:
            memory += size * times / limits.bandwidth(size if times > 1 else footprint)
        arithmetic = self.flops / limits.flops
        by = "memory" if memory > arithmetic else "arithmetic"
        return Bound(max(memory, arithmetic), by, self.flops, sum(size * times for size, times in self.traffic))


def measure_limits() -> Limits | None:
    """Measured with the best instruction set of the native library; None where there is no such library."""
    try:
        spec = native.available()[0]
        library = native._library(FOLDER)
    except (Error, IndexError):
        return None
    isa = spec.partition(":")[2]
    values = np.full(VECTORS, 0.5, np.float32)
    values[:32] = 0.999
    chains = library[f"wr_limit_multiply_add_{isa}"]
    chains.argtypes = [ctypes.c_void_p, ctypes.c_int32]
    in_round = library[f"wr_limit_round_{isa}"]()
    best = _best(lambda: chains(values.ctypes.data, CHAIN_ROUNDS))
    flops = 2 * in_round * CHAIN_ROUNDS / best
    read = library[f"wr_limit_read_{isa}"]
    read.argtypes, read.restype = [ctypes.c_void_p, ctypes.c_int32, ctypes.c_int32], ctypes.c_float
    block = np.ones(FOOTPRINTS[-1] // 4 + ALIGNMENT, np.float32)
    address = -(-block.ctypes.data // ALIGNMENT) * ALIGNMENT
    rates = []
    for size in FOOTPRINTS:
        passes = max(2, PASS_FLOATS * 4 // size)
        rates.append(size * passes / _best(partial(read, address, size // 4, passes)))
    # What fits into a small cache can also be read as slowly as from a large one: less is never slower.
    rates = [max(rates[index:]) for index in range(len(rates))]
    return Limits(isa, flops, tuple(zip(FOOTPRINTS, rates, strict=True)))


def _best(call: Callable[[], Any]) -> float:
    times = []
    for _ in range(REPEATS):
        started = time.perf_counter()
        call()
        times.append(time.perf_counter() - started)
    return min(times)


def work_of(
    model: str | bytes, feeds: Mapping[str, np.ndarray], fixed: Mapping[str, Any] | None = None
) -> ModelWork | None:
    """The work of a model on inputs of these shapes; None for what has no graph: a plan file."""
    try:
        graph = read_model(model, fixed)
        graph = with_shapes(graph, [feeds[value.name].shape for value in graph.inputs])
        run_passes(graph)
    except (Error, KeyError):
        return None
    facts = infer(graph)
    measured = measure(graph, facts=facts)
    costs = (measured.outside.flops, measured.inside.flops, measured.inside.per_step)
    traffic = _Traffic()
    traffic.add(graph, facts, steps=1)
    passed = sum(_bytes(value, facts) for value in (*graph.inputs, *graph.outputs))
    return ModelWork(sum(cost for cost in costs if isinstance(cost, int)), ((passed, 1), *traffic.parts))


class _Traffic:
    """Bytes that are read, and how often."""

    def __init__(self) -> None:
        self.parts: list[tuple[int, int]] = []

    def add(self, graph: Graph, facts: Facts, steps: int, also: int = 0) -> None:
        """Constants that the nodes of a graph read. A table of which rows are gathered does not count, nor do the
        branches of an If: how much of them a run reads is not known."""
        read: dict[Value, int] = {}
        for node in graph.nodes:
            for index, value in enumerate(node.inputs):
                if value in graph.constants and not (node.op.startswith("Gather") and index == 0):
                    read[value] = graph.constants[value].nbytes
            if is_scan(node):
                scan = Scan.of(node)
                trips = trip_count(scan, facts)
                passed = sum(_bytes(invariant.inner, facts) for invariant in scan.invariants)
                self.add(scan.body, facts, steps * (trips if isinstance(trips, int) else 1), passed)
        self.parts.append((sum(read.values()) + also, steps))


def _bytes(value: Value, facts: Facts) -> int:
    fact = facts.of(value)
    shape = fact.shape if fact.shape is not None else value.shape
    dtype = fact.dtype or value.dtype
    if shape is None or dtype is None:
        return 0
    sizes = [size for size in shape if isinstance(size, int)]
    return prod(sizes) * dtype.array_type.itemsize if len(sizes) == len(shape) else 0

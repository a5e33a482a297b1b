"""Half floats in plan files: what is stored so, and that a plan comes back as it was, or the file is refused."""

from __future__ import annotations

import random
import struct
import tracemalloc

import numpy as np
import pytest

import webrnn
from tests.plan.corpus import samples
from tests.plan.harness import graph_of, plan_of
from tests.plan.host_mutation import with_halves
from webrnn.bench.case import built_in
from webrnn.errors import PlanError
from webrnn.plan import opcodes
from webrnn.plan.decode import decode
from webrnn.plan.file import PlanFile
from webrnn.plan.halves import FEWEST, exact_constants, stored, stored_plan, widened
from webrnn.plan.text import plan_text
from webrnn.plan.verify import verify


def plan_with(*constants: np.ndarray) -> bytes:
    """A plan that adds constants of n elements."""
    return plan_of(graph_of(lambda b, x: [b.op("Add", x, b.constant(array)) for array in constants], "f n 1"))


def counts(plan: bytes) -> list[int]:
    return [count for _, count in exact_constants(plan)]


def halves(n: int) -> np.ndarray:
    return np.random.default_rng(n).standard_normal(n).astype(np.float16).astype(np.float32)


EXTREMES = np.float32([0.0, -0.0, 65504, -65504, 2**-14, 2**-24, -(2**-24), 1023 * 2**-24, np.inf, -np.inf, 1 + 2**-10])


def test_all_half_floats_but_nan_come_back() -> None:
    every = np.arange(2**16, dtype=np.uint16).view(np.float16).astype(np.float32)
    every = every[~np.isnan(every)]
    plan = plan_with(every)
    assert counts(plan) == [every.size]
    file = stored_plan(plan)
    assert len(file) < 0.51 * len(plan)
    assert widened(file) == plan


@pytest.mark.parametrize(
    "number",
    [np.nan, 65520.0, 1 + 2**-11, 2**-25, 3 * 2**-26, 1e-40, np.float32(0.1)],
    ids=lambda number: f"{number:g}",
)
def test_one_other_number_keeps_a_constant_as_it_is(number: float) -> None:
    array = halves(2 * FEWEST)
    array[17] = number
    assert counts(plan_with(array)) == []
    assert counts(plan_with(array, halves(FEWEST))) == [FEWEST]


def test_extremes_are_exact() -> None:
    assert counts(plan_with(np.resize(EXTREMES, 300))) == [300]


def test_what_is_small_or_would_save_little_stays() -> None:
    few = plan_with(halves(FEWEST - 1))
    assert counts(few) == []
    assert stored_plan(few) is few
    little = plan_with(halves(FEWEST), np.full(20 * FEWEST, 0.1, np.float32))
    assert counts(little) == [FEWEST]
    assert stored_plan(little) is little
    assert widened(stored(little, exact_constants(little))) == little


def test_every_plan_comes_back_however_it_is_cut() -> None:
    rng = random.Random(3)
    for sample in samples():
        assert widened(sample.data) is sample.data
        assert widened(stored(sample.data, exact_constants(sample.data, 1))) == sample.data
        assert widened(stored(sample.data, [])) == sample.data
        for _ in range(5):
            file = with_halves(sample.data, rng)
            try:
                assert len(widened(file)) <= max(2 * len(file), len(file))
            except PlanError:
                continue


def test_readers_see_the_plan() -> None:
    plan = plan_with(halves(1000))
    file = stored_plan(plan)
    assert struct.unpack_from("<2i", file) == (opcodes.MAGIC, opcodes.STORED_VERSION)
    read = PlanFile(file)
    assert (read.data, read.file_bytes) == (plan, len(file))
    assert decode(file) == decode(plan)
    verify(file, {"n": 3})
    first, *rest = plan_text(file).splitlines()
    assert first == f"plan version 5, {len(plan):,} bytes, {len(file):,} in the file, which has half floats"
    assert rest == plan_text(plan).splitlines()[1:]


@pytest.mark.parametrize("backend", ["native", "wasm:simd"])
def test_a_session_writes_and_reads_them(backend: str, tmp_path) -> None:
    case = built_in("gru_128")
    session = webrnn.InferenceSession(case.model, backend=backend, weights="f16")
    sizes = {}
    for weights in ("f32", "f16"):
        file = tmp_path / f"{weights}.rnn"
        webrnn.InferenceSession(case.model, backend=backend, weights=weights).export(file)
        sizes[weights] = file.stat().st_size
    assert sizes["f16"] < 0.53 * sizes["f32"]
    loaded = webrnn.InferenceSession(tmp_path / "f16.rnn", backend=backend)
    for ours, theirs in zip(loaded.run(None, case.feeds), session.run(None, case.feeds), strict=True):
        assert np.array_equal(ours, theirs)
    loaded.export(tmp_path / "again.rnn")
    assert (tmp_path / "again.rnn").read_bytes() == (tmp_path / "f16.rnn").read_bytes()


def with_words(file: bytes, words: dict[int, int]) -> bytes:
    changed = bytearray(file)
    for index, number in words.items():
        struct.pack_into("<i", changed, 4 * index, number)
    return bytes(changed)


PLAN = plan_with(halves(600), halves(700))
FILE = stored_plan(PLAN)
TABLE, STRETCHES = "the table of stretches does not fit into the file", "the stretches of the file are damaged"
FIRST = struct.unpack_from("<6i", FILE)


@pytest.mark.parametrize(
    ("file", "message"),
    [
        (with_words(FILE, {2: len(PLAN) + 4}), STRETCHES),
        (with_words(FILE, {2: 2**31 - 1}), STRETCHES),
        (with_words(FILE, {2: -1}), STRETCHES),
        (with_words(FILE, {3: 2}), STRETCHES),
        (with_words(FILE, {3: -1}), TABLE),
        (with_words(FILE, {3: 2**31 - 1}), TABLE),
        (with_words(FILE, {3: 0}), STRETCHES),
        (with_words(FILE, {4: -4}), STRETCHES),
        (with_words(FILE, {4: 2**31 - 1}), STRETCHES),
        (with_words(FILE, {5: 2**31 - 1}), STRETCHES),
        (with_words(FILE, {5: FIRST[5] + 1}), STRETCHES),
        (with_words(FILE, {4: FIRST[4] - 2, 5: FIRST[5] + 1}), STRETCHES),
        (with_words(FILE, {4: FIRST[4] + 8, 6: -8}), STRETCHES),
        (FILE[:-1], STRETCHES),
        (FILE + b"\0", STRETCHES),
        (FILE[:20], TABLE),
        (FILE[:16], TABLE),
        (with_words(FILE[:16], {2: 0, 3: 0}), "shorter than the header"),
        (stored(FILE, []), "of version 6"),
    ],
)
def test_damaged_files_are_refused(file: bytes, message: str) -> None:
    for read in (PlanFile, decode, lambda data: webrnn.InferenceSession(data)):
        with pytest.raises(PlanError, match=message):
            read(file)


def test_a_short_file_takes_little_memory_whatever_it_says() -> None:
    """A plan is never more than twice as long as its file."""
    bad = [with_words(FILE, {index: number}) for index in range(2, 8) for number in (2**31 - 1, 2**24, -(2**31))]
    tracemalloc.start()
    for file in bad:
        with pytest.raises(PlanError):
            PlanFile(file)
    assert tracemalloc.get_traced_memory()[1] < 4_000_000
    tracemalloc.stop()

"""Plans that were exported before still run: each version that there ever was, on each build. In JavaScript:
tests/browser/test_old_plans.py."""

from __future__ import annotations

import json
import random
import struct

import numpy as np
import pytest

import webrnn
from tests.backends import KERNELS, UNFUSED
from webrnn.plan import opcodes
from webrnn.plan.decode import decode
from webrnn.plan.file import PlanFile
from webrnn.plan.first_versions import brought_up
from webrnn.plan.verify import verify

from .old import FOLDERS, HERE, numbers, recorded

CASES = recorded()
TOLERANCE = 1e-6


def version_of(data: bytes) -> int:
    return struct.unpack_from("<2i", data)[1]


def results(name: str, backend: str) -> list[list[np.ndarray]]:
    case = CASES[name]
    session = webrnn.InferenceSession(case.file, backend=backend)
    if not case.is_stream:
        return [session.run(None, feeds) for feeds, _ in case.steps]
    stream = session.stream(carry=case.carry) if case.carry else session.stream()
    return [stream.step(feeds) for feeds, _ in case.steps]


@pytest.mark.parametrize("backend", [*KERNELS, UNFUSED])
@pytest.mark.parametrize("name", CASES)
def test_it_runs(name: str, backend: str) -> None:
    for found, (_, expected) in zip(results(name, backend), CASES[name].steps, strict=True):
        assert [array.dtype for array in found] == [array.dtype for array in expected]
        for array, other in zip(found, expected, strict=True):
            np.testing.assert_allclose(array, other, rtol=TOLERANCE, atol=TOLERANCE)


@pytest.mark.parametrize("name", CASES)
def test_all_fused_builds_give_the_same_bits(name: str) -> None:
    first, *others = (results(name, backend) for backend in KERNELS)
    for other in others:
        for step, same in zip(first, other, strict=True):
            assert all(map(np.array_equal, step, same))


@pytest.mark.parametrize("name", [name for name in CASES if not name.startswith("v1/")])
def test_results_have_the_bits_that_they_had(name: str) -> None:
    """By relaxed SIMD under wasmtime, whatever processor this is: it gives those of the fused build that recorded them.
    Functions have become more exact since version 1."""
    if "wasm:relaxed" not in KERNELS:
        pytest.skip("inside Pyodide the engine decides what is fused")
    for found, (_, expected) in zip(results(name, "wasm:relaxed"), CASES[name].steps, strict=True):
        assert all(map(np.array_equal, found, expected))


@pytest.mark.parametrize("name", CASES)
def test_both_verifiers_take_it(name: str) -> None:
    data = CASES[name].file.read_bytes()
    verify(data, dict.fromkeys(PlanFile(data).symbols, 4))
    assert decode(data).header["version"] in opcodes.VERSIONS


def test_each_version_is_kept() -> None:
    """A new version needs a folder of the one before: tests/plan/old/write.py."""
    found = {version_of(case.file.read_bytes()) for case in CASES.values()}
    assert found == {*opcodes.FIRST_VERSIONS, *opcodes.VERSIONS, *opcodes.STORED_VERSIONS}
    assert found == set(range(1, opcodes.STORED_VERSION + 1))


def test_no_number_is_given_away_twice() -> None:
    """What a number in a plan stands for never changes: rows are added at the end. An operation may be retired."""
    now = numbers.numbers()
    for table, then in json.loads(numbers.FILE.read_text()).items():
        rows = zip(then, now[table], strict=False)
        changed = [(old, new) for old, new in rows if old != new and not (table == "operations" and new == "")]
        assert (table, changed) == (table, [])
        assert len(now[table]) >= len(then), table


def test_no_file_is_left_out() -> None:
    files = {f"{folder}/{file.stem}" for folder in FOLDERS for file in (HERE / folder).glob("*.rnn")}
    assert files == CASES.keys()
    assert {folder.name for folder in HERE.glob("v*")} == {*FOLDERS}


def test_states_and_what_was_stored_are_read() -> None:
    for folder in ("v2", "v3", "v5"):
        session = webrnn.InferenceSession(HERE / folder / "about.rnn")
        assert session.about == {"rate": 16000, "name": "né"}
        assert PlanFile((HERE / folder / "about.rnn").read_bytes()).states[0].input == "h0"


def test_an_old_convolution_is_checked_by_its_own_order() -> None:
    """Weights in the order of a version are none of another one, for both verifiers."""
    data = bytearray((HERE / "v3" / "conv2d.rnn").read_bytes())
    struct.pack_into("<i", data, 4, opcodes.VERSION)
    with pytest.raises(webrnn.PlanError, match="operands do not fit"):
        webrnn.InferenceSession(bytes(data), backend=KERNELS[0]).run(None, CASES["v3/conv2d"].steps[0][0])
    with pytest.raises(webrnn.PlanError, match="operands do not fit"):
        verify(bytes(data), {"n": 1, "w": 10})


@pytest.mark.parametrize("version", [-1, 0, 7, 99])
def test_a_version_that_never_was(version: int) -> None:
    data = bytearray((HERE / "v5" / "gru.rnn").read_bytes())
    struct.pack_into("<i", data, 4, version)
    advice = "update webrnn" if version > 0 else "the file is damaged"
    with pytest.raises(webrnn.PlanError, match=f"of version {version}, this webrnn reads versions 1 to 6: {advice}"):
        webrnn.InferenceSession(bytes(data))


def test_damaged_plans_of_the_first_versions() -> None:
    """They run or are refused with a typed error, as all others: what is brought up is checked as any plan."""
    chosen = random.Random(5)
    files = [case.file.read_bytes() for name, case in CASES.items() if name.startswith(("v1/", "v2/"))]
    refused = 0
    for _ in range(400):
        data = bytearray(chosen.choice(files))
        for _ in range(chosen.randint(1, 3)):
            at = 4 * chosen.randrange(2, min(len(data) // 4, 400))
            number = chosen.choice([-1, 0, 1, 6, 71, 2**31 - 1, -(2**31), chosen.randrange(1000)])
            struct.pack_into("<i", data, at, number)
        made = bytes(data[: chosen.randrange(len(data))] if chosen.random() < 0.1 else data)
        try:
            verify(brought_up(made), {})
            session = webrnn.InferenceSession(made, limits=webrnn.Limits(loop_steps=1000, run_steps=1000))
            session.run(None, {port.name: np.ones([2] * len(port.shape), "f4") for port in session.get_inputs()})
        except webrnn.Error:
            refused += 1
    assert refused > 100

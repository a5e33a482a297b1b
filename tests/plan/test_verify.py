"""The verifier in Python against the one in C."""

from __future__ import annotations

import random

import numpy as np
import pytest

from tests.backends import MAIN
from tests.plan.corpus import samples
from tests.plan.corruption import corrupted
from tests.plan.harness import graph_of, plan_of
from tests.plan.hostile import hostile
from webrnn.engine.kernels import loading as kernels
from webrnn.errors import PlanError
from webrnn.plan import opcodes
from webrnn.plan.decode import decode
from webrnn.plan.file import NUMBER, PlanFile
from webrnn.plan.instructions import ROWS, RUN_ALONG
from webrnn.plan.operand_rules import OPERAND_RULES
from webrnn.plan.verify import verify, verify_tables

OURS = kernels.load(MAIN).unfused()
CHECK, BIND, TABLE_BYTES = (OURS.function(f"plan_{name}") for name in ("check", "bind", "table_bytes"))


def refused_by_c(data: bytes, symbols: list[int]) -> int:
    """0, or what plan_check or plan_bind say."""
    plan = OURS.buffer(np.frombuffer(data, np.uint8), np.uint8)
    error = CHECK(plan.address, len(data))
    if error:
        return error
    tables, numbers = OURS.empty(TABLE_BYTES(plan.address), np.uint8), OURS.buffer(symbols or [0], np.int32)
    return BIND(plan.address, numbers.address, tables.address)


def refused_by_python(data: bytes, symbols: list[int]) -> str:
    """ "", or why."""
    try:
        verify_tables(decode(data), symbols)
    except PlanError as error:
        return str(error)
    return ""


def test_every_instruction_has_a_rule():
    assert OPERAND_RULES.keys() == ROWS.keys() - {"beside", "expression", "loop"}


@pytest.mark.parametrize("name", RUN_ALONG)
def test_what_takes_the_next_one_along_has_an_expression_behind_it(name):
    """The VM would read whatever lies there as one."""
    tried = 0
    for sample in samples():
        words = np.frombuffer(sample.data[: len(sample.data) // 4 * 4], "<i4")
        header = dict(zip(opcodes.HEADER, words.tolist(), strict=False))
        code_start, code = header["words"] - header["code_words"], decode(sample.data).code
        for instruction, behind in zip(code, [*code[1:], None], strict=True):
            if instruction.name != name:
                continue
            at = code_start + instruction.at + 1 + len(instruction.operands)
            assert words[at] == instruction.operands[-1]
            for along in (1, 2, -1):
                edited = words.copy()
                edited[at] = along
                data = edited.tobytes() + sample.data[4 * len(words) :]
                may_be = along == 1 and behind is not None and behind.name == "expression"
                error = refused_by_c(data, list(sample.symbols))
                assert bool(error) == bool(refused_by_python(data, list(sample.symbols)))
                assert may_be or opcodes.ERROR_ROWS[error].name == "bad_instruction"
                tried += not may_be
    assert tried > 1


def test_every_instruction_is_in_some_sample():
    found = set()
    for sample in samples():
        pending = [decode(sample.data).code]
        while pending:
            for instruction in pending.pop():
                found.add(instruction.name)
                pending.extend(instruction.blocks)
    missing = ROWS.keys() - found
    assert missing <= {"require"}


def test_plans_are_accepted():
    for sample in samples():
        verify(sample.data)
        verify(sample.data, dict(zip(PlanFile(sample.data).symbols, sample.symbols, strict=True)))
        assert not refused_by_c(sample.data, list(sample.symbols))
        for number in (0, 1, 2, 7, 2**20, 2**31 - 1, -1):
            symbols = [number] * len(sample.symbols)
            assert bool(refused_by_c(sample.data, symbols)) == bool(refused_by_python(sample.data, symbols)), (
                sample.name
            )


def test_both_refuse_the_same_of_what_was_never_whole():
    outcomes = {True: 0, False: 0}
    for seed in range(4000):
        data = hostile(random.Random(seed)).data
        by_c, by_python = refused_by_c(data, []), refused_by_python(data, [])
        assert bool(by_c) == bool(by_python), (seed, opcodes.ERRORS[by_c], by_python)
        outcomes[bool(by_c)] += 1
    assert min(outcomes.values()) > 400, outcomes


@pytest.mark.parametrize("block", range(8))
def test_both_refuse_the_same(block):
    """On damaged plans; symbols that the header makes up are 3."""
    outcomes = {True: 0, False: 0}
    for seed in range(1000 * block, 1000 * block + 1000):
        rng = random.Random(seed)
        sample = rng.choice(samples())
        data = corrupted(sample, rng)
        symbols = [*sample.symbols, *[3] * 2000]
        by_c, by_python = refused_by_c(data, symbols), refused_by_python(data, symbols)
        assert bool(by_c) == bool(by_python), (seed, sample.name, opcodes.ERRORS[by_c], by_python)
        outcomes[bool(by_c)] += 1
    assert min(outcomes.values()) > 50, outcomes


def test_an_error_names_the_instruction_and_the_node():
    data = bytearray(plan_of(graph_of(lambda b, x: b.op("Tanh", x, name="squash"), "f n 3")))
    start = len(opcodes.HEADER)
    tables = decode(bytes(data))
    verify(bytes(data), {"n": 1})
    row = 4 * (start + 3 * len(tables.sizes) + 4 * 0 + 2)
    one = next(i for i, (kind, a, _) in enumerate(tables.sizes) if kind == NUMBER and a == 1)
    data[row : row + 4] = one.to_bytes(4, "little")
    with pytest.raises(PlanError, match=r"squash.*instruction at word 0, expression: tensor \d+ reaches"):
        verify(bytes(data), {"n": 1})


def test_missing_sizes_and_written_inputs_raise():
    data = plan_of(graph_of(lambda b, x: b.op("Tanh", x), "f n 3"))
    with pytest.raises(PlanError, match="no number for the size n"):
        verify(data, {})
    tables = decode(data)
    (row,) = [i for i, buffer in enumerate(tables.buffers) if buffer.kind == "external" and not buffer.writable]
    at = 4 * (len(opcodes.HEADER) + 3 * len(tables.sizes) + 4 * row + 3)
    damaged = bytearray(data)
    damaged[at + 3] |= opcodes.WRITABLE >> 24
    with pytest.raises(PlanError, match="'x0' is written"):
        verify(bytes(damaged))

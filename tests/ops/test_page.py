"""docs/ops.md is true, and what rows say of plans too."""

from __future__ import annotations

import pytest

from tests.ops.page import PAGE, counts, page
from webrnn.onnx.contributed import MODULES as CONTRIBUTED
from webrnn.ops.rows import ROWS
from webrnn.passes.expand_ops import MODULES
from webrnn.plan.opening import OPENERS

EXPANDED = {*MODULES, *(f"{domain}:{op}".removeprefix(":") for domain, op in CONTRIBUTED)}


@pytest.fixture(scope="module")
def found():
    return counts()


def test_the_page_says_what_runs_where(found):
    assert PAGE.read_text() == page(found), "run python -m tests.ops.page"


def test_every_op_that_has_a_lowering_becomes_a_plan(found):
    lowered = {row.op for row in ROWS.values() if row.plan and not row.domain}
    assert {op for op in lowered if not found[op][1]} == set()


def test_what_has_none_becomes_one_only_where_passes_rewrite_it(found):
    lowered = {row.op for row in ROWS.values() if row.plan}
    others = {op for op, (_, plans, *_) in found.items() if plans and op not in lowered}
    loops = {"CausalConvWithState", "GRU", "LSTM", "LinearAttention", "Loop", "RNN", "SequenceMap"}
    renamed = {op for op in others if op not in {row.op for row in ROWS.values()}}  # reading makes others of them
    read = {"Bernoulli", "OptionalGetElement"}
    assert others - loops - EXPANDED - renamed - read - OPENERS.keys() == {"Shape", "Size"}

"""A pass or a switch on and off: the same results, and whether it made a difference."""

from __future__ import annotations

import pytest

from webrnn.bench import ab
from webrnn.bench.case import make_case
from webrnn.bench.models import conditioned, custom_cell, decoder, gru_step, sequence
from webrnn.bench.rounds import Effort
from webrnn.errors import OptionError

QUICK = Effort(seconds=0, rounds=2)
CASES = {
    "gru": lambda: make_case("gru", sequence("GRU", 16, 6, seed=1)),
    "lstm": lambda: make_case("lstm", sequence("LSTM", 16, 6, seed=1)),
    "cell": lambda: make_case("cell", custom_cell(16, 6, seed=1)),
    "step": lambda: make_case("step", gru_step(16, seed=1)),
    "conditioned": lambda: make_case("conditioned", conditioned(16, 6, seed=1)),
}


@pytest.mark.parametrize(
    ("name", "model"),
    [
        ("scan_buffers", "gru"),
        ("scan_buffers", "cell"),
        ("fused_sequences", "gru"),
        ("fused_sequences", "lstm"),
        ("inline_single_step", "step"),
        ("hoist_sequences", "gru"),
        ("hoist_invariants", "conditioned"),
    ],
)
def test_bits_are_the_same_on_and_off(name, model):
    [found] = ab.compare([ab.switch(name)], [CASES[model]()], QUICK)
    on, off = found.model.results
    assert (on.failure, off.failure) == ("", "")
    assert off.same_bits
    assert not found.same_program
    assert found.row()[-1] == "same"


def test_relaxed_against_simd_rounds_differently():
    [found] = ab.compare([ab.switch("relaxed")], [CASES["lstm"]()], QUICK)
    assert found.model.results[1].same_bits is False
    assert found.row()[-1].startswith("differ, ")


def test_a_pass_that_has_nothing_to_do_is_seen():
    [found] = ab.compare([ab.switch("prune_branches")], [CASES["gru"]()], QUICK)
    assert found.same_program
    assert "same program" in ab.text([found])


def test_two_cells_in_one_body_are_a_loop_either_way():
    """What docs/scan-study.md says."""
    [found] = ab.compare([ab.switch("fused_sequences")], [make_case("decoder", decoder(16, 6, seed=1))], QUICK)
    assert found.same_program


def test_unknown_names():
    with pytest.raises(OptionError, match="no such pass or switch"):
        ab.switch("hoist")

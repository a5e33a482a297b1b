"""What is rare: the core modules refuse it, and run the rest as the full ones do."""

from __future__ import annotations

import random

import numpy as np
import pytest

from tests.plan.corpus import samples
from tests.plan.corruption import corrupted
from tests.plan.harness import graph_of, plan_of
from webrnn.engine.kernels import loading as kernels
from webrnn.engine.kernels.wasm import CORE, TRAINING, VARIANTS
from webrnn.engine.programs.plan_program import PlanProgram
from webrnn.errors import PlanError
from webrnn.plan import opcodes
from webrnn.plan.decode import decode
from webrnn.plan.instructions import INSTRUCTIONS, MODULES
from webrnn.plan.operations import OPERATIONS, RARE_TYPES
from webrnn.plan.rare import rare_parts, unfused_parts

NEEDS_FULL = next(number for number, row in enumerate(opcodes.ERROR_ROWS) if row.name == "needs_full")


def checked(spec: str, data: bytes) -> int:
    """What plan_check says."""
    build = kernels.load(spec)
    plan = build.buffer(np.frombuffer(data, np.uint8), np.uint8)
    return int(build.function("plan_check")(plan.address, len(data)))


@pytest.mark.parametrize("module", ["core", "training"])
@pytest.mark.parametrize("variant", VARIANTS)
def test_a_module_refuses_exactly_what_it_does_not_have(variant: str, module: str) -> None:
    found: set[str] = set()
    for sample in samples():
        parts = rare_parts(decode(sample.data), module)
        found.update(parts)
        if variant == "relaxed" and unfused_parts(decode(sample.data)):
            continue  # test_unfused.py
        assert checked(f"wasm:{variant}", sample.data) == 0
        assert checked(f"wasm:{variant}-{module}", sample.data) == (NEEDS_FULL if parts else 0), (sample.name, parts)
    assert found >= {row.name for row in INSTRUCTIONS if module not in row.modules}, "each is in a sample"
    common = [sample for sample in samples() if not rare_parts(decode(sample.data), module)]
    assert len(common) > 10


def test_everything_is_in_the_full_module() -> None:
    assert all("full" in row.modules and set(row.modules) <= set(MODULES) for row in INSTRUCTIONS)


@pytest.mark.parametrize("module", [CORE, TRAINING])
def test_a_module_refuses_whatever_a_full_one_refuses(module: str) -> None:
    outcomes = {0: 0, NEEDS_FULL: 0}
    for seed in range(1500):
        rng = random.Random(seed)
        data = corrupted(rng.choice(samples()), rng)
        full, core = checked("wasm:relaxed", data), checked(f"wasm:relaxed{module}", data)
        assert core in (full, NEEDS_FULL), (seed, opcodes.ERRORS[full], opcodes.ERRORS[core])
        outcomes[core] = outcomes.get(core, 0) + 1
    assert min(outcomes[0], outcomes[NEEDS_FULL]) > 50, outcomes


@pytest.mark.parametrize(
    ("build", "text", "rare"),
    [
        (lambda b, x: b.op("Det", x), "f 3 3", ["det", "f64"]),
        (lambda b, x: b.op("Tanh", x), "d n", ["f64"]),
        (lambda b, x: b.op("Cast", x, to=17), "f n", ["f8e4m3fn", "to_f8e4m3fn"]),
        (lambda b, x: b.op("Tanh", x), "f n", []),
        (lambda b, x: b.op("Softmax", x, axis=-1), "h n 3", []),
    ],
)
def test_what_is_named(build, text: str, rare: list[str]) -> None:
    data = plan_of(graph_of(build, text))
    assert set(rare_parts(decode(data))) >= set(rare)
    assert bool(rare_parts(decode(data))) == bool(rare)
    core = kernels.load(f"wasm:relaxed{CORE}")
    if rare:
        with pytest.raises(PlanError, match=r"^the plan needs the full module of kernels, and this is a smaller"):
            PlanProgram(data, core)
    else:
        PlanProgram(data, core)


def test_operations_of_rare_types_are_rare() -> None:
    rows = [row for row in OPERATIONS if row.name]
    assert all(row.is_rare for row in rows if RARE_TYPES & {*row.takes, row.gives})
    assert {row.name for row in rows if row.kernel and row.is_rare} == {"saturate_u8", "saturate_i8"}
    assert {"add_d", "to_f64", "bits_f4e2m1"} <= {row.name for row in rows if row.is_rare}


def test_a_core_module_exports_nothing_but_what_runs_plans() -> None:
    core = kernels.load(f"wasm:relaxed{CORE}")
    assert callable(core.plan_run)
    with pytest.raises(AttributeError, match="there is no kernel 'gemm'"):
        _ = core.gemm

"""What only unfused builds have: fused ones refuse it, and hosts go on to the build that has it."""

from __future__ import annotations

import random
from functools import cache, partial

import numpy as np
import pytest

from tests.plan.corpus import Sample, samples
from tests.plan.corruption import corrupted
from tests.plan.harness import BUILDS, assert_same_bits
from tests.plan.test_rare import NEEDS_FULL, checked
from webrnn.engine.exporting import describe
from webrnn.engine.kernels import loading as kernels
from webrnn.engine.kernels.wasm import CORE
from webrnn.engine.programs.plan_program import PlanProgram
from webrnn.errors import PlanError
from webrnn.plan import opcodes
from webrnn.plan.decode import decode
from webrnn.plan.file import PlanFile
from webrnn.plan.instructions import INSTRUCTIONS
from webrnn.plan.rare import rare_parts, unfused_parts
from webrnn.profile.profiler import profile

NEEDS_UNFUSED = next(number for number, row in enumerate(opcodes.ERROR_ROWS) if row.name == "needs_unfused")
FUSED = [spec for spec in BUILDS if kernels.load(spec).fused]


@cache
def unfused_samples() -> list[Sample]:
    return [sample for sample in samples() if unfused_parts(decode(sample.data))]


def arguments_of(sample: Sample) -> list[np.ndarray]:
    file, rng = PlanFile(sample.data), np.random.default_rng(1)
    sizes = file.sizes(list(sample.symbols))
    return [rng.standard_normal([sizes[row] for row in port.sizes], np.float32) for port in file.inputs]


@pytest.mark.parametrize("spec", BUILDS)
def test_fused_builds_refuse_exactly_what_only_others_have(spec: str) -> None:
    expected = NEEDS_UNFUSED if kernels.load(spec).fused else 0
    found: set[str] = set()
    for sample in samples():
        parts = unfused_parts(decode(sample.data))
        found.update(parts)
        assert checked(spec, sample.data) == (expected if parts else 0), (sample.name, parts)
    assert found == {row.name for row in INSTRUCTIONS if row.is_unfused}, "each is in a sample"


def test_a_relaxed_core_module_says_what_it_finds_first() -> None:
    for sample in unfused_samples():
        both = (NEEDS_UNFUSED, NEEDS_FULL) if rare_parts(decode(sample.data)) else (NEEDS_UNFUSED,)
        assert checked(f"wasm:relaxed{CORE}", sample.data) in both


@pytest.mark.parametrize("spec", FUSED)
def test_a_fused_build_refuses_whatever_its_unfused_one_refuses(spec: str) -> None:
    unfused = kernels.load(spec).unfused_spec
    for seed in range(500):
        rng = random.Random(seed)
        data = corrupted(rng.choice([*unfused_samples(), *samples()[:5]]), rng)
        mine, theirs = checked(spec, data), checked(unfused, data)
        assert mine in (theirs, NEEDS_UNFUSED), (seed, opcodes.ERRORS[mine], opcodes.ERRORS[theirs])


def test_a_program_goes_on_to_the_unfused_build_and_all_give_the_same_bits() -> None:
    for sample in unfused_samples():
        arguments, first = arguments_of(sample), None
        for spec in BUILDS:
            build = kernels.load(spec)
            program = PlanProgram(sample.data, build)
            assert program.kernels.spec == build.unfused_spec
            assert program.is_exchanged == build.fused
            phrase = f"backend given, on the unfused build {build.unfused_spec}\n"
            assert describe(program, "given", []).startswith(phrase) == build.fused
            results = program.run(arguments)
            first = first or results
            assert_same_bits(results, first, f"{sample.name} on {spec}")
            assert_same_bits(program.another().run(arguments), first, f"{sample.name} on {spec}, another")


def test_a_core_module_goes_on_to_a_core_module() -> None:
    core = kernels.load(f"wasm:relaxed{CORE}")
    for sample in unfused_samples():
        if rare_parts(decode(sample.data)):
            with pytest.raises(PlanError, match=r"^the plan needs the full module of kernels, and this is a smaller"):
                PlanProgram(sample.data, core)
        else:
            assert PlanProgram(sample.data, core).kernels.spec == f"wasm:simd{CORE}"


def test_other_plans_stay_where_they_are() -> None:
    sample = next(sample for sample in samples() if not unfused_parts(decode(sample.data)))
    for spec in BUILDS:
        program = PlanProgram(sample.data, kernels.load(spec))
        assert program.kernels.spec == spec
        assert not program.is_exchanged


@pytest.mark.parametrize("spec", ["native", "wasm:relaxed"])
def test_profiles_are_of_the_build_that_runs(spec: str) -> None:
    for sample in unfused_samples()[:1]:
        build, arguments = kernels.load(spec), arguments_of(sample)
        program = PlanProgram(sample.data, build)
        found = profile("model", program, arguments, spec, partial(program.run, arguments), runs=2, seconds=0.01)
        assert found.backend == build.unfused_spec

"""The clock of profiling builds, and that others do not have it."""

import pytest
import wasmtime

from webrnn.engine.kernels import wasm
from webrnn.engine.kernels.loading import FOLDER, bindings
from webrnn.profile.clock import calibrate
from webrnn.profile.timed_plan import PROFILE_FOLDER

from .harness import BUILDS, kernels


@pytest.mark.parametrize("spec", BUILDS)
def test_calibration(spec):
    clock = calibrate(kernels(spec))
    assert clock.seconds_per_tick > 0
    assert clock.ticks_per_lap > 0
    assert clock.seconds_per_lap == clock.seconds_per_tick * clock.ticks_per_lap


@pytest.mark.parametrize("variant", wasm.VARIANTS)
def test_what_is_shipped_imports_memory_a_clock_and_nothing_else(variant):
    engine = wasm._engine()
    plain, profiling = (
        wasmtime.Module.from_file(engine, str(folder / f"wasm_{variant}.wasm")) for folder in (FOLDER, PROFILE_FOLDER)
    )
    assert sorted(each.name for each in plain.imports) == ["memory", "now"]
    assert sorted(each.name for each in profiling.imports) == ["memory", "now", "profile_clock"]
    assert not any("profile" in each.name for each in plain.exports)
    assert {"wr_plan_profile", "wr_profile_calibrate"} <= {each.name for each in profiling.exports}


def test_profiling_builds_are_the_others_and_two_functions_more():
    plain = {each.name for each in bindings(FOLDER)}
    assert {each.name for each in bindings(PROFILE_FOLDER)} == plain | {"plan_profile", "profile_calibrate"}

"""Counts that are the same on every machine: what the VM does in one run of a model, and how large things are."""

from __future__ import annotations

import zlib
from collections import Counter
from functools import cache
from typing import Any

import numpy as np

from tests.models.fetch import MODELS, model_path
from tests.models.test_against_onnxruntime import SHAPES
from webrnn import InferenceSession
from webrnn.bench.models import BUILT_IN
from webrnn.engine.kernels.loading import FOLDER, Kernels
from webrnn.engine.kernels.wasm import FILES
from webrnn.engine.programs.plan_program import PlanProgram
from webrnn.engine.programs.vm_program import VmProgram
from webrnn.guesses import random_input
from webrnn.ir import Value
from webrnn.plan.decode import Tables, decode
from webrnn.plan.text import walk
from webrnn.profile.counters import Counters
from webrnn.profile.timed_plan import TimedPlan, profiling_kernels

NAMES = (*BUILT_IN, *sorted(MODELS))


def everything() -> dict[str, Any]:
    return {"models": {name: of_model(name) for name in NAMES}, "modules": modules()}


def of_model(name: str) -> dict[str, Any]:
    """What one run of a model does: a step where the model is one for streams."""
    data, arguments = plan_and_arguments(name)
    plan = TimedPlan(data, _kernels(), arguments)
    _, counters = plan.profiled(1)
    tables = decode(data)
    return {
        "executed": _executed(tables, counters),
        "parts": _parts(tables, counters),
        "instructions": sum(1 for _ in walk(tables.code)),
        "plan_words": tables.header["words"],
        "weight_bytes": tables.header["data_bytes"],
        "arena_bytes": plan.needed_bytes,
    }


def modules() -> dict[str, dict[str, int]]:
    """The wasm modules that are shipped: in bytes, and compressed as a server would."""
    files = {name: (FOLDER / name).read_bytes() for name in FILES}
    return {name: {"bytes": len(data), "compressed": len(zlib.compress(data, 9))} for name, data in files.items()}


def plan_and_arguments(name: str) -> tuple[bytes, list[np.ndarray]]:
    """The plan that a model runs on, and random inputs."""
    model: Any = BUILT_IN[name]() if name in BUILT_IN else model_path(name)
    fixed = {"sr": 16000} if name.startswith("silero") and name != "silero_v6_seq" else None
    session = InferenceSession(model, backend="native", fixed=fixed)
    rng = np.random.default_rng(0)
    feeds = {value.name: _input(name, value, rng) for value in session.inputs}
    session.run(None, feeds)
    program: Any = session._program
    arguments = list(feeds.values())
    if isinstance(program, VmProgram):
        program = program.ran_on(arguments)
    assert isinstance(program, PlanProgram), f"{name} does not run on the VM alone"
    return program.file.data, arguments


def _input(model: str, value: Value, rng: np.random.Generator) -> np.ndarray:
    shape = SHAPES.get(model, {}).get(value.name)
    return random_input(value if shape is None else Value(value.name, value.dtype, shape), {}, rng)


@cache
def _kernels() -> Kernels:
    return profiling_kernels("native")


def _executed(tables: Tables, counters: Counters) -> dict[str, int]:
    """Instructions by kind, and all together."""
    found: Counter[str] = Counter()
    for instruction in walk(tables.code):
        found[instruction.name] += counters.count(instruction.at)
    return {"all": found.total(), **{name: count for name, count in sorted(found.items()) if count}}


def _parts(tables: Tables, counters: Counters) -> dict[str, int]:
    """Products, cells and packings inside fused instructions, steps of loops and branches taken."""
    found: Counter[str] = Counter()
    for instruction in walk(tables.code):
        for index, (name, _) in enumerate(instruction.row.parts, 1):
            found[f"{instruction.name} {name}"] += counters.count(instruction.at, index)
    return {name: count for name, count in sorted(found.items()) if count}

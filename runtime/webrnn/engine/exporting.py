"""Plan files of sessions: writing one, running one, and saying what a session runs on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from webrnn.errors import BackendError, PlanError
from webrnn.ir import Value
from webrnn.plan.encode import encode_again
from webrnn.plan.halves import stored_plan
from webrnn.plan.stored_pool import PoolAxes

from .limits import Limits
from .programs.backends import Program, kernels_of
from .programs.plan_program import PlanProgram

if TYPE_CHECKING:
    from .programs.vm_program import VmProgram
    from .streams.batching import Batched
    from .streams.streaming import StreamingModel


def load_plan(data: bytes, backend: str, limits: Limits, threads: int = 1) -> PlanProgram:
    if backend == "numpy":
        raise BackendError("a plan runs on kernels, not in numpy: use native, wasm or pyodide")
    return PlanProgram(data, kernels_of(backend, threads)(), limits=limits)


def export_plan(
    program: Program,
    inputs: Sequence[Value],
    shapes: Mapping[str, Sequence[int]] | None,
    about: Mapping[str, Any] | None,
    notes: Sequence[str],
) -> bytes:
    """The file of a session's plan: the one for all sizes, or one for given shapes."""
    return stored_plan(encode_again(_plan(program, inputs, shapes, notes).file, None, about))


def export_stream(
    model: StreamingModel,
    shapes: Mapping[str, Sequence[int]] | None,
    about: Mapping[str, Any] | None,
    notes: Sequence[str],
) -> bytes:
    """The same of its streams, with their states."""
    if shapes is not None:
        shapes = {**model.state_shapes(shapes), **shapes}
    plan = _plan(model.program, model.inputs, shapes, notes)
    return stored_plan(encode_again(plan.file, model.stored_states(shapes), about, model.timing, _pool_of(model)))


def _pool_of(model: StreamingModel) -> PoolAxes | None:
    """The axes that count streams, if the model is a plan from a file that runs many with these states."""
    from .streams.batching import batched_plan

    batched = batched_plan(model)
    return None if isinstance(batched, str) else PoolAxes(batched.inputs, batched.outputs)


def export_pool(
    model: StreamingModel,
    batched: Batched | str,
    shapes: Mapping[str, Sequence[int]] | None,
    about: Mapping[str, Any] | None,
) -> bytes:
    """The file of a plan that takes many streams; what their states start from is that of one."""
    if isinstance(batched, str):
        raise PlanError(f"the streams of this model cannot be put side by side: {batched}")
    if any(port.is_late for port in batched.program.file.outputs):
        raise PlanError("the streams of this model cannot be put side by side: results have sizes that data decide")
    axes = PoolAxes(batched.inputs, batched.outputs)
    states = model.stored_states(shapes)
    return stored_plan(encode_again(batched.program.file, states, about, model.timing, axes))


def _plan(
    program: Program, inputs: Sequence[Value], shapes: Mapping[str, Sequence[int]] | None, notes: Sequence[str]
) -> PlanProgram:
    from .programs.vm_program import VmProgram

    if isinstance(program, PlanProgram):
        if shapes:
            raise PlanError("a plan that was loaded from a file cannot be given other shapes")
        return program
    if not isinstance(program, VmProgram):
        raise PlanError("the numpy backend makes no plans: use native or wasm")
    if shapes is not None:
        return program.plan_for(all_shapes(inputs, shapes))
    if program.plan is None:
        raise PlanError(no_plan(program, notes, takes_tensors=not any(value.container for value in inputs)))
    return program.plan


def no_plan(program: VmProgram, notes: Sequence[str], takes_tensors: bool = True) -> str:
    """Why there is no plan for all sizes, and whether there would be one for given shapes."""
    from .programs.obstacles import listed

    known = [note.partition(": ")[2] for note in notes[:1]]
    with_shapes = program.obstacles_for_some_shapes()
    if with_shapes:
        return listed("there is no plan of this model", with_shapes)
    hint = "give shapes={input: shape}" if takes_tensors else ""
    return listed("there is no plan for all sizes", program.obstacles() or known, hint)


def all_shapes(inputs: Sequence[Value], shapes: Mapping[str, Sequence[int]]) -> tuple[tuple[int, ...], ...]:
    """The shapes of all inputs: those that are given, and those that the model declares."""
    unknown = shapes.keys() - {value.name for value in inputs}
    if unknown:
        raise PlanError(f"the model has no input {sorted(unknown)[0]!r}")
    found = []
    for value in inputs:
        shape: Any = shapes.get(value.name, value.shape)
        if shape is None or not all(isinstance(size, int) for size in shape):
            raise PlanError(f"give the shape of {value.name!r} as well")
        found.append(tuple(shape))
    return tuple(found)


def describe(program: Program, backend: str, notes: Sequence[str]) -> str:
    """A few lines for people."""
    from .programs.vm_program import VmProgram  # as above

    lines = [f"backend {backend}"]
    plan = program if isinstance(program, PlanProgram) else getattr(program, "plan", None)
    if plan is not None:
        if plan.is_exchanged:
            lines[0] += f", on the unfused build {plan.kernels.spec}"
        kind = "a plan for all sizes" if plan.file.symbols else "one plan"
        if plan.file.pool is not None:
            kind = "a plan for a pool of streams"
        lines.append(f"{kind}: {len(plan.file.data)} bytes, {plan.file.header['code_words']} words of instructions")
        if plan.arena_bytes:
            lines.append(f"arena: {plan.arena_bytes} bytes")
    for note in dict.fromkeys(notes):
        lines.append(note)
        if note.startswith("no plan for all sizes: ") and isinstance(program, VmProgram):
            first = note.partition(": ")[2]
            lines.extend(f"  {line}" for line in program.obstacles() if line != first)
    return "\n".join(lines)

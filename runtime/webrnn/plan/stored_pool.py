"""Which axis counts streams, in the metadata of a plan file that runs many streams side by side."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from webrnn.errors import PlanError

if TYPE_CHECKING:
    from .file import PlanFile

DAMAGED = "the metadata of the pool are damaged"


@dataclass(frozen=True, slots=True)
class PoolAxes:
    """For each input and each output of a plan the axis that counts streams."""

    inputs: tuple[int, ...]
    outputs: tuple[int, ...]


def stored_pool(pool: PoolAxes) -> dict[str, Any]:
    """As JSON."""
    return {"inputs": list(pool.inputs), "outputs": list(pool.outputs)}


def pool_text(pool: PoolAxes, file: PlanFile) -> str:
    """For people."""
    name = file.inputs[0].shape[pool.inputs[0]]
    return f"pool\n  any number of streams in one run, counted by {name}; one stream alone is one row"


def read_pool(row: Any, file: PlanFile) -> PoolAxes:
    """What a file says, checked against what it takes and gives: one named size, which is on no other axis."""
    try:
        pool = PoolAxes(tuple(row["inputs"]), tuple(row["outputs"]))
    except (TypeError, KeyError, AttributeError) as error:
        raise PlanError(DAMAGED) from error
    if not _fits(pool, file):
        raise PlanError(DAMAGED)
    return pool


def _fits(pool: PoolAxes, file: PlanFile) -> bool:
    axes, ports = (*pool.inputs, *pool.outputs), (*file.inputs, *file.outputs)
    if not pool.inputs or len(pool.inputs) != len(file.inputs) or len(axes) != len(ports):
        return False
    pairs = list(zip(ports, axes, strict=True))
    if not all(type(axis) is int and 0 <= axis < len(port.shape) and not port.is_late for port, axis in pairs):
        return False
    places = {port.name: axis for port, axis in zip(file.inputs, pool.inputs, strict=True)}
    after = {port.name: axis for port, axis in zip(file.outputs, pool.outputs, strict=True)}
    if any(places[state.input] != after[state.output] for state in file.states):
        return False
    names = {port.shape[axis] for port, axis in pairs}
    if len(names) > 1 or not names <= {*file.symbols}:
        return False
    number = file.symbols.index(str(names.pop()))
    others = {size for port, axis in pairs for place, size in enumerate(port.sizes) if place != axis}
    counts = {port.sizes[axis] for port, axis in pairs}
    return all(_counts(file, number, n, counts, others) for n in (1, 2))


def _counts(file: PlanFile, number: int, n: int, counts: set[int], others: set[int]) -> bool:
    """Whether these sizes are n if the symbol with this number is n, and the others do not depend on it."""
    symbols: list[Any] = [n if place == number else None for place in range(len(file.symbols))]
    known = file.sizes(symbols)
    free = file.sizes([1 if symbol is None else None for symbol in symbols])
    return all(known[size] == n for size in counts) and all(free[size] is not None for size in others)

"""The timing of a stream in the metadata of a plan file."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

from webrnn.errors import PlanError
from webrnn.ir.timing import TimedOutput, Timing
from webrnn.tables import table

if TYPE_CHECKING:
    from .file import PlanFile, PlanPort

MOST = 2**31 - 1


def stored_timing(timing: Timing) -> dict[str, Any]:
    """As JSON."""
    outputs = timing.outputs.items()
    return {
        "stride": timing.stride,
        "inputs": [{"name": name, "axis": axis} for name, axis in timing.inputs.items()],
        "outputs": [
            {"name": name, "axis": o.axis, "rate": o.rate, "delay": o.delay, "extra": o.extra} for name, o in outputs
        ],
        "position": timing.position,
        "end": timing.end,
        "rest": timing.rest,
    }


def timing_text(timing: Timing) -> str:
    """For people."""
    frames = f"a multiple of {timing.stride} frames" if timing.stride > 1 else "any number of frames"
    late = f"results are {timing.delay} frames behind" if timing.delay else "results are not late"
    rest = (
        f"a flush feeds {timing.flush_strides * timing.stride} frames"
        if timing.flush_strides
        else "a flush has nothing left"
    )
    rows: list[tuple[object, ...]] = [
        (name, "input", axis, timing.stride, "", "") for name, axis in timing.inputs.items()
    ]
    rows += [(name, "output", o.axis, o.rate, o.delay, f"{o.extra:+}") for name, o in timing.outputs.items()]
    titles = ("name", "kind", "axis", "frames in a stride", "delay", "frames at the end")
    return table(f"time: a step takes {frames}, {late}, {rest}", rows, titles)


def read_timing(row: Any, file: PlanFile) -> Timing:
    """What a file says, checked against what it takes and gives."""
    carried, given = {state.input for state in file.states}, {state.output for state in file.states}
    fed = {port.name: port for port in file.inputs if port.name not in carried}
    returned = {port.name: port for port in file.outputs if port.name not in given}

    def is_counter(port: PlanPort) -> bool:
        """One integer, or one for each stream."""
        return port.dtype == "i64" and (len(port.shape) == 1 if file.pool else port.shape == (1,))

    try:
        timing = Timing(
            row["stride"],
            _by_name(row["inputs"], lambda each: each["axis"]),
            _by_name(row["outputs"], lambda o: TimedOutput(o["axis"], o["rate"], o["delay"], o["extra"])),
            row["end"],
            row["position"],
            row.get("rest", 0),
        )
        fits = (
            _is_count(timing.stride, 1)
            and _is_count(timing.rest, 0)
            and len(timing.inputs) > 0
            and all(_has_axis(fed, name, axis) for name, axis in timing.inputs.items())
            and all(_has_axis(returned, name, output.axis) for name, output in timing.outputs.items())
            and all(_is_output(output) for output in timing.outputs.values())
            and _are_counters(timing, [port.name for port in file.inputs if port.name in carried and is_counter(port)])
        )
    except (TypeError, KeyError, AttributeError) as error:
        raise PlanError("the metadata of time are damaged") from error
    if not fits:
        raise PlanError("the metadata of time are damaged")
    return timing


def _by_name(rows: Any, value: Any) -> dict[str, Any]:
    found = {row["name"]: value(row) for row in rows}
    if not isinstance(rows, list) or len(found) < len(rows):
        raise KeyError
    return found


def _is_count(number: Any, least: int) -> bool:
    return type(number) is int and least <= number <= MOST


def _has_axis(ports: Mapping[str, PlanPort], name: str, axis: Any) -> bool:
    return name in ports and _is_count(axis, 0) and axis < len(ports[name].shape)


def _is_output(output: TimedOutput) -> bool:
    """`extra` may be negative, by as much as there is delay."""
    return _is_count(output.rate, 1) and _is_count(output.delay, 0) and _is_count(output.extra, -output.delay)


def _are_counters(timing: Timing, numbers: Collection[str]) -> bool:
    """Whether the states for the position and the end are there, if they are needed."""
    is_needed = timing.end is not None or timing.warm_up > 0
    return (
        isinstance(timing.position, str)
        and timing.position != timing.end
        and (timing.end is None or timing.end in numbers)
        and (not is_needed or timing.position in numbers)
    )

"""Plans written by hand that take more steps than anybody has time for."""

from __future__ import annotations

from tests.plan.handmade import Handmade
from webrnn.plan import opcodes
from webrnn.plan.instructions import UNLIMITED

MANY = 2**31 - 1
LOOP_WORDS = 14


def nested_loops(*strictness: int, steps: int = MANY) -> bytes:
    """Loops inside each other, each of so many steps; the innermost does nothing. The output is [1.0]."""
    plan = _with_output()
    inside = 0
    for each in reversed(strictness):
        size = plan.number(steps)
        n_steps = -1 if each == UNLIMITED else size
        code, plan.code = plan.code, []
        plan.emit("loop", n_steps, -1, size, -1, -1, -1, -1, 0, 0, inside, 0, each)
        plan.code += code
        inside += LOOP_WORDS
    return _finished(plan)


def endless_sequence(name: str, steps: int | None = None) -> bytes:
    """The steps of a recurrent cell of one unit on one row, in one instruction: as many as there can be, all of which
    have the same input."""
    plan = _with_output()
    gates, n_states, n_params = {"rnn": (1, 1, 3), "gru": (3, 1, 5), "lstm": (4, 2, 7)}[name]
    xw, packed = plan.arena([1, 1, gates]), plan.arena([8 * gates])
    sizes, strides = 4, 4 + opcodes.MAX_RANK
    plan.tensors[xw][sizes] = plan.number(MANY // gates if steps is None else steps)
    plan.tensors[xw][strides] = plan.number(0)
    starts, finals = ([plan.arena([1, 1]) for _ in range(n_states)] for _ in range(2))
    scratch, params = plan.arena([1, gates]), plan.arena([n_params])
    peephole, couple = ([-1], [0]) if name == "lstm" else ([], [])
    plan.emit(f"{name}_sequence", xw, packed, -1, *starts, *peephole, scratch, *finals, -1, params, 0, *couple)
    return _finished(plan)


def _with_output() -> Handmade:
    plan = Handmade()
    plan.output("y", [1], 0)
    return plan


def _finished(plan: Handmade) -> bytes:
    plan.fill(plan.external([1], written=True, external=0), 1.0)
    return plan.data(nodes=[[0, "endless"]])

"""Nodes that work frame by frame: in a stream they are what they are, on operands that are equally late."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from webrnn.ir import DType, Node, Scan, Shape, Value, is_scan
from webrnn.ops.sets import ELEMENTWISE, RESHAPES, SIZES
from webrnn.shapes.facts import Facts

from .kinds import Along, BreaksTime, Mirror
from .paces import Pace, mentions_strides
from .view import SIZE_OPERANDS
from .writer import Writer

_REARRANGING = frozenset({*RESHAPES, "Transpose", "Identity"})
"""These keep what is in each frame, also in those before the first of the stream."""


_BY_ELEMENTS = ELEMENTWISE | {"Identity", "Transpose"}


@dataclass(frozen=True)
class Ready:
    """Operands that are equally late."""

    operands: list[Along]
    delay: int
    is_kept: bool = False
    """Whether frames that come before the stream stay what they are."""
    start: tuple[float, ...] = ()
    mirror: Mirror | None = None

    def write(
        self, node: Node, of: Callable[[Value | None], Along], facts: Facts, results: Sequence[Along]
    ) -> Callable[[Writer], None]:
        def write(writer: Writer) -> None:
            operands = [self._operand(writer, node, index, of, facts) for index in range(len(node.inputs))]
            # the sizes are those of the result then: none of them stands for another
            writer.write(node, operands, {"allowzero": 1} if _reshaped_to(node, facts) else None)

        return write

    def _operand(
        self, writer: Writer, node: Node, index: int, of: Callable[[Value | None], Along], facts: Facts
    ) -> Value | None:
        value = node.inputs[index]
        if value is None:
            return None
        along = of(value)
        if not node.domain and node.op in SIZES:
            return writer.read(value)
        if along.axis is not None:
            return writer.read(value) if self.is_kept else writer.at(value, self.delay)
        if index in SIZE_OPERANDS.get((node.domain, node.op), ()):
            return self._sizes(writer, node, index, value, along, facts)
        return writer.read(value)

    def _sizes(self, writer: Writer, node: Node, index: int, value: Value, along: Along, facts: Facts) -> Value:
        """What an operand says of sizes, said of a step."""
        fact, shape = facts.of(value), _reshaped_to(node, facts)
        if shape is not None:
            return writer.sizes(shape)
        if not along.counts:
            return writer.read(value)
        if fact.content is None:
            raise BreaksTime("it uses a number that depends on the number of frames, and how is not known")
        sizes = writer.sizes(fact.content)
        if fact.shape == ():
            sizes = writer.builder.op("Squeeze", sizes, writer.builder.ints(0))
        wanted = fact.dtype
        if wanted is not None and wanted is not DType.INT64:
            sizes = writer.builder.op("Cast", sizes, to=int(wanted))
        return sizes


def _reshaped_to(node: Node, facts: Facts) -> Shape | None:
    """The shape of the result of a Reshape that has frames, if sizes that are not numbers tell it."""
    if node.op != "Reshape" or node.domain:
        return None
    shape, target = facts.shape(node.outputs[0]), facts.of(node.inputs[1]).content
    if shape is None or None in shape or not any(mentions_strides(size) for size in shape):
        return None
    return None if target is not None and all(isinstance(size, int) for size in target) else shape


def copied(node: Node, operands: Sequence[Along]) -> Ready:
    timed = [operand for operand in operands if operand.axis is not None and not operand.uniform]
    heads = {operand.head for operand in timed}
    if heads - {None} and (len(heads) > 1 or node.domain or node.op not in _BY_ELEMENTS):
        raise BreaksTime(f"it takes the first {max(head or 0 for head in heads)} frames of the sequence")
    if len(timed) == 1 and node.op in _REARRANGING and not node.domain:
        (along,) = timed
        return Ready(list(operands), along.delay, True, along.start, along.mirror)
    delay = max((along.earliest for along in timed), default=0)
    if is_scan(node) and any(state.final is not None for state in Scan.of(node).states):
        delay = max([delay, *(-Pace.of(along.length).extra for along in timed if mentions_strides(along.length))])
    for along in timed:
        if not along.is_pure and not (along.is_settled and along.delay == delay):
            raise BreaksTime("frames that are to be kept share an axis with others", along.axis)
    return Ready([operand.settled(delay) for operand in operands], delay)

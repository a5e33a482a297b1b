"""Random numbers: functions of a counter."""

from __future__ import annotations

from webrnn.ir import WEBRNN, Node

from ..lowering import Lowering, present, rule


@rule("Random", domain=WEBRNN)
def _random(l: Lowering, node: Node) -> None:
    counter, output = l.view(present(node.inputs[0])), present(node.outputs[0])
    seed = node.attrs["seed"]
    word = seed - (1 << 32) if seed >= 1 << 31 else seed
    l.emit("random", counter, l.dense_output(output), word, int(bool(node.attrs.get("normal", 0))))


@rule("Choose", domain=WEBRNN)
def _choose(l: Lowering, node: Node) -> None:
    scores, numbers = (l.dense(l.view(present(value))) for value in node.inputs)
    l.require_not_negative(scores.shape[1] - 1)
    l.emit("choose", scores, numbers, l.dense_output(present(node.outputs[0])))

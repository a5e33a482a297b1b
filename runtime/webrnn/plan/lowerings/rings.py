"""Rings of frames, the histories of streams."""

from __future__ import annotations

from webrnn.ir import WEBRNN, Node

from ..lowering import Lowering, attribute, present, rule
from ..views import View, count_of


@rule("Ring", domain=WEBRNN)
def _ring(l: Lowering, node: Node) -> None:
    """One instruction. Its ring and the next one may be the same memory, if a host says so: then nothing is copied."""
    kept, rows, position = (l.dense(l.view(present(value))) for value in node.inputs)
    following, windows = (l.dense_output(present(value)) for value in node.outputs)
    axis = node.attrs["axis"]

    def shaped(view: View) -> View:
        found = view.reshaped((count_of(view.shape[:axis]), view.shape[axis], count_of(view.shape[axis + 1 :])))
        assert found is not None
        return found

    steps = [attribute(node, name, 1) for name in ("kernel", "dilation", "stride")]
    l.emit(
        "ring", shaped(kept), shaped(rows), position, shaped(following), shaped(windows), node.attrs["rate"],
        node.attrs["history"], *steps,
    )  # fmt: skip

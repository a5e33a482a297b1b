"""Products with small weights: see reference/small.py."""

from __future__ import annotations

from webrnn.ir import WEBRNN, Node

from ..lowering import Lowering, rule


@rule("SmallLinear", "SmallConv", domain=WEBRNN)
def _small(l: Lowering, node: Node) -> None:
    raise l.refuse("it has no instruction yet")

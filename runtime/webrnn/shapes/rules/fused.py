"""Linear and the recurrent cells."""

from __future__ import annotations

from collections.abc import Sequence

from webrnn.ir import WEBRNN, Node

from ..facts import Fact
from .elementwise import common_type
from .linear import product_shape
from .registry import rule


@rule("Linear", domain=WEBRNN)
def linear(node: Node, inputs: Sequence[Fact]) -> Sequence[Fact]:
    return [Fact(common_type(inputs), product_shape(inputs[0].shape, inputs[1].shape))]


@rule("RnnCell", "GruCell", "GruReset", "LstmCell", domain=WEBRNN)
def like_last_state(node: Node, inputs: Sequence[Fact]) -> Sequence[Fact]:
    state = inputs[2] if len(inputs) > 2 else inputs[1]
    return [Fact(state.dtype, state.shape)] * len(node.outputs)


@rule("GruUpdate", domain=WEBRNN)
def gru_update(node: Node, inputs: Sequence[Fact]) -> Sequence[Fact]:
    return [Fact(inputs[3].dtype, inputs[3].shape)]

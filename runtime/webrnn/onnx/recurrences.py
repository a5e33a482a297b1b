"""The ops that are recurrences, and what makes Scans of them."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TypeAlias

from webrnn.ir import GraphBuilder, Node

Expansion: TypeAlias = Callable[[GraphBuilder, Node], bool]
"""Adds what stands for a node to the graph; False says that it has added nothing and the node is to stay."""

_HOMES = {
    "CausalConvWithState": "causal_conv.expand_causal_conv",
    "GRU": "recurrent.expand_gru",
    "LSTM": "recurrent.expand_lstm",
    "LinearAttention": "linear_attention.expand_linear_attention",
    "RNN": "recurrent.expand_rnn",
}


def expansion_of(op: str) -> Expansion | None:
    if op not in _HOMES:
        return None
    module, _, name = _HOMES[op].partition(".")
    found: Expansion = getattr(import_module(f".{module}", __package__), name)
    return found

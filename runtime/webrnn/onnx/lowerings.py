"""The ops that are recurrences, and what makes Scans of them."""

from __future__ import annotations

from collections.abc import Callable

from webrnn.ir import GraphBuilder, Node

from .causal_conv import lower_causal_conv
from .linear_attention import lower_linear_attention
from .recurrent import lower_gru, lower_lstm, lower_rnn

LOWERINGS: dict[str, Callable[[GraphBuilder, Node], bool]] = {
    "CausalConvWithState": lower_causal_conv,
    "GRU": lower_gru,
    "LSTM": lower_lstm,
    "LinearAttention": lower_linear_attention,
    "RNN": lower_rnn,
}
"""Each adds what stands for a node to the graph; False says that it has added nothing and the node is to stay."""

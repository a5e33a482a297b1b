"""torch.nn.RNN, GRU and LSTM with all their options, alone and as parts of usual small models."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from ..table import Family, floats, integers, lengths

family = Family("layers", ("trace", "dynamo"))
X = floats("steps", "batch", 8)
X_BATCH_FIRST = floats("batch", "steps", 8)
QUANTIZED = ("int8", "qdq", "qoperator", "float16")


class OnlySequence(nn.Module):
    """A layer that starts from zeros, and whose last state nobody wants."""

    def __init__(self, layer: nn.Module):
        super().__init__()
        self.layer = layer

    def forward(self, x: Tensor) -> Tensor:
        return self.layer(x)[0]


class LstmWithStates(nn.Module):
    """An LSTM whose states are two inputs and two outputs, as exports for streaming have them."""

    def __init__(self, **options):
        super().__init__()
        self.lstm = nn.LSTM(8, 12, **options)

    def forward(self, x: Tensor, h: Tensor, c: Tensor):
        y, (h, c) = self.lstm(x, (h, c))
        return y, h, c


for kind, layer in {"rnn": nn.RNN, "gru": nn.GRU, "lstm": nn.LSTM}.items():
    for name, options in {
        "plain": {},
        "batch_first": {"batch_first": True},
        "no_bias": {"bias": False},
        "bidirectional": {"bidirectional": True, "batch_first": True},
        "three_layers": {"num_layers": 3, "dropout": 0.1},
        "two_layers_bidirectional": {"num_layers": 2, "bidirectional": True},
    }.items():
        family.add(
            f"{kind}_{name}",
            lambda layer=layer, options=options: OnlySequence(layer(8, 12, **options)),
            {"x": X_BATCH_FIRST if options.get("batch_first") else X},
            versions=QUANTIZED if name in ("batch_first", "bidirectional") else (),
        )

family.add("rnn_relu", lambda: OnlySequence(nn.RNN(8, 12, nonlinearity="relu")), {"x": X})
family.add("lstm_projected", lambda: OnlySequence(nn.LSTM(8, 12, proj_size=5)), {"x": X})
family.add("gru_unbatched", lambda: OnlySequence(nn.GRU(8, 12)), {"x": floats("steps", 8)})
family.add(
    "gru_with_state",
    lambda: nn.GRU(8, 12, num_layers=2),
    {"x": X, "h_in": floats(2, "batch", 12)},
    "y h_out",
    {"h_in": "h_out"},
)
family.add(
    "rnn_with_state",
    lambda: nn.RNN(8, 12, batch_first=True),
    {"x": X_BATCH_FIRST, "h0": floats(1, "batch", 12)},
    "y hn",
    {"h0": "hn"},
)
family.add(
    "lstm_with_states",
    LstmWithStates,
    {"x": X, "h0": floats(1, "batch", 12), "c0": floats(1, "batch", 12)},
    "y hn cn",
    {"h0": "hn", "c0": "cn"},
    versions=QUANTIZED,
)
family.add(
    "lstm_with_states_two_layers_of_one_frame",
    lambda: LstmWithStates(num_layers=2, batch_first=True),
    {"frame": floats(1, 1, 8), "h_in": floats(2, 1, 12), "c_in": floats(2, 1, 12)},
    "y h_out c_out",
    {"h_in": "h_out", "c_in": "c_out"},
)


class Packed(nn.Module):
    """Sequences of different lengths, the way of PyTorch: packed, run, padded again."""

    def __init__(self, layer: nn.Module, sorted_by_user: bool, last: bool = False):
        super().__init__()
        self.layer, self.sorted_by_user, self.last = layer, sorted_by_user, last

    def forward(self, x: Tensor, lengths: Tensor):
        packed = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=self.sorted_by_user)
        y, state = self.layer(packed)
        if self.last:
            return state[0] if isinstance(state, tuple) else state
        return pad_packed_sequence(y, batch_first=True)[0]


PACKED = {"x": X_BATCH_FIRST, "lengths": lengths("steps", "batch")}
for kind, layer in {"rnn": nn.RNN, "gru": nn.GRU, "lstm": nn.LSTM}.items():
    family.add(
        f"{kind}_packed",
        lambda layer=layer: Packed(layer(8, 12, batch_first=True), sorted_by_user=True),
        PACKED,
        exporters=("trace",),
        versions=QUANTIZED if kind == "lstm" else (),
    )
    family.add(
        f"{kind}_packed_bidirectional_unsorted",
        lambda layer=layer: Packed(layer(8, 12, batch_first=True, bidirectional=True), sorted_by_user=False),
        PACKED,
        exporters=("trace",),
    )
    family.add(
        f"{kind}_packed_last_state",
        lambda layer=layer: Packed(layer(8, 12, num_layers=2, batch_first=True), sorted_by_user=True, last=True),
        PACKED,
        exporters=("trace",),
    )


class Classifier(nn.Module):
    """Words to classes by the last state of a bidirectional LSTM."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(50, 8, padding_idx=0)
        self.lstm = nn.LSTM(8, 12, batch_first=True, bidirectional=True)
        self.norm, self.out = nn.LayerNorm(24), nn.Linear(24, 4)

    def forward(self, tokens: Tensor) -> Tensor:
        _, (h, _) = self.lstm(self.embedding(tokens))
        return torch.softmax(self.out(self.norm(torch.cat((h[-2], h[-1]), -1))), -1)


class LanguageModel(nn.Module):
    """AWD-LSTM in small: tied weights, three layers of different widths, states by lists."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(40, 8)
        self.layers = nn.ModuleList([nn.LSTM(8, 12), nn.LSTM(12, 12), nn.LSTM(12, 8)])
        self.decoder = nn.Linear(8, 40)
        self.decoder.weight = self.embedding.weight

    def forward(self, tokens: Tensor, h: Tensor, c: Tensor, h_last: Tensor, c_last: Tensor):
        x, hs, cs = self.embedding(tokens), [], []
        for index, layer in enumerate(self.layers[:2]):
            x, (h_next, c_next) = layer(x, (h[index : index + 1], c[index : index + 1]))
            hs.append(h_next)
            cs.append(c_next)
        x, (h_last, c_last) = self.layers[2](x, (h_last, c_last))
        return torch.log_softmax(self.decoder(x), -1), torch.cat(hs), torch.cat(cs), h_last, c_last


class Autoencoder(nn.Module):
    """The last state, repeated for as many steps as came in."""

    def __init__(self):
        super().__init__()
        self.encoder, self.decoder = nn.LSTM(8, 6, batch_first=True), nn.LSTM(6, 8, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        h = self.encoder(x)[1][0]
        return self.decoder(h[-1].unsqueeze(1).expand(-1, x.size(1), -1))[0]


class ResidualStack(nn.Module):
    """Residual GRUs with layer norms between, the head of many acoustic models."""

    def __init__(self):
        super().__init__()
        self.grus = nn.ModuleList([nn.GRU(12, 12, batch_first=True) for _ in range(3)])
        self.norms = nn.ModuleList([nn.LayerNorm(12) for _ in range(3)])
        self.enter = nn.Linear(8, 12)

    def forward(self, x: Tensor) -> Tensor:
        x = nn.functional.gelu(self.enter(x))
        for gru, norm in zip(self.grus, self.norms, strict=True):
            x = norm(x + gru(x)[0])
        return x


class SelfAttentive(nn.Module):
    """A bidirectional LSTM whose steps are weighed by attention, padding masked out."""

    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(8, 12, batch_first=True, bidirectional=True)
        self.score, self.out = nn.Linear(24, 1), nn.Linear(24, 3)

    def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
        y, _ = self.lstm(x)
        beyond = torch.arange(x.size(1)).unsqueeze(0) >= lengths.unsqueeze(1)
        weights = self.score(torch.tanh(y)).squeeze(-1).masked_fill(beyond, float("-inf")).softmax(-1)
        return self.out(torch.bmm(weights.unsqueeze(1), y).squeeze(1))


class Unrolled(nn.Module):
    """torch.nn's cells in a Python loop over a known number of steps: exporters unroll it."""

    def __init__(self, cell: nn.Module, pair: bool):
        super().__init__()
        self.cell, self.pair = cell, pair

    def forward(self, x: Tensor) -> Tensor:
        h = x.new_zeros(x.size(1), 12)
        state = (h, h) if self.pair else h
        ys = []
        for frame in x:
            state = self.cell(frame, state)
            ys.append(state[0] if self.pair else state)
        return torch.stack(ys)


TOKENS = integers(40, "batch", "steps")
family.add("classifier", Classifier, {"tokens": TOKENS}, versions=QUANTIZED)
family.add(
    "language_model",
    LanguageModel,
    {
        "tokens": integers(40, "steps", "batch"),
        "h": floats(2, "batch", 12),
        "c": floats(2, "batch", 12),
        "h_last": floats(1, "batch", 8),
        "c_last": floats(1, "batch", 8),
    },
    "logits h_out c_out h_last_out c_last_out",
    {"h": "h_out", "c": "c_out", "h_last": "h_last_out", "c_last": "c_last_out"},
    versions=("int8",),
)
family.add("autoencoder", Autoencoder, {"x": X_BATCH_FIRST}, versions=("qdq",))
family.add("residual_stack", ResidualStack, {"x": X_BATCH_FIRST}, versions=QUANTIZED)
family.add("self_attentive", SelfAttentive, PACKED)
for name, cell, pair in (("rnn", nn.RNNCell, False), ("gru", nn.GRUCell, False), ("lstm", nn.LSTMCell, True)):
    family.add(
        f"{name}_cell_unrolled", lambda cell=cell, pair=pair: Unrolled(cell(8, 12), pair), {"x": floats(4, "batch", 8)}
    )

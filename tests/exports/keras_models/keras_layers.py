"""keras.layers' recurrent layers with their options: each a small functional model."""

from __future__ import annotations

import keras
from keras import layers, ops

from ..table import Family, floats

family = Family("keras_layers", ("tf2onnx",))
FEATURES, UNITS = 8, 12
X = {"x": floats("batch", "steps", FEATURES)}


def model_of(layer: layers.Layer, steps: int | None = None) -> keras.Model:
    x = keras.Input((steps, FEATURES), name="x")
    return keras.Model(x, layer(x))


for kind, layer in {"simple_rnn": layers.SimpleRNN, "gru": layers.GRU, "lstm": layers.LSTM}.items():
    for name, options in {
        "last": {},
        "sequence": {"return_sequences": True},
        "with_states": {"return_sequences": True, "return_state": True},
        "backwards": {"return_sequences": True, "go_backwards": True},
        "no_bias_relu": {"use_bias": False, "activation": "relu", "return_sequences": True},
    }.items():
        states = (3 if kind == "lstm" else 2) if name == "with_states" else 1
        family.add(
            f"keras_{kind}_{name}",
            lambda layer=layer, options=options: model_of(layer(UNITS, **options)),
            X,
            " ".join(["y", "h", "c"][:states]),
            versions=("int8", "float16") if name == "sequence" else (),
        )
    family.add(
        f"keras_{kind}_unrolled",
        lambda layer=layer: model_of(layer(UNITS, unroll=True), steps=4),
        {"x": floats("batch", 4, FEATURES)},
    )
    family.add(
        f"keras_{kind}_bidirectional",
        lambda layer=layer: model_of(layers.Bidirectional(layer(UNITS, return_sequences=True), merge_mode="concat")),
        X,
    )
    family.add(
        f"keras_{kind}_bidirectional_sum_last",
        lambda layer=layer: model_of(layers.Bidirectional(layer(UNITS), merge_mode="sum")),
        X,
    )

family.add("keras_gru_reset_before", lambda: model_of(layers.GRU(UNITS, reset_after=False, return_sequences=True)), X)
family.add(
    "keras_lstm_hard_sigmoid",
    lambda: model_of(layers.LSTM(UNITS, recurrent_activation="hard_sigmoid", return_sequences=True)),
    X,
)
family.add(
    "keras_gru_elu_softsign",
    lambda: model_of(layers.GRU(UNITS, activation="softsign", recurrent_activation="sigmoid")),
    X,
)
family.add(
    "keras_stacked_cells",
    lambda: model_of(layers.RNN([layers.LSTMCell(UNITS), layers.GRUCell(6)], return_sequences=True)),
    X,
)


def with_state_inputs(kind: str) -> keras.Model:
    x = keras.Input((None, FEATURES), name="x")
    states = [keras.Input((UNITS,), name=name) for name in (("h_in", "c_in") if kind == "lstm" else ("h_in",))]
    layer = (layers.LSTM if kind == "lstm" else layers.GRU)(UNITS, return_sequences=True, return_state=True)
    y, *after = layer(x, initial_state=states if kind == "lstm" else states[0])
    return keras.Model([x, *states], [layers.Dense(4)(y), *after])


STATE = floats("batch", UNITS)
family.add(
    "keras_gru_state_inputs", lambda: with_state_inputs("gru"), {**X, "h_in": STATE}, "y h_out", {"h_in": "h_out"}
)
family.add(
    "keras_lstm_state_inputs",
    lambda: with_state_inputs("lstm"),
    {**X, "h_in": STATE, "c_in": STATE},
    "y h_out c_out",
    {"h_in": "h_out", "c_in": "c_out"},
    versions=("int8", "float16"),
)


@keras.saving.register_keras_serializable()
class MinimalCell(layers.Layer):
    """A cell of one's own."""

    def __init__(self, units: int, **options):
        super().__init__(**options)
        self.units = self.state_size = units

    def build(self, shape):
        self.kernel = self.add_weight(shape=(shape[-1], 2 * self.units), name="kernel")
        self.recurrent = self.add_weight(shape=(self.units, 2 * self.units), name="recurrent")
        self.bias = self.add_weight(shape=(2 * self.units,), name="bias")

    def call(self, x, states):
        h = states[0]
        f, g = ops.split(ops.matmul(x, self.kernel) + ops.matmul(h, self.recurrent) + self.bias, 2, -1)
        f = ops.sigmoid(f)
        h = f * h + (1 - f) * ops.tanh(g)
        return h, [h]


family.add("keras_own_cell", lambda: model_of(layers.RNN(MinimalCell(UNITS), return_sequences=True)), X)
family.add("keras_own_cell_last", lambda: model_of(layers.RNN(MinimalCell(UNITS))), X)
family.add("keras_own_cell_backwards", lambda: model_of(layers.RNN(MinimalCell(UNITS), go_backwards=True)), X)

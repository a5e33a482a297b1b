"""Networks as Keras users build them: masks, embeddings, convolutions, attention, encoder and decoder, ConvLSTM."""

from __future__ import annotations

import keras
from keras import layers, ops

from ..table import Family, floats, integers

family = Family("keras_networks", ("tf2onnx",))
WORDS, FEATURES, UNITS = 30, 8, 12
TOKENS, X = integers(WORDS, "batch", "steps"), floats("batch", "steps", FEATURES)


def sequential(shape: tuple[int | None, ...], *parts: layers.Layer, dtype: str = "float32") -> keras.Model:
    x = y = keras.Input(shape, dtype=dtype, name="x")
    for part in parts:
        y = part(y)
    return keras.Model(x, y)


def classifier(mask: bool) -> keras.Model:
    return sequential(
        (None,),
        layers.Embedding(WORDS, FEATURES, mask_zero=mask),
        layers.Bidirectional(layers.LSTM(UNITS, dropout=0.2)),
        layers.Dense(4, activation="softmax"),
        dtype="int32",
    )


def tagger() -> keras.Model:
    return sequential(
        (None,),
        layers.Embedding(WORDS, FEATURES, mask_zero=True),
        layers.GRU(UNITS, return_sequences=True),
        layers.TimeDistributed(layers.Dense(5, activation="softmax")),
        dtype="int32",
    )


def masked() -> keras.Model:
    return sequential((None, FEATURES), layers.Masking(0.0), layers.LSTM(UNITS, return_sequences=True), layers.LSTM(6))


def convolutional() -> keras.Model:
    return sequential(
        (None, FEATURES),
        layers.Conv1D(10, 3, padding="causal", activation="relu"),
        layers.BatchNormalization(),
        layers.MaxPooling1D(2, padding="same"),
        layers.GRU(UNITS, return_sequences=True),
        layers.GlobalAveragePooling1D(),
        layers.Dense(2),
    )


def autoencoder() -> keras.Model:
    return sequential(
        (5, FEATURES),
        layers.LSTM(UNITS),
        layers.RepeatVector(5),
        layers.LSTM(UNITS, return_sequences=True),
        layers.TimeDistributed(layers.Dense(FEATURES)),
    )


def residual() -> keras.Model:
    x = keras.Input((None, UNITS), name="x")
    y = x
    for _ in range(2):
        y = layers.LayerNormalization()(layers.add([y, layers.GRU(UNITS, return_sequences=True)(y)]))
    return keras.Model(x, layers.Dense(3)(y))


def attention() -> keras.Model:
    source, target = (
        keras.Input((None,), dtype="int32", name="source"),
        keras.Input((None,), dtype="int32", name="target"),
    )
    memory, h, c = layers.LSTM(UNITS, return_sequences=True, return_state=True)(
        layers.Embedding(WORDS, FEATURES)(source)
    )
    y = layers.LSTM(UNITS, return_sequences=True)(layers.Embedding(WORDS, FEATURES)(target), initial_state=[h, c])
    context = layers.AdditiveAttention()([y, memory])
    return keras.Model([source, target], layers.Dense(WORDS)(layers.Concatenate()([y, context])))


def crnn() -> keras.Model:
    image = keras.Input((8, 40, 1), name="image")
    y = layers.MaxPooling2D(2)(layers.Conv2D(6, 3, padding="same", activation="relu")(image))
    y = layers.Conv2D(8, 3, padding="same", activation="relu")(y)
    y = layers.Reshape((20, 32))(layers.Permute((2, 1, 3))(y))
    y = layers.Bidirectional(layers.LSTM(UNITS, return_sequences=True))(layers.Dense(10)(y))
    return keras.Model(image, layers.Dense(11, activation="softmax")(y))


def denoiser() -> keras.Model:
    x = keras.Input((None, 17), name="x")
    y = layers.LSTM(UNITS, return_sequences=True)(ops.log(x + 1e-7))
    y = layers.LSTM(UNITS, return_sequences=True)(layers.Dropout(0.25)(y))
    return keras.Model(x, layers.Multiply()([layers.Dense(17, activation="sigmoid")(y), x]))


def self_attentive() -> keras.Model:
    x = keras.Input((None, FEATURES), name="x")
    y = layers.Bidirectional(layers.GRU(UNITS, return_sequences=True))(x)
    y = layers.MultiHeadAttention(2, 6)(y, y)
    return keras.Model(x, layers.Dense(3)(layers.GlobalMaxPooling1D()(y)))


def decoder_step() -> keras.Model:
    token = keras.Input((1,), dtype="int32", name="token")
    h, c = keras.Input((UNITS,), name="h_in"), keras.Input((UNITS,), name="c_in")
    layer = layers.LSTM(UNITS, return_sequences=True, return_state=True)
    y, h_next, c_next = layer(layers.Embedding(WORDS, FEATURES)(token), initial_state=[h, c])
    return keras.Model([token, h, c], [layers.Dense(WORDS)(y), h_next, c_next])


VERSIONS = ("int8", "qdq", "qoperator", "float16")
family.add("keras_classifier", lambda: classifier(mask=False), {"x": TOKENS}, versions=VERSIONS)
family.add("keras_classifier_masked", lambda: classifier(mask=True), {"x": TOKENS})
family.add("keras_tagger_masked", tagger, {"x": TOKENS})
family.add("keras_masking", masked, {"x": X})
family.add("keras_convolutional", convolutional, {"x": X}, versions=VERSIONS)
family.add("keras_autoencoder", autoencoder, {"x": floats("batch", 5, FEATURES)}, versions=("int8",))
family.add("keras_residual", residual, {"x": floats("batch", "steps", UNITS)}, versions=VERSIONS)
family.add(
    "keras_seq2seq_attention",
    attention,
    {"source": integers(WORDS, "batch", "tokens"), "target": TOKENS},
    versions=("int8",),
)
family.add("keras_crnn_ocr", crnn, {"image": floats("batch", 8, 40, 1)}, versions=VERSIONS)
family.add("keras_denoiser", denoiser, {"x": floats("batch", "steps", 17)}, versions=("float16",))
family.add("keras_self_attentive", self_attentive, {"x": X})
family.add(
    "keras_decoder_step",
    decoder_step,
    {"token": integers(WORDS, "batch", 1), "h_in": floats("batch", UNITS), "c_in": floats("batch", UNITS)},
    "y h_out c_out",
    {"h_in": "h_out", "c_in": "c_out"},
)
family.add(
    "keras_conv_lstm_2d",
    lambda: sequential(
        (None, 6, 6, 2),
        layers.ConvLSTM2D(4, 3, padding="same", return_sequences=True),
        layers.Conv3D(1, 3, padding="same"),
    ),
    {"x": floats("batch", "steps", 6, 6, 2)},
)
family.add(
    "keras_conv_lstm_1d",
    lambda: sequential((None, 10, 3), layers.ConvLSTM1D(4, 3, padding="same")),
    {"x": floats("batch", "steps", 10, 3)},
)

"""Layers and how they are called: what the frameworks write down (in_torch.py, in_keras.py) and tests compare with.

A case is data, so that it can be written down with its weights and results, and random ones are of the same form.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

RECORDED = Path(__file__).parent / "recorded"


@dataclass
class Case:
    name: str
    layer: str
    """The class in the framework."""
    make: dict[str, Any]
    """Its arguments."""
    shapes: list[list[int]]
    """Of the inputs: x, and the first states of a recurrent layer."""
    method: str
    """Of the net."""
    call: dict[str, Any] = field(default_factory=dict)
    """Its arguments, where they are not in the weights."""
    ids: int = 0
    """If the input is of integers, how many."""
    norm: str = ""
    """How the weights are normalized."""
    wrap: dict[str, Any] | None = None
    """The arguments of a Bidirectional around it."""

    @staticmethod
    def read(text: str) -> list[Case]:
        return [Case(**item) for item in json.loads(text)]


def written(cases: list[Case]) -> str:
    return json.dumps([asdict(case) for case in cases])


def torch_cases() -> Iterator[Case]:
    """A grid of small layers of PyTorch's."""
    for kind in ("RNN", "GRU", "LSTM"):
        for layers, double, bias, first in ((1, False, True, False), (2, True, True, True), (2, False, False, False)):
            make = dict(
                input_size=3, hidden_size=4, num_layers=layers, bidirectional=double, bias=bias, batch_first=first
            )
            call: dict[str, Any] = {"batch_first": True} if first else {}
            if kind == "RNN" and double:
                make["nonlinearity"] = call["nonlinearity"] = "relu"
            yield Case(f"{kind}_{layers}_{double}", kind, make, [[2, 5, 3]], kind.lower(), call)
            state = [layers * (1 + double), 5 if not first else 2, 4]
            states = [state] * (2 if kind == "LSTM" else 1)
            yield Case(f"{kind}_{layers}_{double}_hx", kind, make, [[2, 5, 3], *states], kind.lower(), call)
        yield Case(f"{kind}_single", kind, dict(input_size=3, hidden_size=4), [[6, 3]], kind.lower())
        states = [[2, 4]] * (2 if kind == "LSTM" else 1)
        cell = f"{kind}Cell", dict(input_size=3, hidden_size=4)
        yield Case(f"{kind}_cell", *cell, [[2, 3], *states], f"{kind.lower()}_cell")
        yield Case(f"{kind}_cell_zeros", *cell, [[3]], f"{kind.lower()}_cell")
    for layers, double in ((1, False), (2, True)):
        make = dict(input_size=3, hidden_size=5, num_layers=layers, bidirectional=double, proj_size=2)
        count = layers * (1 + double)
        yield Case(f"LSTM_proj_{layers}", "LSTM", make, [[4, 2, 3]], "lstm")
        yield Case(f"LSTM_proj_{layers}_hx", "LSTM", make, [[4, 2, 3], [count, 2, 2], [count, 2, 5]], "lstm")
    for bias in (True, False):
        yield Case(f"Linear_{bias}", "Linear", dict(in_features=3, out_features=4, bias=bias), [[2, 5, 3]], "linear")
    yield Case("Embedding", "Embedding", dict(num_embeddings=7, embedding_dim=3), [[2, 5]], "embedding", ids=7)
    options: list[dict[str, Any]] = [
        {}, dict(stride=2, padding=1), dict(padding="same"), dict(padding="same", dilation=3, groups=2),
        dict(padding=2, padding_mode="reflect"), dict(padding=2, padding_mode="circular"),
        dict(padding="same", padding_mode="replicate"), dict(stride=3, dilation=2, padding=4),
    ]  # fmt: skip
    for index, call in enumerate(options):
        make = dict(in_channels=4, out_channels=6, kernel_size=4 - index % 2, bias=index % 3 != 1, **call)
        yield Case(f"Conv1d_{index}", "Conv1d", make, [[2, 4, 13]], "conv1d", call)
    for index, call in enumerate(({}, dict(stride=3, padding=1, output_padding=2), dict(groups=2, dilation=2))):
        make = dict(in_channels=4, out_channels=6, kernel_size=3, **call)
        yield Case(f"ConvTranspose1d_{index}", "ConvTranspose1d", make, [[2, 4, 9]], "conv_transpose1d", call)
    two = dict(stride=[1, 2], padding=[1, 0])
    yield Case(
        "Conv2d",
        "Conv2d",
        dict(in_channels=2, out_channels=3, kernel_size=[3, 2], **two),
        [[1, 2, 5, 6]],
        "conv2d",
        two,
    )
    up = dict(stride=[2, 1])
    make = dict(in_channels=2, out_channels=3, kernel_size=[3, 2], **up)
    yield Case("ConvTranspose2d", "ConvTranspose2d", make, [[1, 2, 4, 3]], "conv_transpose2d", up)
    yield Case("BatchNorm1d", "BatchNorm1d", dict(num_features=4), [[2, 4, 5]], "batch_norm")
    plain = dict(num_features=4, affine=False, eps=0.1)
    yield Case("BatchNorm1d_plain", "BatchNorm1d", plain, [[3, 4]], "batch_norm", dict(eps=0.1))
    yield Case("BatchNorm2d", "BatchNorm2d", dict(num_features=2), [[1, 2, 3, 4]], "batch_norm")
    for index, shape in enumerate(([5], [3, 5])):
        make = dict(normalized_shape=shape, bias=not index, eps=1e-3)
        yield Case(f"LayerNorm_{index}", "LayerNorm", make, [[2, 3, 5]], "layer_norm", dict(eps=1e-3))
    yield Case("RMSNorm", "RMSNorm", dict(normalized_shape=[5]), [[2, 3, 5]], "rms_norm")
    yield Case("GroupNorm", "GroupNorm", dict(num_groups=2, num_channels=4), [[2, 4, 5]], "group_norm", dict(groups=2))
    yield Case("InstanceNorm1d", "InstanceNorm1d", dict(num_features=4, affine=True), [[2, 4, 5]], "instance_norm")
    for count in (1, 4):
        yield Case(f"PReLU_{count}", "PReLU", dict(num_parameters=count), [[2, 4, 5]], "prelu")
    conv = "Conv1d", dict(in_channels=4, out_channels=6, kernel_size=3), [[2, 4, 9]], "conv1d"
    for norm in ("weight_norm", "parametrized"):
        yield Case(f"Conv1d_{norm}", *conv, norm=norm)
    up_conv = "ConvTranspose1d", dict(in_channels=4, out_channels=6, kernel_size=3), [[2, 4, 9]], "conv_transpose1d"
    yield Case("ConvTranspose1d_parametrized", *up_conv, norm="parametrized")
    linear = "Linear", dict(in_features=3, out_features=4), [[2, 3]], "linear"
    yield Case("Linear_one_norm", *linear, norm="parametrized, one")


def random_torch_cases(count: int, seed: int) -> Iterator[Case]:
    """Recurrent layers and convolutions of random sizes and options."""
    draw = random.Random(seed)
    for index in range(count):
        if index % 3:
            kind = draw.choice(["RNN", "GRU", "LSTM"])
            make: dict[str, Any] = dict(
                input_size=draw.randint(1, 40),
                hidden_size=draw.randint(1, 50),
                num_layers=draw.randint(1, 3),
                bidirectional=draw.random() < 0.4,
                bias=draw.random() < 0.7,
                batch_first=draw.random() < 0.5,
            )
            call: dict[str, Any] = dict(batch_first=make["batch_first"])
            if kind == "RNN":
                make["nonlinearity"] = call["nonlinearity"] = draw.choice(["tanh", "relu"])
            if kind == "LSTM" and make["hidden_size"] > 1 and draw.random() < 0.4:
                make["proj_size"] = draw.randint(1, make["hidden_size"] - 1)
            x = [draw.randint(1, 20), draw.randint(1, 5), make["input_size"]]
            shapes = [x]
            if draw.random() < 0.5:
                batch = x[0] if make["batch_first"] else x[1]
                rows = make["num_layers"] * (1 + make["bidirectional"])
                shapes.append([rows, batch, make.get("proj_size", make["hidden_size"])])
                shapes += [[rows, batch, make["hidden_size"]]] * (kind == "LSTM")
            yield Case(f"{index}_{kind}", kind, make, shapes, kind.lower(), call)
        else:
            groups, kernel, dilation = draw.choice([1, 1, 2, 3]), draw.randint(1, 7), draw.randint(1, 4)
            padding: int | str = draw.choice(["same", "valid", draw.randint(0, 5)])
            stride = 1 if padding == "same" else draw.randint(1, 4)
            call = dict(stride=stride, padding=padding, dilation=dilation, groups=groups)
            call["padding_mode"] = draw.choice(["zeros", "zeros", "replicate", "reflect", "circular"])
            make = dict(in_channels=groups * draw.randint(1, 9), out_channels=groups * draw.randint(1, 9))
            shape = [draw.randint(1, 3), make["in_channels"], draw.randint(30, 60)]
            yield Case(f"{index}_Conv1d", "Conv1d", {**make, **call, "kernel_size": kernel}, [shape], "conv1d", call)


def keras_cases() -> Iterator[Case]:
    """A grid of small layers of Keras's."""
    x = [[2, 5, 3]]
    for kind, method in (("SimpleRNN", "simple_rnn"), ("GRU", "gru"), ("LSTM", "lstm")):
        states = [[2, 4]] * (2 if kind == "LSTM" else 1)
        for index, options in enumerate(
            (
                {},
                dict(return_sequences=True, activation="relu" if kind == "SimpleRNN" else "softsign"),
                dict(return_sequences=True, go_backwards=True, return_state=True),
                dict(go_backwards=True, use_bias=False),
            )
        ):
            call = {key: value for key, value in options.items() if key != "use_bias"}
            yield Case(f"{method}_{index}", kind, dict(units=4, **options), x, method, call)
        yield Case(
            f"{method}_states", kind, dict(units=4, return_state=True), [*x, *states], method, dict(return_state=True)
        )
        if kind != "SimpleRNN":
            hard = dict(recurrent_activation="hard_sigmoid", return_sequences=True)
            yield Case(f"{method}_hard", kind, dict(units=4, **hard), x, method, hard)
    for index, options in enumerate(
        (dict(reset_after=False), dict(reset_after=False, return_sequences=True, use_bias=False))
    ):
        call = {key: value for key, value in options.items() if key != "use_bias"}
        yield Case(f"gru_reset_{index}", "GRU", dict(units=4, **options), x, "gru", call)
    inner = (
        ("GRU", dict(units=4, return_sequences=True)),
        ("LSTM", dict(units=4)),
        ("SimpleRNN", dict(units=4, return_sequences=True)),
    )
    for index, merge in enumerate(("concat", "sum", "ave", "mul")):
        kind, make = inner[index % 3]
        call = dict(merge_mode=merge, return_sequences=make.get("return_sequences", False))
        yield Case(f"both_{merge}", kind, make, x, "bidirectional", call, wrap=dict(merge_mode=merge))
    make = dict(units=4, reset_after=False, return_sequences=True)
    call = dict(merge_mode=None, return_sequences=True)
    yield Case("both_None", "GRU", make, x, "bidirectional", call, wrap=dict(merge_mode=None))
    for index, activation in enumerate((None, "relu", "hard_sigmoid", "gelu", "softmax", "leaky_relu", "silu", "elu")):
        call = dict(activation=activation)
        yield Case(f"dense_{index}", "Dense", dict(units=4, use_bias=index != 1, **call), x, "dense", call)
    options: list[dict[str, Any]] = [
        {}, dict(padding="causal", dilation_rate=2, activation="tanh"), dict(padding="same"),
        dict(padding="same", strides=2), dict(padding="causal", strides=2), dict(padding="same", dilation_rate=3),
    ]  # fmt: skip
    long = [[2, 11, 4]]
    for index, call in enumerate(options):
        yield Case(
            f"conv1d_{index}", "Conv1D", dict(filters=6, kernel_size=4 - index % 2, **call), long, "conv1d", call
        )
    grouped = dict(groups=2)
    yield Case(
        "conv1d_groups", "Conv1D", dict(filters=6, kernel_size=3, use_bias=False, **grouped), long, "conv1d", grouped
    )
    for index, call in enumerate(({}, dict(padding="same", strides=2), dict(padding="same", activation="relu"))):
        make = dict(kernel_size=3, depth_multiplier=1 + index, **call)
        yield Case(f"depthwise_{index}", "DepthwiseConv1D", make, long, "depthwise_conv1d", call)
        make = dict(filters=5, **make)
        yield Case(f"separable_{index}", "SeparableConv1D", make, long, "separable_conv1d", call)
    for index, (kernel, call) in enumerate(
        ((3, {}), (4, dict(strides=2, padding="same")), (2, dict(strides=3, padding="same")), (2, dict(strides=3)))
    ):
        make = dict(filters=5, kernel_size=kernel, **call)
        yield Case(f"transpose_{index}", "Conv1DTranspose", make, long, "conv1d_transpose", call)
    yield Case("batch_norm", "BatchNormalization", {}, x, "batch_normalization")
    call = dict(scale=False, epsilon=0.1)
    yield Case("batch_norm_plain", "BatchNormalization", call, [[4, 3]], "batch_normalization", call)
    yield Case("layer_norm", "LayerNormalization", {}, x, "layer_normalization")
    call = dict(center=False, epsilon=0.1)
    yield Case("layer_norm_plain", "LayerNormalization", call, x, "layer_normalization", call)
    yield Case("embedding", "Embedding", dict(input_dim=7, output_dim=3), [[2, 5]], "embedding", ids=7)
    yield Case("prelu", "PReLU", dict(shared_axes=[1]), x, "prelu")

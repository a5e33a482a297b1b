"""Writes .nam files with random weights, and what the trainer's package gives for a signal: `make nam`.

    python nam_files.py FOLDER [--small]

It runs in an environment of its own, with torch and neural-amp-modeler. For each model there are NAME.nam and NAME.npz
with the signal x and the result y. --small writes those that tests/formats keeps.
"""

import argparse
import json
from pathlib import Path

import numpy as np
import torch
from nam.models.factory import init

LONG = [2**i for i in range(10)]
SHORT = [2**i for i in range(7)]
REST = [128, 256, 512, *LONG]


def layers(inputs, channels, head, dilations, **others):
    """The settings of one array of layers."""
    head = {"out_channels": head, "kernel_size": 1, "bias": True} if isinstance(head, int) else head
    plain = {"kernel_size": 3, "activation": "Tanh", "condition_size": 1}
    return {**plain, "input_size": inputs, "channels": channels, "head": head, "dilations": dilations, **others}


def wavenet(*arrays, **others):
    return "WaveNet", {"layers_configs": [*arrays], "head_scale": 0.5, **others}


def classic(channels, first, second):
    """As trainers made them up to version 0.12: two arrays, the second with half of the channels."""
    head = {"out_channels": channels // 2, "kernel_size": 1, "bias": False}
    return wavenet(layers(1, channels, head, first), layers(channels, channels // 2, 1, second), head_scale=0.02)


def pair(name, primary="Tanh", secondary="Sigmoid"):
    return {"name": name, "primary": primary, "secondary": secondary}


def a2(channels):
    """As the trainer of version 0.13 makes them."""
    kernels = [*[6] * 14, 15, 15, *[6] * 7]
    dilations = [*[1, 3, 7, 17, 41, 101, 239] * 2, 1, 13, 1, 3, 7, 17, 41, 101, 239]
    head = {"out_channels": 1, "kernel_size": 16, "bias": True}
    return wavenet(layers(1, channels, head, dilations, kernel_size=kernels, activation="LeakyReLU"), head_scale=0.01)


PLACES = (
    "conv_pre", "conv_post", "input_mixin_pre", "input_mixin_post", "activation_pre", "activation_post",
    "layer1x1_post", "head1x1_post",
)  # fmt: skip
ALL_FILMS = {
    f"{place}_film": {"active": True, "shift": index % 2 == 0, "groups": 1} for index, place in enumerate(PLACES)
}
ACTIVATIONS = [
    "ReLU", "LeakyReLU", "Sigmoid", "SiLU", "Hardswish", "Hardtanh", "LeakyHardtanh", "Softsign",
    {"name": "PReLU", "num_parameters": 3}, {"name": "PReLU", "init": 0.1}, "GELU", "Softsigmoid",
]  # fmt: skip

FEW = [1, 2, 5]
SMALL = {
    "lstm": ("LSTM", {"hidden_size": 6}),
    "lstm_two_layers": ("LSTM", {"hidden_size": 4, "num_layers": 2}),
    "linear": ("Linear", {"receptive_field": 24, "bias": True}),
    "linear_no_bias": ("Linear", {"receptive_field": 5}),
    "convnet": ("ConvNet", {"channels": 4, "dilations": FEW}),
    "convnet_batchnorm": ("ConvNet", {"channels": 4, "dilations": FEW, "batchnorm": True, "activation": "ReLU"}),
    "wavenet": wavenet(layers(1, 4, 2, FEW), layers(4, 2, 1, FEW)),
    "wavenet_gated": wavenet(layers(1, 4, 1, FEW, activation=pair("PairMultiply"))),
    "wavenet_blended": wavenet(layers(1, 4, 1, FEW, activation=pair("PairBlend", "ReLU", "Sigmoid"))),
    "wavenet_bottleneck": wavenet(
        layers(1, 6, 2, FEW, bottleneck=4, head_1x1_config={"active": True, "out_channels": 2, "groups": 2}),
        layers(6, 4, 1, FEW, bottleneck=2),
    ),
    "wavenet_no_layer1x1": wavenet(layers(1, 4, 1, FEW, layer_1x1_config={"active": False})),
    "wavenet_groups": wavenet(
        layers(1, 4, 1, FEW, groups_input=2, layer_1x1_config={"active": True, "groups": 4}, kernel_size=[2, 3, 4])
    ),
    "wavenet_film": wavenet(
        layers(1, 4, 1, FEW, film_params=ALL_FILMS, head_1x1_config={"active": True, "out_channels": 3})
    ),
    "wavenet_head": wavenet(
        layers(1, 4, {"out_channels": 3, "kernel_size": 4, "bias": True}, FEW),
        head={"channels": 5, "activation": "Tanh", "out_channels": 1, "kernel_sizes": [3, 1, 2]},
    ),
    "wavenet_condition": wavenet(
        layers(1, 4, 1, FEW, condition_size=2, groups_input_mixin=2, film_params={"conv_pre_film": {"active": True}}),
        condition_dsp={"name": "WaveNet", "config": {"layers_configs": [layers(1, 3, 2, FEW)], "head_scale": 0.5}},
    ),
    "wavenet_activations": wavenet(layers(1, 3, 1, [1] * 12, activation=ACTIVATIONS)),
    "wavenet_slimmable": wavenet(
        layers(1, 4, 1, FEW, slimmable={"method": "slice_channels_uniform", "kwargs": {"allowed_channels": [2, 3]}})
    ),
    "sequential": (
        "Sequential",
        {"models": [{"name": "Linear", "config": {"receptive_field": 7}}, {"name": "ConvNet", "config": {}}]},
    ),
    "container": (
        "PackedWaveNet",
        {"submodels": [{"name": f"of_{n}", "config": wavenet(layers(1, n, 1, FEW))[1]} for n in (2, 4)]},
    ),
}
LARGE = {
    "standard": classic(16, LONG, LONG),
    "lite": classic(12, SHORT, REST),
    "feather": classic(8, SHORT, REST),
    "nano": classic(4, SHORT, REST),
    "a2_channels_3": a2(3),
    "a2_channels_8": a2(8),
    "a2_container": (
        "PackedWaveNet",
        {"submodels": [{"name": f"channels_{n}", "config": a2(n)[1]} for n in (3, 8)]},
    ),
    "lstm_16": ("LSTM", {"hidden_size": 16}),
    "lstm_3x24": ("LSTM", {"hidden_size": 24, "num_layers": 3}),
    "convnet_standard": (
        "ConvNet",
        {"channels": 16, "dilations": LONG, "batchnorm": True, "activation": "Tanh"},
    ),
    "linear_8192": ("Linear", {"receptive_field": 8192}),
}


def plucked(count, seed):
    """A signal with a level that changes: noise that dies away, several times, up to full scale."""
    rng = np.random.default_rng(seed)
    fade = np.exp(-(np.arange(count) % (count // 4)) / (count / 12))
    return (rng.uniform(-1, 1, count) * fade).astype(np.float32)


def randomized(model, generator):
    """Statistics of norms and states to start from are random, too, as those of a trained model are."""
    for name, array in [*model.named_parameters(), *model.named_buffers()]:
        if "running_var" in name:
            array.data = torch.rand(array.shape, generator=generator) + 0.5
        elif "running_mean" in name or "initial" in name:
            array.data = torch.randn(array.shape, generator=generator) / 4
        elif name.endswith("weight") and array.ndim == 1:
            array.data = torch.rand(array.shape, generator=generator) + 0.25
        elif name.endswith("bias"):
            array.data += torch.randn(array.shape, generator=generator) / 4


def exported(model):
    """As the package writes a file, without what it says of loudness."""
    if type(model).__name__ == "PackedWaveNet":
        parts = [model.extract_submodel(i) for i in range(model.num_submodels)]
        values = model._container_max_values()
        config = {"submodels": [{"max_value": v, "model": exported(m)} for v, m in zip(values, parts, strict=True)]}
        return {"version": "0.7.0", "architecture": "SlimmableContainer", "config": config, "weights": []}
    return {
        "version": "0.7.0",
        "metadata": {"name": "random weights", "input_level_dbu": 12.5},
        "architecture": type(model).__name__,
        "config": model._export_config(),
        "weights": [float(np.format_float_positional(w, unique=True)) for w in model._export_weights()],
        "sample_rate": 48000,
    }


def result(model, data, x):
    """What the package gives. An LSTM is run from the states that are in the file."""
    with torch.no_grad():
        if type(model).__name__ == "LSTM":
            model.import_weights(np.array(data["weights"], np.float32))
        y = model(torch.from_numpy(x), pad_start=True).numpy()
    return y.reshape(-1, len(x))[-1]  # of several sizes the largest


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--small", action="store_true")
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    chosen = SMALL if arguments.small else {**SMALL, **LARGE}
    for seed, (name, (kind, config)) in enumerate(chosen.items()):
        torch.manual_seed(seed)
        model = init(kind, kwargs={"config": json.loads(json.dumps(config))})
        randomized(model, torch.Generator().manual_seed(seed))
        model.eval()
        data = exported(model)
        count = 300 if name in SMALL else 48000
        x = plucked(count, seed)
        y = result(model, data, x)
        text = json.dumps(data, separators=(",", ":"))
        (arguments.folder / f"{name}.nam").write_text(text)
        np.savez_compressed(arguments.folder / f"{name}.npz", x=x, y=y)
        print(f"{name}: {len(text)} bytes, largest result {abs(y).max():.3g}")


if __name__ == "__main__":
    main()

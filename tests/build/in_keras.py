"""Run with Keras: writes down a model of many layers, each with inputs and outputs of its own, in all forms of files.

python -m tests.build.in_keras [--output tests/build/recorded]
"""

from __future__ import annotations

import argparse
import os
import tempfile
import zipfile
from pathlib import Path
from typing import Any

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import keras
import numpy as np

from .cases import RECORDED, Case, keras_cases, written


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--output", type=Path, default=RECORDED)
    arguments = parser.parse_args()
    arguments.output.mkdir(parents=True, exist_ok=True)
    cases, numbers = [*keras_cases()], np.random.default_rng(0)
    inputs, outputs = [], []
    for case in cases:
        xs = [keras.Input(batch_shape=shape, dtype="int32" if case.ids else "float32") for shape in case.shapes]
        inputs.append(xs)
        outputs.append(flat(made(case)(xs[0], **({"initial_state": xs[1:]} if len(xs) > 1 else {}))))
    model = keras.Model(inputs, outputs)
    for weight in model.weights:
        low = 0.5 if "variance" in weight.path else -0.7
        weight.assign(numbers.uniform(low, low + 1.4, weight.shape))
    arrays: dict[str, np.ndarray] = {"cases": np.frombuffer(written(cases).encode(), np.uint8)}
    for case, xs, ys in zip(cases, inputs, outputs, strict=True):
        fed = [
            numbers.integers(0, case.ids, shape).astype("int32") if case.ids else numbers.normal(size=shape).astype("f")
            for shape in case.shapes
        ]
        results = keras.Model(xs, ys)(fed)
        arrays.update({f"{case.name}.in{place}": item for place, item in enumerate(fed)})
        given = results if isinstance(results, list | tuple) else [results]
        arrays.update({f"{case.name}.out{place}": np.asarray(item) for place, item in enumerate(given)})
    whole = sequential()
    shape = [1, 12, 8]
    arrays["sequential.in0"] = numbers.normal(size=shape).astype("f")
    arrays["sequential.out0"] = np.asarray(whole(arrays["sequential.in0"]))
    np.savez_compressed(arguments.output / "keras.npz", **arrays)
    with (
        tempfile.TemporaryDirectory() as folder,
        zipfile.ZipFile(arguments.output / "keras.zip", "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive,
    ):
        paths = [Path(folder, name) for name in ("model.keras", "model.h5")]
        for path in paths:
            model.save(path)
        paths += [Path(folder, "sequential.keras")]
        whole.save(paths[-1])
        for path in paths:
            archive.write(path, path.name)


def sequential() -> Any:
    """The model of docs/building.md, with more kinds of layers."""
    layers = keras.layers
    inner = keras.Sequential([layers.Dense(6), layers.LeakyReLU(), layers.ReLU(6.0)], name="inner")
    return keras.Sequential(
        [
            keras.Input((None, 8)),
            layers.Conv1D(6, 3, padding="causal", activation="relu", name="front"),
            layers.BatchNormalization(),
            layers.Dropout(0.2),
            layers.GRU(5, return_sequences=True, name="memory"),
            layers.TimeDistributed(layers.Dense(4, activation="tanh")),
            layers.MaxPooling1D(2, padding="same"),
            layers.ZeroPadding1D((1, 0)),
            inner,
            layers.Bidirectional(layers.LSTM(3, return_sequences=True), merge_mode="ave"),
            layers.Activation("hard_sigmoid"),
            layers.GlobalAveragePooling1D(),
            layers.Reshape((3, 1)),
            layers.Permute((2, 1)),
            layers.Flatten(),
            layers.Rescaling(2.0, offset=-1.0),
            layers.Dense(3, name="words"),
            layers.Softmax(),
        ],
        name="keywords",
    )


def made(case: Case) -> Any:
    if case.wrap is None:
        return getattr(keras.layers, case.layer)(**case.make, name=case.name)
    return keras.layers.Bidirectional(getattr(keras.layers, case.layer)(**case.make), **case.wrap, name=case.name)


def flat(item: Any) -> list[Any]:
    return [part for one in item for part in flat(one)] if isinstance(item, list | tuple) else [item]


if __name__ == "__main__":
    main()

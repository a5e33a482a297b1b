"""How a Keras model is made, run and exported by tf2onnx."""

from __future__ import annotations

import logging
import os

import numpy as np

from .table import Architecture

os.environ.update(TF_CPP_MIN_LOG_LEVEL="3", CUDA_VISIBLE_DEVICES="", TF_NUM_INTRAOP_THREADS="1")
logging.getLogger("tf2onnx").setLevel(logging.ERROR)

import keras  # noqa: E402
import tensorflow as tf  # noqa: E402
import tf2onnx  # noqa: E402


def warm_up() -> None:
    """Nothing: TensorFlow must not run before the process is forked."""


def make(architecture: Architecture) -> keras.Model:
    keras.utils.set_random_seed(architecture.seed % 2**31)
    model = architecture.make()
    for weight in model.weights:  # biases that are zero would hide mistakes
        if weight.path.endswith("bias"):
            weight.assign(np.random.default_rng(architecture.seed).normal(0, 0.2, weight.shape))
    return model


def run(architecture: Architecture, model: keras.Model, feeds: dict[str, np.ndarray]) -> list[np.ndarray]:
    results = model([tf.constant(array) for array in _typed(model, feeds)], training=False)
    return [np.asarray(each) for each in tf.nest.flatten(results)]


def export(
    architecture: Architecture, exporter: str, model: keras.Model, feeds: dict[str, np.ndarray], path: str
) -> None:
    signature = [
        tf.TensorSpec([None if isinstance(size, str) else size for size in each.shape], array.dtype, name=name)
        for (name, each), array in zip(architecture.inputs.items(), _typed(model, feeds), strict=True)
    ]

    @tf.function(input_signature=signature)
    def call(*arguments: tf.Tensor) -> list[tf.Tensor]:
        return tf.nest.flatten(model(list(arguments), training=False))

    opset = architecture.options.get("opset", 17)
    tf2onnx.convert.from_function(call, input_signature=signature, opset=opset, output_path=path)


def _typed(model: keras.Model, feeds: dict[str, np.ndarray]) -> list[np.ndarray]:
    return [array.astype(each.dtype) for array, each in zip(feeds.values(), model.inputs, strict=True)]

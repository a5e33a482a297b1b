"""Plans that learn in webrnn.js, in Node: the losses and the parameters of Python, bit for bit."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import webrnn
from tests.training import models
from tests.training.cases import TASK_STEPS, task_batch
from webrnn.training import Adam, Ctc, Sgd
from webrnn.training.trainer import Trainer

from .node import node

SCRIPT = """
import { readFileSync } from "node:fs";
const { Model } = await import(process.argv[1]);
const folder = process.argv[2];
const model = await Model.load(`${folder}/learn.rnn`);
const stream = model.stream();
const given = JSON.parse(readFileSync(`${folder}/feeds.json`));
const arrays = { f32: Float32Array, i32: Int32Array };
const made = ({ type, data, shape }) => ({ data: arrays[type].from(data), shape });
const lr = Float32Array.of(model.about.trainer.lr);
const losses = [];
for (const feeds of given) {
  const named = Object.fromEntries(Object.entries(feeds).map(([name, feed]) => [name, made(feed)]));
  losses.push(stream.step({ ...named, lr }).loss[0]);
  if (losses.length === 2) stream.load(stream.state); // a round trip
}
const state = stream.state;
const predictor = (await Model.load(`${folder}/predict.rnn`)).stream();
predictor.load(Object.fromEntries(model.about.trainer.parameters.map((name) => [name, state[name]])));
const x = made(given[0][process.argv[3]]);
const results = Object.values(predictor.step({ [process.argv[3]]: x }));
const plain = Object.fromEntries(Object.entries(state).map(([name, array]) => [name, [...array]]));
console.log(JSON.stringify({ variant: model.variant, losses, state: plain, result: [...results[0]] }));
"""


def in_node(trainer: Trainer, batches: list[dict[str, np.ndarray]], host: Path, folder: Path, x: str) -> dict[str, Any]:
    trainer.export(folder / "learn.rnn", predict=folder / "predict.rnn")
    kinds = {np.dtype(np.float32): "f32", np.dtype(np.int32): "i32"}
    feeds = [
        {
            name: {"type": kinds[array.dtype], "data": array.ravel().tolist(), "shape": list(array.shape)}
            for name, array in batch.items()
        }
        for batch in batches
    ]
    (folder / "feeds.json").write_text(json.dumps(feeds))
    said = node("--input-type=module", "-e", SCRIPT, (host / "webrnn.js").as_uri(), str(folder), x)
    found: dict[str, Any] = json.loads(said)
    return found


def agree(trainer: Trainer, batches: list[dict[str, np.ndarray]], found: dict[str, Any], x: str) -> None:
    assert found["variant"] == "relaxed"
    assert found["losses"] == [trainer.step(batch) for batch in batches]
    state = trainer.state
    assert found["state"].keys() == state.keys()
    for name, array in state.items():
        assert np.array_equal(np.array(found["state"][name], array.dtype), array.ravel()), name
    (expected, *_) = trainer.predict({x: batches[0][x]})
    assert np.array_equal(np.array(found["result"], np.float32), expected.ravel())


@pytest.mark.parametrize("optimizer", [Sgd(momentum=0.9), Adam()], ids=["sgd", "adam"])
def test_the_task_ends_with_the_same_bits(optimizer: Any, host: Path, tmp_path: Path) -> None:
    """All 200 steps; sizes of the batch change once."""
    trainer = webrnn.trainer(models.classifier().SerializeToString(), "cross_entropy", optimizer, lr=0.02)
    batches = []
    for step in range(TASK_STEPS):
        x, target = task_batch(step)
        batches.append({"x": x[: 5 if step == 3 else 16], "target": target[: 5 if step == 3 else 16]})
    agree(trainer, batches, in_node(trainer, batches, host, tmp_path, "x"), "x")


def test_ctc_in_a_page(host: Path, tmp_path: Path) -> None:
    trainer = webrnn.trainer(models.tagger(), Ctc(), "adam", lr=0.03, clip_norm=1.0)
    rng = np.random.default_rng(4)
    batches = [
        {
            "x": rng.standard_normal((9, 2, 3)).astype(np.float32),
            "target": np.int32([[1, 2, 2], [3, 0, 0]]),
            "input_lengths": np.int32([9, 6]),
            "target_lengths": np.int32([3, 1]),
        }
        for _ in range(5)
    ]
    agree(trainer, batches, in_node(trainer, batches, host, tmp_path, "x"), "x")

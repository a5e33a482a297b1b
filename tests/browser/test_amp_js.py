"""Amp models in Node: a stream of quanta gives the bits of the whole run natively."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import webrnn
from webrnn.engine.kernels import loading as kernels

from .node import node

ROOT = Path(__file__).parents[2]
AMPS = [ROOT / "web_demo" / "amp" / "crunch.nam", ROOT / "tests" / "formats" / "recorded" / "wavenet_film.nam"]

SCRIPT = """
import { readFile } from "node:fs/promises";
const [base, folder] = process.argv.slice(1);
const { Model } = await import(new URL("webrnn.js", base));
const wasm = await WebAssembly.compile(await readFile(new URL("wasm_relaxed_core.wasm", base)));
const floats = async (name) => new Float32Array(Uint8Array.from(await readFile(new URL(name, folder))).buffer);
const model = Model.loadSync(new Uint8Array(await readFile(new URL("amp.rnn", folder))), { wasm });
const { hop, input, output } = model.about.audio;
const [x, y] = [await floats("x.f32"), await floats("y.f32")];
const stream = model.stream({ sizes: { time: hop } });
let different = 0;
for (let at = 0; at < x.length; at += hop) {
  const result = stream.step({ [input]: x.subarray(at, at + hop) })[output];
  for (let i = 0; i < hop; i++) different += !Object.is(result[i], y[at + i]);
}
console.log(hop, different);
"""


@pytest.mark.parametrize("amp", AMPS, ids=lambda amp: amp.stem)
def test_quanta_in_node(amp: Path, host: Path, tmp_path: Path) -> None:
    fused = "native" if kernels.load("native").fused else "wasm:relaxed"
    session = webrnn.InferenceSession(amp, backend=fused)
    x = np.random.default_rng(0).uniform(-0.5, 0.5, 128 * 8).astype(np.float32)
    (tmp_path / "x.f32").write_bytes(x.tobytes())
    (tmp_path / "y.f32").write_bytes(session.run(None, {"x": x})[0].tobytes())
    session.export(tmp_path / "amp.rnn")
    out = node("--input-type=module", "-e", SCRIPT, f"{host.as_uri()}/", f"{tmp_path.as_uri()}/")
    assert out.split() == ["128", "0"]

"""Real models with inputs, and what is asked of each: it opens, is right, and is one plan that runs everywhere.

`make real-models` (`python -m tests.models.real_models [name ...]`) tries them natively, in Node and in Chromium. With
`WEIGHTS=int8` (`--weights int8`) their weights are small, and all builds have to give the same bits; how far they are
off onnxruntime is shown, and no reason to fail.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime

import webrnn
from tests.models.fetch import model_path
from webrnn.engine.programs.plan_program import PlanProgram
from webrnn.engine.programs.vm_program import VmProgram
from webrnn.tables import table

Feeds = dict[str, np.ndarray]
RNG = np.random.Generator


def _floats(*shape: int, scale: float = 0.3) -> Callable[[RNG], np.ndarray]:
    return lambda rng: (scale * rng.standard_normal(shape)).astype(np.float32)


def _tokens(*shape: int, below: int = 25, dtype: Any = np.int64) -> Callable[[RNG], np.ndarray]:
    return lambda rng: rng.integers(1, below, shape).astype(dtype)


def _is(number: Any, dtype: Any = np.int64) -> Callable[[RNG], np.ndarray]:
    return lambda rng: np.array(number, dtype)


def _silero(samples: int = 576, rate: int = 16000) -> dict[str, Callable[[RNG], np.ndarray]]:
    return {"input": _floats(1, samples, scale=0.1), "state": _floats(2, 1, 128, scale=0.1), "sr": _is(rate)}


def _moonshine(past: int, use_cache: bool) -> dict[str, Callable[[RNG], np.ndarray]]:
    caches = {
        f"past_key_values.{layer}.{side}.{part}": _floats(1, 8, past if side == "decoder" else 40, 36)
        for layer in range(6)
        for side in ("decoder", "encoder")
        for part in ("key", "value")
    }
    tokens = {"input_ids": _tokens(1, 1, below=30000), "encoder_hidden_states": _floats(1, 40, 288, scale=1)}
    return {**tokens, **caches, "use_cache_branch": _is([use_cache], np.bool_)}


_GTCRN = {
    "mix": _floats(1, 257, 1, 2),
    "conv_cache": _floats(2, 1, 16, 16, 33),
    "tra_cache": _floats(2, 3, 1, 1, 16),
    "inter_cache": _floats(2, 1, 33, 16),
}


@dataclass(frozen=True)
class Case:
    runs: tuple[dict[str, Callable[[RNG], np.ndarray]], ...]
    """How the inputs of each run are made; runs of other sizes are of the same plan."""
    tolerance: float = 1e-4
    """Relative to the largest number of an output."""


def _case(*runs: dict[str, Callable[[RNG], np.ndarray]], tolerance: float = 1e-4) -> Case:
    return Case(runs, tolerance)


CASES = {
    "aecmos_a": _case({"input": _floats(1, 3, 60, 160, scale=1), "h0": _floats(4, 1, 64)}),
    "dtln_1": _case({"input_2": _floats(1, 1, 257, scale=1), "input_3": _floats(1, 2, 128, 2)}),
    "dtln_2": _case({"input_4": _floats(1, 1, 512), "input_5": _floats(1, 2, 128, 2)}),
    "gtcrn": _case(_GTCRN),
    "gtcrn_simple": _case(_GTCRN),
    "hey_mycroft_lstm": _case({"input_1": _floats(1, 16, 96, scale=1)}, {"input_1": _floats(3, 16, 96, scale=1)}),
    "localwake_loop": _case({"samples:0": _floats(1, 16000, scale=0.1)}),
    "moonshine_tiny_dec_if": _case(_moonshine(0, False), _moonshine(3, True), tolerance=0.02),
    "nakdimon_loop": _case({"input_1": _tokens(1, 40, dtype=np.float32)}, {"input_1": _tokens(2, 7, dtype=np.float32)}),
    "nsnet2_16k": _case({"input": _floats(1, 20, 161, scale=1)}),
    "oww_embedding": _case({"input_1": _floats(1, 76, 32, 1, scale=1)}),
    "oww_melspec": _case({"input": _floats(1, 16000, scale=1000)}, {"input": _floats(1, 1760, scale=1000)}),
    "ppocr_v2_rec": _case({"x": _floats(1, 3, 32, 320, scale=1)}),
    "riann": _case({"input": _floats(1, 100, 7, scale=1), "h0": _floats(2, 1, 1, 200)}),
    "silero_v6": _case(_silero(), _silero(288, 8000)),
    "silero_v6_op15": _case(_silero()),
    "silero_v6_op18_ifless": _case(_silero()),
    "silero_v6_seq": _case({"input": _floats(20, 576, scale=0.1), "h": _floats(1, 1, 128), "c": _floats(1, 1, 128)}),
    # integer products are exact here; those of onnxruntime may saturate, and roundings flip
    "t2t_bilstm_int8": _case({"input_ids": _tokens(1, 40)}, {"input_ids": _tokens(2, 9)}, tolerance=0.1),
    "tashkeel_gru": _case(
        {"char_inputs": _tokens(1, 40), "diac_inputs": _is(np.zeros((1, 40))), "input_lengths": _is([40])},
        {"char_inputs": _tokens(2, 9), "diac_inputs": _is(np.zeros((2, 9))), "input_lengths": _is([9, 5])},
    ),
    "thai2rom_enc": _case(
        {"input_tensor": _tokens(1, 11, below=55), "input_lengths": _is([11], np.int32)},
        {"input_tensor": _tokens(1, 4, below=55), "input_lengths": _is([4], np.int32)},
    ),
    "wespeaker_scan": _case({"waveforms": _floats(1, 16000, scale=0.1), "waveforms_lens": _is([16000])}),
}


@dataclass
class Finding:
    """What came of one model, natively."""

    kind: str = "one plan for all sizes"
    difference: float = 0.0
    """The largest one from onnxruntime, relative to the largest number of the output."""
    plan: bytes = b""
    runs: list[Feeds] | None = None
    results: list[Feeds] | None = None
    wrong: str = ""


def feeds_of(name: str) -> list[Feeds]:
    rng = np.random.default_rng(5)
    return [{key: make(rng) for key, make in run.items()} for run in CASES[name].runs]


OTHERS = ("native:avx2", "native:sse2", "wasm:relaxed", "wasm:simd", "wasm:scalar")
"""What has to give native's bits where weights are small."""


def judge(name: str, folder: Path, backend: str = "native", weights: str = "f32") -> Finding:
    """Compare a model with onnxruntime, and export it; results are those of the exported plan."""
    onnxruntime.set_default_logger_severity(4)
    path = model_path(name)
    found = Finding(runs=feeds_of(name), results=[])
    ours = webrnn.InferenceSession(path, backend=backend, weights=weights)
    theirs = onnxruntime.InferenceSession(path)
    names = [item.name for item in ours.get_outputs()]
    for feeds in found.runs or ():
        results = ours.run(None, feeds)
        for output, mine, wanted in zip(names, results, theirs.run(None, feeds), strict=True):
            if mine.shape != wanted.shape or mine.dtype != wanted.dtype:
                found.wrong = f"{output} is {mine.dtype}{mine.shape}, not {wanted.dtype}{wanted.shape}"
                return found
            if mine.size:
                most = float(np.abs(wanted.astype(np.float64)).max())
                gap = float(np.abs(mine.astype(np.float64) - wanted).max())
                found.difference = max(found.difference, gap / (most or 1))
        program = ours._program
        if not (isinstance(program, VmProgram) and isinstance(program.recent, PlanProgram)):
            found.kind = next((line for line in ours.report().splitlines() if line.startswith("in numpy")), "in numpy")
            return found
    if weights == "f32" and not found.difference <= CASES[name].tolerance:
        found.wrong = f"differs by {found.difference:.2g}"
    target = folder / f"{name}.rnn"
    try:
        ours.export(target)
    except webrnn.Error as error:
        found.kind = f"a plan for each shape: {error}"
        if len(found.runs or ()) > 1:
            found.runs = (found.runs or [])[:1]
        ours.export(target, shapes={key: array.shape for key, array in (found.runs or [])[0].items()})
    found.plan = target.read_bytes()
    plan = webrnn.InferenceSession(target, backend=backend)
    found.results = [dict(zip(names, plan.run(None, feeds), strict=True)) for feeds in found.runs or ()]
    for other in OTHERS if weights.startswith("int") else ():
        session = webrnn.InferenceSession(target, backend=other)
        for feeds, wanted in zip(found.runs or (), found.results, strict=True):
            if any(
                mine.tobytes() != wanted[output].tobytes()
                for output, mine in zip(names, session.run(None, feeds), strict=True)
            ):
                found.wrong = f"other bits on {other}"
    return found


def write_case(name: str, found: Finding, folder: Path) -> None:
    """What webrnn_cases.mjs reads: feeds, and the results that JavaScript is held to, bit for bit."""

    from tests.browser.webrnn_cases import encoded

    runs, results = ([encoded(each) for each in many or ()] for many in (found.runs, found.results))
    content = {"carry": {}, "runs": runs, "results": {"relaxed": results}}
    (folder / f"{name}.json").write_text(json.dumps(content))


def main() -> None:
    from tests.browser.real_models import in_chromium, in_node, real_site

    parser = argparse.ArgumentParser(prog="make real-models")
    parser.add_argument("names", nargs="*", default=[])
    parser.add_argument("--native-only", action="store_true")
    parser.add_argument("--weights", default="f32", help="f32, f16, int16 or int8")
    arguments = parser.parse_args()
    names = arguments.names or list(CASES)
    rows, plans = [], []
    with tempfile.TemporaryDirectory() as temporary:
        site = real_site(Path(temporary))
        for index, name in enumerate(names):
            print(f"\r{index + 1}/{len(names)} {name:30}", end="", file=sys.stderr, flush=True)
            try:
                found = judge(name, site / "cases", weights=arguments.weights)
            except webrnn.Error as error:
                found = Finding("refused", wrong=str(error))
            if found.plan:
                write_case(name, found, site / "cases")
                plans.append(name)
            rows.append([name, found.kind, f"{found.difference:.1e}", found.wrong or "right"])
        print(file=sys.stderr)
        print(table("real models, natively", rows, ["model", "what it became", "off onnxruntime", ""]))
        if not arguments.native_only:
            for place, run in (("Node", in_node), ("Chromium", in_chromium)):
                differences = run(site, plans)
                print(f"{place}: {len(plans)} plans, bits {differences or 'as natively'}")


if __name__ == "__main__":
    main()

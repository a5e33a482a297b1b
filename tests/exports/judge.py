"""What webrnn makes of the exports: right or wrong, one plan or not and why not, streams right or refused.

`python -m tests.exports.judge` reads what `write` wrote, prints a line a model, and compares the verdicts that are not
plainly good with expected.txt; it fails if something is wrong or if that list is not exact. `--accept` rewrites the
list. A result is right if it differs from onnxruntime's by no more than the model's tolerance (1e-4 for float32; more
for quantized and float16 models, where a rounding to the other side shows) times the largest value, or 1.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime

import webrnn
from webrnn.engine.programs.plan_program import PlanProgram

ROOT = Path(__file__).resolve().parents[2] / "build" / "exports" / "models"
EXPECTED = Path(__file__).parent / "expected.txt"
Arrays = Mapping[str, np.ndarray]


@dataclass
class Verdict:
    """What was found about one model; texts are "" where there is nothing to say."""

    name: str
    not_exportable: str = ""
    wrong: str = ""
    refused: str = ""
    plan: str = ""
    """ "all sizes", "given sizes", or "no"."""
    reason: str = ""
    """Why there is no plan for all sizes, or for the given ones."""
    stream: str = ""
    """ "right", "wrong ..." or "raises ...", for a model that has states."""

    @property
    def is_whole(self) -> bool:
        return self.plan in ("all sizes", "given sizes")

    def line(self) -> str:
        """For expected.txt: "" if all is well."""
        if self.not_exportable:
            return f"not exportable: {self.not_exportable}"
        if self.wrong or self.stream.startswith("wrong"):
            return f"WRONG: {self.wrong or self.stream}"
        said = [f"refused: {self.refused}"] if self.refused else []
        if not self.refused and not self.is_whole:
            said.append(f"in numpy: {self.reason}")
        if self.stream.startswith("raises"):
            said.append(f"carry {self.stream}")
        return "; ".join(said)


def judge(folder: Path, backend: str = "native") -> Verdict:
    about = json.loads((folder / "about.json").read_text())
    verdict = Verdict(folder.name, not_exportable=_one_line(about.get("not_exportable", "")))
    if verdict.not_exportable:
        return verdict
    with np.load(folder / "runs.npz") as file:
        arrays = {name: file[name] for name in file.files}
    try:
        session = webrnn.InferenceSession(folder / "model.onnx", backend=backend)
    except webrnn.Error as error:
        verdict.refused = _one_line(str(error))
        return verdict
    plans = []
    for index in range(2):
        expected = _expected(arrays, index, about)
        if not expected:
            continue
        try:
            results = session.run(None, _part(arrays, f"{index}/in/"))
        except webrnn.Error as error:
            verdict.refused = _one_line(str(error))
            continue
        verdict.wrong = verdict.wrong or _difference(results, expected, about["tolerance"])
        program: Any = session._program
        recent = getattr(program, "recent", None)
        whole = isinstance(recent, PlanProgram)
        plans.append("no" if not whole else "all sizes" if recent is getattr(program, "plan", None) else "given sizes")
    verdict.plan = max(plans, key=["all sizes", "given sizes", "no"].index, default="")
    verdict.reason = "" if verdict.plan == "all sizes" else _why(session, verdict.plan)
    if about["states"] and not verdict.refused:
        verdict.stream = _stream(folder, session, about, arrays)
    return verdict


def _part(arrays: Arrays, start: str) -> dict[str, np.ndarray]:
    return {name.removeprefix(start): array for name, array in arrays.items() if name.startswith(start)}


def _expected(arrays: Arrays, index: int, about: Mapping[str, Any]) -> list[np.ndarray]:
    """What onnxruntime gave; the framework's where it cannot open the model, nothing where it cannot run it."""
    results = list(_part(arrays, f"{index}/out/").values())
    return results or ([] if about["outputs"] else list(_part(arrays, f"{index}/own/").values()))


def _why(session: webrnn.InferenceSession, plan: str) -> str:
    lines = session.report().splitlines()
    starts = ("in numpy",) if plan == "no" else ("no plan for all sizes", "not by the plan for all sizes")
    reasons = [line.partition(": ")[2] for line in lines if line.startswith(starts)]
    return _one_line(reasons[0] if reasons else "all of it")


def _one_line(text: str) -> str:
    """Without the names of nodes and values, which exporters number, without paths and advice."""
    text = re.split(r"\{|\. Please|Load model from", re.sub(r"'[^']*' \(", "(", text))[0]
    return " ".join(re.sub(r"\S*/[^\s:]*", "...", text).split())[:160]


def _difference(results: list[Any], expected: list[np.ndarray], tolerance: float) -> str:
    if len(results) != len(expected):
        return f"{len(results)} results, {len(expected)} expected"
    for index, (result, wanted) in enumerate(zip(results, expected, strict=True)):
        result = np.asarray(result)
        if result.shape != wanted.shape or result.dtype != wanted.dtype:
            return f"output {index} is {result.dtype}{result.shape}, expected {wanted.dtype}{wanted.shape}"
        if result.dtype == bool:
            result, wanted = result.astype(np.int8), wanted.astype(np.int8)
        finite = np.isfinite(wanted)
        if not np.array_equal(np.where(finite, 0, result), np.where(finite, 0, wanted), equal_nan=True):
            return f"output {index} differs where it is not finite"
        a, b = np.where(finite, result, 0).astype(np.float64), np.where(finite, wanted, 0).astype(np.float64)
        difference = float(np.abs(a - b).max(initial=0))
        if difference > tolerance * max(1.0, float(np.abs(b).max(initial=0))):
            return f"output {index} differs by {difference:.2g}"
    return ""


def _stream(folder: Path, session: webrnn.InferenceSession, about: Mapping[str, Any], arrays: Arrays) -> str:
    """A stream with carry="auto", against onnxruntime with its states carried by hand."""
    states = about["states"]
    try:
        stream = session.stream(carry="auto")
    except webrnn.Error as error:
        return f"raises: {_one_line(str(error))}"
    if dict(stream.carry) != states:
        return f"wrong pairs: {stream.carry}"
    peer = onnxruntime.InferenceSession(folder / "model.onnx") if about["outputs"] else None
    if peer is None:
        return "right pairs"
    carried = _starts(peer, _part(arrays, "step0/"), about)
    index = 0
    while feeds := _part(arrays, f"step{index}/"):
        signals = {name: array for name, array in feeds.items() if name not in states}
        try:
            results = dict(zip(stream.output_names, stream.step(signals), strict=True))
        except webrnn.Error as error:
            return f"raises: {_one_line(str(error))}"
        wanted = dict(zip(about["outputs"], peer.run(None, {**signals, **carried}), strict=True))
        carried = {name: wanted[output] for name, output in states.items()}
        said = _difference(list(results.values()), [wanted[name] for name in results], about["tolerance"])
        said = said or _difference([stream.state[name] for name in states], list(carried.values()), about["tolerance"])
        if said:
            return f"wrong in step {index}: {said}"
        index += 1
    return "right"


def _starts(peer: Any, feeds: Arrays, about: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """From what a stream starts: zeros; of a state that grows in a step, none."""
    zeros = {name: np.zeros_like(feeds[name]) for name in about["states"]}
    after = dict(zip(about["outputs"], peer.run(None, {**feeds, **zeros}), strict=True))
    for name, output in about["states"].items():
        sizes = zip(zeros[name].shape, after[output].shape, strict=True)
        zeros[name] = np.zeros([0 if then > now else now for now, then in sizes], zeros[name].dtype)
    return zeros


def listed(path: Path = EXPECTED) -> dict[str, str]:
    lines = path.read_text().splitlines()
    return dict(line.split(": ", 1) for line in lines if line and not line.startswith("#"))


def summary(verdicts: list[Verdict]) -> str:
    made = [each for each in verdicts if not each.not_exportable]
    right = [each for each in made if not each.wrong and not each.refused]
    plans = Counter(each.plan for each in right)
    streams = Counter(each.stream.partition(":")[0].partition(" ")[0] for each in made if each.stream)
    whole = plans["all sizes"] + plans["given sizes"]
    return (
        f"{len(made)} models ({len(verdicts) - len(made)} more not exportable): {len(right)} right, "
        f"{sum(bool(each.wrong) for each in made)} wrong, {sum(bool(each.refused) for each in made)} refused; "
        f"{whole} whole plans ({whole / max(1, len(made)):.1%}), {plans['all sizes']} of them for all sizes; "
        f"streams: {dict(streams)}"
    )


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", default="", help="only models whose names contain this; nothing is compared then")
    parser.add_argument("--backend", default="native")
    parser.add_argument("--accept", action="store_true", help="write expected.txt")
    parser.add_argument("--folder", type=Path, default=ROOT)
    arguments = parser.parse_args()
    verdicts = []
    for folder in sorted(path.parent for path in arguments.folder.glob("*/about.json")):
        if arguments.only in folder.name:
            verdicts.append(judge(folder, arguments.backend))
            each = verdicts[-1]
            stream = f"; stream {each.stream}" if each.stream == "right" else ""
            print(f"{each.name}: {each.line() or 'right, a plan for ' + each.plan}{stream}", flush=True)
    print(summary(verdicts))
    found = {each.name: each.line() for each in verdicts if each.line()}
    if arguments.accept:
        head = f"# {summary(verdicts)}\n"
        EXPECTED.write_text(head + "".join(f"{name}: {line}\n" for name, line in found.items()))
    wrong = any(line.startswith("WRONG") for line in found.values())
    if arguments.only:
        return int(wrong)
    known = listed()
    for name in sorted(known.keys() | found.keys()):
        if known.get(name) != found.get(name):
            print(f"not as listed: {name}: {found.get(name, 'nothing to say')} (listed: {known.get(name, 'nothing')})")
    return int(wrong or known != found)


if __name__ == "__main__":
    sys.exit(main())

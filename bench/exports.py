"""`make bench-exports`: every written export natively beside onnxruntime, on one thread, in interleaved rounds.

It lists what is slower than onnxruntime, with what takes most of the time there (from the profile), and the share that
is slower among the exports of PyTorch in float32. `tests/exports/write.py` writes the models; those that onnxruntime
refuses are left out.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from webrnn.bench.case import Case
from webrnn.bench.machine import one_numpy_thread
from webrnn.bench.onnxruntime_c import OnnxruntimeRunner
from webrnn.bench.rounds import race
from webrnn.bench.runners import backend_runner
from webrnn.engine.session import InferenceSession
from webrnn.errors import Error
from webrnn.profile.profiler import Profile
from webrnn.profile.subject import Subject
from webrnn.tables import table

ROOT = Path(__file__).resolve().parents[1] / "build" / "exports" / "models"
ROUNDS, SAMPLE = 9, 0.4e-3
MOST_SLOWER, SLOWEST = 0.05, 1.3
"""The bars: the share of PyTorch's float32 exports that may be slower, and how much slower one may be."""
QUANTIZED = ("int8", "qdq", "qoperator")
PROFILE_SECONDS = 0.15


@dataclass(frozen=True)
class Timing:
    """One model on both; times are microseconds of the best run."""

    name: str
    ours: float
    theirs: float
    ratio: float
    """Ours ÷ theirs: the median over the calm rounds."""
    cause: str = ""
    """What takes most of our time, for a model that is slower."""
    detail: str = ""
    note: str = ""

    @property
    def kind(self) -> str:
        """
        >>> [Timing(f"m.{end}", 1, 1, 1).kind for end in ("trace", "script.qdq", "dynamo.float16", "tf2onnx")]
        ['torch', 'quantized', 'float16', 'keras']
        """
        parts = self.name.split(".")
        if parts[-1] in QUANTIZED:
            return "quantized"
        return "float16" if parts[-1] == "float16" else "keras" if "tf2onnx" in parts else "torch"


def case_of(folder: Path) -> Case | None:
    """None for what onnxruntime does not run."""
    about = json.loads((folder / "about.json").read_text())
    if "not_exportable" in about or not about.get("outputs"):
        return None
    with np.load(folder / "runs.npz") as file:
        feeds = {name.removeprefix("0/in/"): file[name] for name in file.files if name.startswith("0/in/")}
        expected = [file[name] for name in file.files if name.startswith("0/out/")]
    if not expected:
        return None
    return Case(folder.name, str(folder / "model.onnx"), feeds, expected, about["outputs"])


def timing(case: Case, rounds: int = ROUNDS) -> Timing:
    ours, theirs = backend_runner(case, "native"), OnnxruntimeRunner(case)
    try:
        mine, other = race({"native": ours, "onnxruntime": theirs}, rounds, SAMPLE)
    finally:
        theirs.close()
    return Timing(case.name, mine.best * 1e6, other.best * 1e6, mine.ratio_to(other).median, note=ours.note)


def cause_of(case: Case) -> tuple[str, str]:
    """The category that takes most of a run, with the instruction in it that does; and the largest instructions."""
    session = InferenceSession(case.model, backend="native")
    found = Subject(session).profile(case.feeds, seconds=PROFILE_SECONDS)
    return _most(found)


def _most(profile: Profile) -> tuple[str, str]:
    categories: defaultdict[str, float] = defaultdict(float)
    instructions: defaultdict[tuple[str, str], float] = defaultdict(float)
    calls: defaultdict[str, float] = defaultdict(float)
    for entry in profile.root.walk():
        if entry.kind in ("plan", "numpy"):
            continue
        name = _short(entry.name) if entry.kind in ("instruction", "part", "fallback") else entry.kind
        categories[entry.category] += entry.seconds
        instructions[entry.category, name] += entry.seconds
        calls[name] += entry.calls
    total = sum(categories.values()) or 1.0
    category = max(categories, key=lambda name: categories[name])
    name = max((key for key in instructions if key[0] == category), key=lambda key: instructions[key])[1]
    largest = ", ".join(
        f"{each} {seconds / total:.0%} ({calls[each]:,.0f} calls)"
        for (_, each), seconds in sorted(instructions.items(), key=lambda item: -item[1])[:4]
        if seconds > 0.05 * total
    )
    return f"{category}: {name}", largest


def _short(name: str) -> str:
    """A chain of element-wise operations by whether its type is converted: most chains are unlike each other.

    >>> _short("gemm"), _short("add, tanh (fused)"), _short("to_f32, relu, to_f16 (fused)")
    ('gemm', 'chain', 'chain with casts')
    """
    return name if not name.endswith("(fused)") else "chain with casts" if "to_" in name else "chain"


def measured(
    folders: Sequence[Path], rounds: int, after: Callable[[Timing | str], None]
) -> tuple[list[Timing], list[str]]:
    """Timings, and lines about models that have none."""
    found, failed = [], []
    for folder in folders:
        try:
            case = case_of(folder)
            if case is None:
                continue
            each = timing(case, rounds)
            if each.ratio > 1:  # once more, longer: a busy moment is no verdict
                again = timing(case, 2 * rounds)
                each = min(each, again, key=lambda timing: timing.ratio)
            if each.ratio > 1:
                cause, detail = cause_of(case)
                each = Timing(**{**asdict(each), "cause": cause, "detail": detail})
            found.append(each)
            after(each)
        except Error as error:
            failed.append(f"{folder.name}: {type(error).__name__}: {str(error).splitlines()[0]}")
            after(failed[-1])
    return found, failed


def report(found: Sequence[Timing], failed: Sequence[str]) -> str:
    parts = []
    for kind in ("torch", "keras", "float16", "quantized"):
        slower = sorted((each for each in found if each.kind == kind and each.ratio > 1), key=lambda each: -each.ratio)
        rows = [
            (each.name, f"{each.ours:,.1f}", f"{each.theirs:,.1f}", f"{each.ratio:.2f}", each.cause,
             each.detail or each.note)
            for each in slower
        ]  # fmt: skip
        if rows:
            header = ("model", "us", "onnxruntime", "ratio", "cause", "what takes most")
            parts.append(table(f"{kind}: slower than onnxruntime", rows, header))
            parts.append(_grouped(slower))
    return "\n\n".join([*parts, "\n".join(failed), summary(found)])


def _grouped(slower: Sequence[Timing]) -> str:
    groups = Counter(each.cause for each in slower)
    return "by cause: " + "; ".join(f"{cause} {number}" for cause, number in groups.most_common())


def summary(found: Sequence[Timing]) -> str:
    """A line a kind: how many are slower, and the worst."""
    lines = []
    for kind in ("torch", "keras", "float16", "quantized"):
        of_kind = [each for each in found if each.kind == kind]
        if of_kind:
            slower = [each for each in of_kind if each.ratio > 1]
            worst = max(of_kind, key=lambda each: each.ratio)
            middle = float(np.median([each.ratio for each in of_kind]))
            beyond = sum(each.ratio > SLOWEST for each in of_kind)
            lines.append(
                f"{kind}: {len(slower)} of {len(of_kind)} slower than onnxruntime ({len(slower) / len(of_kind):.1%}), "
                f"{beyond} by more than {SLOWEST}, median {middle:.2f}, worst {worst.ratio:.2f} ({worst.name})"
            )
    return "\n".join(lines)


def misses(found: Sequence[Timing]) -> bool:
    """Whether a bar is missed."""
    torch = [each for each in found if each.kind == "torch"]
    slower = sum(each.ratio > 1 for each in torch)
    return slower > MOST_SLOWER * len(torch) or any(each.ratio > SLOWEST for each in torch)


def _progress(each: Timing | str) -> None:
    text = each if isinstance(each, str) else f"{each.name} {each.ratio:.2f}"
    if sys.stderr.isatty():
        print(f"\r\033[K{text[:100]} ", end="", file=sys.stderr, flush=True)


def as_data(found: Sequence[Timing], failed: Sequence[str]) -> Mapping[str, Any]:
    return {"timings": [asdict(each) for each in found], "failed": list(failed)}


def main() -> int:
    parser = argparse.ArgumentParser(prog="make bench-exports", description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument(
        "--folder", type=Path, default=ROOT, help="with a folder a model (default: build/exports/models)"
    )
    parser.add_argument("--only", default="", help="only models whose names contain this")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures, too")
    arguments = parser.parse_args()
    folders = sorted(
        path.parent for path in arguments.folder.glob("*/about.json") if arguments.only in path.parent.name
    )
    with one_numpy_thread():
        found, failed = measured(folders, arguments.rounds, _progress)
    if not found:
        print(f"there are no exports in {arguments.folder}: `make exports-write` writes them")
        return 1
    print(report(found, failed))
    if arguments.json is not None:
        arguments.json.write_text(json.dumps(as_data(found, failed), indent=1) + "\n")
    return int(misses(found))


if __name__ == "__main__":
    sys.exit(main())

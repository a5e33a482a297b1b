"""What one backend refuses, all refuse: by an error of the same class that names the node."""

from __future__ import annotations

import pytest

from .cases import BAD, GOOD, ONNXRUNTIME_TAKES
from .harness import model_bytes, refused_alike, same_results, verdict, verdicts
from .mutated import mutations

EVERY = 11
"""Of the mutations one in so many is run; all of them take two minutes."""


@pytest.mark.parametrize("case", BAD, ids=str)
def test_bad_operands_are_refused_by_all(case):
    assert not refused_alike(verdicts(case))


@pytest.mark.parametrize("case", GOOD, ids=str)
def test_operands_at_the_edge_are_taken_by_all(case):
    assert not same_results(verdicts(case))


def test_mutated_operands_are_refused_or_taken_alike():
    every = [changed for case in GOOD for changed in mutations(case)]
    for changed in every[::EVERY]:
        found = verdicts(changed, ("numpy", "native"))
        assert not refused_alike(found) or not same_results(found), f"{changed}\n{refused_alike(found)}"


def _onnxruntime(case):
    runtime = pytest.importorskip("onnxruntime")
    runtime.set_default_logger_severity(4)
    data, feeds = model_bytes(case, symbolic=False)
    try:
        return runtime.InferenceSession(data, providers=["CPUExecutionProvider"]).run(None, feeds)
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def test_onnxruntime_refuses_the_same_but_for_what_is_listed():
    taken = {str(case) for case in BAD if not isinstance(_onnxruntime(case), str)}
    assert taken <= ONNXRUNTIME_TAKES.keys()


def test_onnxruntime_takes_the_same_and_gives_the_same():
    for case in GOOD:
        found = {"onnxruntime": _onnxruntime(case), "numpy": verdict(case, "numpy", symbolic=False)}
        assert not isinstance(found["onnxruntime"], str), f"{case}: {found['onnxruntime']}"
        assert not same_results(found), f"{case}\n{same_results(found)}"

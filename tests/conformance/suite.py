"""ONNX's own node tests, run through an InferenceSession.

`python -m tests.conformance.suite` rewrites not_passing.txt.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import webrnn
from tests.reference.onnx_cases import assert_same, node_cases, to_webrnn

NOT_PASSING = Path(__file__).parent / "not_passing.txt"

LOOPS = {"RNN", "GRU", "LSTM", "Scan", "Loop", "If"}

ROUNDING = {
    "test_dft_inverse": 1e-6,
    "test_dft_inverse_opset19": 1e-6,
    "test_attention_4d_causal_fp16_expanded": 1e-3,
    **{
        f"test_attention_{name}_bf16{suffix}": 2**-7
        for name in ("4d_causal", "4d_padded_kv", "4d_causal_padded_kv", "4d_attn_mask_causal", "3d_causal")
        for suffix in ("", "_expanded")
    },
}
"""Cases whose expected values are themselves rounded more coarsely than the suite's absolute tolerance of 1e-7."""


KERNEL_ROUNDING = 1e-6
"""Absolute tolerance on kernels: sums in another order than the expected values have other last bits."""


DRAWN = ("test_bernoulli", "test_training_dropout")
"""How names of cases begin whose expected values were drawn from another generator: of these only types and shapes are
compared."""


def assert_expected(case: Any, result: Any, wanted: Any, atol: float) -> None:
    if case.name.startswith(DRAWN) and "zero_ratio" not in case.name:
        assert (result.dtype, result.shape) == (wanted.dtype, wanted.shape)
    else:
        assert_same(result, wanted, case.rtol, atol)


def run_case(case: Any, disable: Sequence[str] = (), backend: str = "numpy") -> None:
    """Raises AssertionError for a wrong result, webrnn.Error for a refusal."""
    session = webrnn.InferenceSession(case.model.SerializeToString(), backend=backend, disable=disable)
    atol = max(ROUNDING.get(case.name, case.atol), 0.0 if backend == "numpy" else KERNEL_ROUNDING)
    names = [argument.name for argument in session.get_inputs()]
    for inputs, expected in case.data_sets:
        feeds = dict(zip(names, map(to_webrnn, inputs), strict=False))
        results = session.run(None, feeds)
        for result, wanted in zip(results, expected, strict=True):
            assert_expected(case, result, to_webrnn(wanted), atol)


def refusals(disable: Sequence[str] = (), backend: str = "numpy") -> dict[str, str]:
    """The cases that webrnn refuses, with its reason, without some of the passes. A wrong result or another exception
    passes through.
    """
    found = {}
    for name, case in node_cases().items():
        try:
            run_case(case, disable, backend)
        except webrnn.Error as error:
            found[name] = " ".join(str(error).split())
        except Exception as error:
            error.add_note(f"in ONNX's case {name}")
            raise
    return found


def listed() -> dict[str, str]:
    lines = NOT_PASSING.read_text().splitlines()
    return dict(line.split(": ", 1) for line in lines if line and not line.startswith("#"))


def uses_loops(case: Any) -> bool:
    """Whether the case has a recurrent op or a sub-graph."""
    return any(node.op_type in LOOPS for node in case.model.graph.node)


def main() -> None:
    found = refusals()
    head = f"# {len(node_cases()) - len(found)} of ONNX's {len(node_cases())} node cases pass; these are refused.\n"
    NOT_PASSING.write_text(head + "".join(f"{name}: {reason}\n" for name, reason in sorted(found.items())))


if __name__ == "__main__":
    main()

"""Which of ONNX's node cases run wholly on the VM, and why the others do not.

`python -m tests.conformance.on_vm` counts them; `--write` rewrites not_on_vm.txt; `--show PATTERN` prints the reasons
of cases whose names contain a text.
"""

from __future__ import annotations

import argparse
import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import webrnn
from tests.conformance.suite import KERNEL_ROUNDING, ROUNDING, assert_expected, node_cases
from tests.reference.onnx_cases import to_webrnn
from webrnn.engine.programs.vm_program import VmProgram

NOT_ON_VM = Path(__file__).parent / "not_on_vm.txt"


def reason_off_vm(case: Any, backend: str) -> str:
    """Why a case does not run wholly on the VM, "" if it does. AssertionError for a wrong result."""
    try:
        session = webrnn.InferenceSession(case.model.SerializeToString(), backend=backend)
        names = [argument.name for argument in session.get_inputs()]
        for inputs, expected in case.data_sets:
            results = session.run(None, dict(zip(names, map(to_webrnn, inputs), strict=False)))
            for result, wanted in zip(results, expected, strict=True):
                atol = max(ROUNDING.get(case.name, case.atol), KERNEL_ROUNDING)
                assert_expected(case, result, to_webrnn(wanted), atol)
    except webrnn.Error as error:
        return f"refused: {_one_line(str(error))}"
    program = session._program
    if isinstance(program, VmProgram) and program.is_whole:
        return ""
    reasons = [line.partition(": ")[2] for line in session.report().splitlines() if line.startswith("in numpy")]
    return _one_line(reasons[0] if reasons else "all of it in numpy")


def _one_line(text: str) -> str:
    return " ".join(re.sub(r"'[^']*' \(", "(", text).split())


def off_vm(backend: str, names: Iterable[str] | None = None) -> dict[str, str]:
    cases = node_cases()
    found = {name: reason_off_vm(cases[name], backend) for name in (cases if names is None else names)}
    return {name: reason for name, reason in found.items() if reason}


def listed() -> dict[str, str]:
    lines = NOT_ON_VM.read_text().splitlines()
    return dict(line.split(": ", 1) for line in lines if line and not line.startswith("#"))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--show", metavar="PATTERN", help="only cases whose names contain this")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--backend", default="native")
    arguments = parser.parse_args()
    cases = node_cases()
    chosen = [name for name in cases if arguments.show is None or arguments.show in name]
    found, wrong = {}, {}
    for name in chosen:
        try:
            reason = reason_off_vm(cases[name], arguments.backend)
        except AssertionError as error:
            wrong[name] = _one_line(str(error))[:200]
            continue
        if reason:
            found[name] = reason
    for name, reason in (found if arguments.show is not None else {}).items():
        print(f"{name}: {reason}")
    for name, reason in wrong.items():
        print(f"WRONG {name}: {reason}")
    ops = Counter(reason.partition(" ")[0] for reason in found.values())
    print(
        f"{len(chosen) - len(found) - len(wrong)} of {len(chosen)} wholly on the VM; by op: {dict(ops.most_common())}"
    )
    if arguments.write and not wrong:
        head = f"# {len(cases) - len(found)} of ONNX's {len(cases)} node cases run wholly on the VM; the others:\n"
        NOT_ON_VM.write_text(head + "".join(f"{name}: {reason}\n" for name, reason in sorted(found.items())))


if __name__ == "__main__":
    main()

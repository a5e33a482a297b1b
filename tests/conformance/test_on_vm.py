"""Which of ONNX's node cases run wholly on the VM is known exactly, natively and in wasm."""

import pytest

from tests.backends import KERNELS
from tests.conformance.on_vm import listed, node_cases, off_vm


@pytest.mark.parametrize("backend", KERNELS)
def test_all_but_the_listed_ones_run_wholly_on_the_vm(backend):
    assert off_vm(backend) == listed(), "run `python -m tests.conformance.on_vm --write` and read the difference"


def test_nearly_all_do():
    assert len(node_cases()) - len(listed()) >= 1800

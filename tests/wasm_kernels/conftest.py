"""Fixtures over the builds of the kernels that this machine can run."""

from __future__ import annotations

import pytest

from webrnn.engine.kernels import loading as kernels

SPECS = kernels.available()


@pytest.fixture(params=SPECS)
def build(request: pytest.FixtureRequest) -> kernels.Kernels:
    """Each build in turn, with a fresh memory."""
    return kernels.load(request.param)

"""Fixtures over the builds of the kernels that this machine can run."""

from __future__ import annotations

import functools

import pytest

from webrnn.engine import kernels

SPECS = kernels.available()


@functools.cache
def loaded(spec: str) -> kernels.Kernels:
    return kernels.load(spec)


@pytest.fixture(params=SPECS)
def build(request: pytest.FixtureRequest) -> kernels.Kernels:
    """Each build in turn, with a fresh memory."""
    return kernels.load(request.param)

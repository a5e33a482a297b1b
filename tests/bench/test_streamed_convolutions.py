"""The figures of bench.streamed_convolutions."""

from __future__ import annotations

import pytest

from bench.streamed_convolutions import report


@pytest.mark.parametrize("backend", ["native", "wasm:relaxed"])
def test_a_line_has_times_and_memory(backend):
    name, *figures = [cell.strip() for cell in report(8, (1, 64), backend, 1).strip("|").split("|")]
    assert name == backend
    assert all(float(figure) > 0 for figure in figures)
    states, places = map(float, figures[3:])
    assert 1 <= states <= places <= 1.06

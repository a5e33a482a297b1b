"""Products of one row: how many panels are read at a time changes no bit."""

from __future__ import annotations

import numpy as np
import pytest

from wasm_kernels.table import PANEL, packed_size
from webrnn.engine.kernels.loading import available, load


@pytest.mark.parametrize("spec", available())
def test_one_panel_and_two_give_the_same_bits(spec: str) -> None:
    kernels, rng = load(spec), np.random.default_rng(0)
    for n in (*range(1, 2 * PANEL + 10), 4 * PANEL, 4 * PANEL + 31, 512):
        for k in (1, 7, 32):
            w, packed = kernels.buffer(rng.standard_normal((n, k))), kernels.empty(packed_size(n, k))
            x, bias, y = (
                kernels.buffer(rng.standard_normal(k)),
                kernels.buffer(rng.standard_normal(n)),
                kernels.empty(n),
            )
            kernels.pack_panels(w, packed, n, k, k, 1)
            results = []
            try:
                for count in (1, 2):
                    y.array[...] = np.nan
                    kernels.set_row_panels(count)
                    kernels.gemv(packed, x, bias, y, n, k)
                    results.append(y.array.copy())
            finally:
                kernels.set_row_panels(1 if spec.startswith("wasm") else 2)
            np.testing.assert_array_equal(*results)
            np.testing.assert_allclose(results[0], w.array @ x.array + bias.array, rtol=1e-4, atol=1e-4)

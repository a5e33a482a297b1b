"""Readers of damaged files raise webrnn's own errors. `python -m tests.build.damage` tries more of them."""

from __future__ import annotations

import pytest

from . import damage

FILES = damage.files()
SMALL = [name for name, (data, _) in FILES.items() if len(data) < 20_000]


@pytest.mark.parametrize("name", FILES)
def test_damaged_files(name: str) -> None:
    count = 200 if name in SMALL else 30
    verdicts = {damage.try_one(name, seed, FILES) for seed in range(count)}
    assert verdicts <= {"ModelError", "UnsupportedOp", "OptionError", "read"}
    assert "ModelError" in verdicts

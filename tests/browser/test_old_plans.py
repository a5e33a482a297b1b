"""Plans that were exported before still run in JavaScript, with the bits that they have in Python."""

from __future__ import annotations

import base64
import json
import subprocess
from pathlib import Path

import numpy as np
import pytest

from pyodide_pkg import core
from tests.plan.old import recorded
from tests.plan.test_old_plans import results
from webrnn.web.folders import write_host

SCRIPT = Path(__file__).with_name("old_plans.mjs")
CASES = recorded()


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict]:
    folder = tmp_path_factory.mktemp("old_plans")
    write_host(folder / "host")
    cases = [
        {
            "file": str(case.file),
            "carry": case.carry,
            "isStream": case.is_stream,
            "steps": [{name: _written(array) for name, array in feeds.items()} for feeds, _ in case.steps],
        }
        for case in CASES.values()
    ]
    (folder / "cases.json").write_text(json.dumps(cases))
    command = [core.node(), str(SCRIPT), f"{(folder / 'host').as_uri()}/", str(folder / "cases.json")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return dict(zip(CASES, json.loads(done.stdout), strict=True))


def _written(array: np.ndarray) -> dict[str, object]:
    data = base64.b64encode(np.ascontiguousarray(array).tobytes()).decode()
    return {"type": str(array.dtype), "shape": list(array.shape), "data": data}


@pytest.mark.parametrize("name", CASES)
def test_it_runs(found: dict[str, dict], name: str) -> None:
    backend = f"wasm:{found[name]['variant']}"
    for step, expected in zip(found[name]["rows"], results(name, backend), strict=True):
        assert [base64.b64decode(row) for row in step] == [np.ascontiguousarray(array).tobytes() for array in expected]


def test_what_was_stored_is_read(found: dict[str, dict]) -> None:
    assert {found[f"{version}/about"]["about"]["name"] for version in ("v2", "v3", "v5")} == {"né"}

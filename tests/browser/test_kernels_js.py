"""The JavaScript host of the kernels in Node."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from pyodide_pkg import core
from webrnn.engine import native

MEASURE = """
const base = process.argv[1];
const { measure } = await import(new URL("measure.js", base));
console.log(JSON.stringify((await measure(base)).rows));
"""


def node(*arguments: str) -> str:
    done = subprocess.run([core.node(), *arguments], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_kernels_js(demo: Path) -> None:
    script = Path(__file__).with_name("kernels.test.mjs")
    assert "# fail 0" in node("--test-reporter=tap", str(script), f"{demo.as_uri()}/")


@pytest.fixture(scope="module")
def rows(demo: Path) -> dict[str, dict[str, Any]]:
    rows = json.loads(node("--input-type=module", "--eval", MEASURE, "--", f"{demo.as_uri()}/"))
    return {row["variant"]: row for row in rows}


def test_all_variants_compute_the_gru(rows: dict[str, dict[str, Any]]) -> None:
    assert list(rows) == ["relaxed", "simd", "scalar"]
    assert all(row["ms"] > 0 for row in rows.values())
    assert all(against["difference"] < 1e-5 for row in rows.values() for against in row["against"])


@pytest.mark.parametrize(
    ("variant", "spec"), [("relaxed", "native:avx2"), ("simd", "native:sse2"), ("scalar", "native:sse2")]
)
def test_same_bits_as_native(rows: dict[str, dict[str, Any]], variant: str, spec: str) -> None:
    if spec not in native.available():
        pytest.skip(f"this processor cannot run {spec}")
    assert [a["identical"] for a in rows[variant]["against"] if a["spec"] == spec] == [True]

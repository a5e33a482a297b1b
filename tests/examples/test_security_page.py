"""Each promise of SECURITY.md names tests, and these exist."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ROWS = re.findall(r"^\| (.+?) \| (.+?) \| (.*`tests/.*) \|$", (ROOT / "SECURITY.md").read_text(), re.MULTILINE)


def test_there_are_promises():
    assert len(ROWS) >= 10


@pytest.mark.parametrize("promise", ROWS, ids=lambda row: row[0][:40])
def test_a_promise_names_tests_that_exist(promise):
    for test in re.findall(r"`(tests/[^`]+)`", promise[2]):
        file, _, name = test.partition("::")
        text = (ROOT / file).read_text()
        if name:
            assert f"def {name}(" in text or f'"{name}"' in text, test

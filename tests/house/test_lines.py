"""Each part keeps to its budget of lines. Whoever needs more says why in the commit that raises it."""

import pytest

from . import lines

COUNTS = lines.lines()

BUDGETS = {
    ("bench", "Python"): 2_930,
    ("pyodide_pkg", "Python"): 2_840,
    ("wasm_kernels", "C"): 8_700,
    ("wasm_kernels", "Python"): 3_610,
    ("web_demo", "JavaScript"): 13_360,
    ("web_demo", "Python"): 2_440,
    ("webrnn", "Python"): 510,
    ("webrnn/along_time", "Python"): 4_450,
    ("webrnn/audio", "Python"): 1_820,
    ("webrnn/bench", "Python"): 4_340,
    ("webrnn/build", "Python"): 4_150,
    ("webrnn/checks", "Python"): 2_150,
    ("webrnn/cli", "Python"): 2_420,
    ("webrnn/corpora", "Python"): 2_800,
    ("webrnn/demo", "Python"): 590,
    ("webrnn/engine", "Python"): 8_660,
    ("webrnn/formats", "Python"): 1_900,
    ("webrnn/gradients", "Python"): 3_300,
    ("webrnn/guesses", "Python"): 1_280,
    ("webrnn/ir", "Python"): 1_700,
    ("webrnn/losses", "Python"): 520,
    ("webrnn/models", "Python"): 200,
    ("webrnn/onnx", "Python"): 4_830,
    ("webrnn/ops", "Python"): 500,
    ("webrnn/passes", "Python"): 12_200,
    ("webrnn/plan", "Python"): 11_880,
    ("webrnn/profile", "Python"): 1_280,
    ("webrnn/quantize", "Python"): 900,
    ("webrnn/reference", "Python"): 4_800,
    ("webrnn/report", "Python"): 930,
    ("webrnn/shapes", "Python"): 1_850,
    ("webrnn/training", "Python"): 1_400,
    ("webrnn/web", "Python"): 330,
}
CORE_BUDGET = 44_050


@pytest.mark.parametrize(("part", "kind"), BUDGETS)
def test_a_part_keeps_to_its_budget(part: str, kind: str) -> None:
    assert 0 < COUNTS[part, kind] <= BUDGETS[part, kind], "`make lines` prints all of them"


def test_the_core_keeps_to_its_budget() -> None:
    assert lines.core(COUNTS) < CORE_BUDGET


def test_every_room_has_a_budget() -> None:
    assert {part for part, _ in COUNTS if part.startswith("webrnn")} == {
        part for part, _ in BUDGETS if part.startswith("webrnn")
    }

"""docs/optimizer.md lists the passes as they are. `python -m tests.passes.test_documentation` rewrites its table."""

import sys
from pathlib import Path

from webrnn.passes import ALL_PASSES

PAGE = Path(__file__).parents[2] / "docs" / "optimizer.md"
HEAD = "| pass | what it does |\n|---|---|\n"


def table() -> str:
    """The first sentence of each pass, and whether it keeps every bit."""
    lines = []
    for step in (each.load() for each in ALL_PASSES):
        text = (sys.modules[type(step).__module__].__doc__ or "").split("\n\n")[0]
        sentence = " ".join(text.split())
        lines.append(f"| `{step.name}`{' ±' if step.reorders_arithmetic else ''} | {sentence} |\n")
    return "".join(lines)


def test_the_table_of_passes_is_true():
    page = PAGE.read_text()
    listed = page[page.index(HEAD) + len(HEAD) :].split("\n\n")[0] + "\n"
    assert listed == table(), "run `python -m tests.passes.test_documentation`"


def main() -> None:
    page = PAGE.read_text()
    start = page.index(HEAD) + len(HEAD)
    end = page.index("\n\n", start)
    PAGE.write_text(page[:start] + table().rstrip("\n") + page[end:])


if __name__ == "__main__":
    main()

"""docs/optimizer.md lists the passes as they are. `python -m tests.passes.test_documentation` rewrites its tables."""

import sys
from pathlib import Path

from webrnn.passes import ALL_PASSES
from webrnn.passes.pipeline import FOR_STREAMS, Step

PAGE = Path(__file__).parents[2] / "docs" / "optimizer.md"
HEAD = "| pass | what it does |\n|---|---|\n"
STREAMS_HEAD = "| pass for streams | what it does |\n|---|---|\n"
TABLES: dict[str, list[Step]] = {
    HEAD: list(ALL_PASSES),
    STREAMS_HEAD: [step for step in FOR_STREAMS if step.name not in {each.name for each in ALL_PASSES}],
}


def table(steps: list[Step]) -> str:
    """The first sentence of each pass, and whether it keeps every bit."""
    lines = []
    for step in (each.load() for each in steps):
        text = (sys.modules[type(step).__module__].__doc__ or "").split("\n\n")[0]
        sentence = " ".join(text.split())
        lines.append(f"| `{step.name}`{' ±' if step.reorders_arithmetic else ''} | {sentence} |\n")
    return "".join(lines)


def test_the_tables_of_passes_are_true():
    page = PAGE.read_text()
    for head, steps in TABLES.items():
        listed = page[page.index(head) + len(head) :].split("\n\n")[0] + "\n"
        assert listed == table(steps), "run `python -m tests.passes.test_documentation`"


def main() -> None:
    page = PAGE.read_text()
    for head, steps in TABLES.items():
        start = page.index(head) + len(head)
        end = page.index("\n\n", start)
        page = page[:start] + table(steps).rstrip("\n") + page[end:]
    PAGE.write_text(page)


if __name__ == "__main__":
    main()

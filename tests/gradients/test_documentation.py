"""docs/gradients.md lists the ops that have a rule: `python -m tests.gradients.test_documentation` writes the list."""

from pathlib import Path

from webrnn.ops.rows import ROWS

PAGE = Path(__file__).parents[2] / "docs" / "gradients.md"
START, END = "<!-- rules -->\n", "<!-- end of rules -->"


def table() -> str:
    families: dict[str, list[str]] = {}
    for (_, op), row in ROWS.items():
        if row.gradient:
            families.setdefault(row.gradient, []).append(f"`{op}`")
    rows = [f"| `{family}.py` | {' '.join(sorted(found))} |" for family, found in sorted(families.items())]
    return "\n".join(["| rules in | ops |", "|---|---|", *rows, ""])


def test_the_page_lists_every_rule():
    assert table() == PAGE.read_text().split(START)[1].split(END)[0]


if __name__ == "__main__":
    before, rest = PAGE.read_text().split(START)
    PAGE.write_text(before + START + table() + END + rest.split(END)[1])

"""docs/profiling.md: its code runs, its table has all categories."""

import re
from pathlib import Path

from webrnn.profile.entry import CATEGORIES

PAGE = (Path(__file__).parents[2] / "docs" / "profiling.md").read_text()


def test_the_code_runs(capsys):
    (block,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    exec(compile(block, "profiling.md", "exec"), {})
    assert {line.split()[0] for line in capsys.readouterr().out.splitlines()} >= {"matrix", "cell"}


def test_all_categories_are_explained():
    assert tuple(re.findall(r"^\| ([a-z-]+) \| [^|]+ \|$", PAGE, re.MULTILINE)[1:]) == CATEGORIES

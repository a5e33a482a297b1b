"""The code in docs/sound.md: Python here, JavaScript in tests/browser/test_sound_js.py."""

import re
from pathlib import Path

from tests.models.fetch import CACHE, speech_path

PAGE = Path(__file__).parents[2] / "docs" / "sound.md"


def test_python(monkeypatch, capsys):
    speech_path()
    monkeypatch.setenv("WEBRNN_MODELS", str(CACHE))
    text = "".join(re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL))
    exec(compile(text, str(PAGE), "exec"), {})
    assert capsys.readouterr().out.splitlines() == re.findall(r"print\(.*\) +# (.*)", text)


def test_options_of_the_page_are_those_of_the_types():
    """Names in the first column of the tables of options."""
    types = "".join(file.read_text() for file in (PAGE.parents[1] / "web_demo" / "host").glob("*.d.ts"))
    rows = re.findall(r"^\| (`.+?) \|.*\|.*\|$", PAGE.read_text(), re.MULTILINE)
    names = [name for row in rows for name in re.findall(r"`(\w+)[`(]", row)]
    assert len(names) > 25
    assert not [name for name in names if not re.search(rf"\b{name}\b", types)]

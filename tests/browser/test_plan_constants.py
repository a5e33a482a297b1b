"""The constants of the JavaScript host are those of the tables."""

from web_demo.packaging.plan_constants import FILE, written


def test_they_are_up_to_date() -> None:
    source = FILE.read_text()
    assert written(source) == source, "run python -m web_demo.packaging.plan_constants"

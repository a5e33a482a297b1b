"""Rooms import each other only as docs/architecture.md says, and never in a circle."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path

import pytest

from .import_graph import PACKAGE, ROOT, Import, arrows, cycle, imports

PAGE = (ROOT / "docs" / "architecture.md").read_text()
ROW = re.compile(r"^\| `(\w+)` \| [^|]+ \|((?: `\w+`)*) \|$", re.MULTILINE)
ALLOWED = {room: re.findall(r"\w+", rooms) for room, rooms in ROW.findall(PAGE)}
ORDER = re.findall(r"`(\w+)`", PAGE.split("Inside `engine` each imports only those before it: ")[1].split("\n")[0])

CHOSEN_LATE = {
    "webrnn.engine.kernels": "load() imports the loader of the build that it is asked for, which derives from Kernels",
    "webrnn.report": "str(report) imports how a report is written",
}
"""Packages with a front that imports, in a function, what stands on it."""

IMPORTS = imports()
PACKAGES = sorted({one.source.rpartition(".")[0] for one in IMPORTS if one.source.count(".") > 1})


def forbidden(found: Iterable[Import], allowed: Mapping[str, Iterable[str]]) -> list[str]:
    """The imports that no arrow of the page allows."""
    return [
        f"{one}: no arrow {source} -> {target} in docs/architecture.md"
        for source, targets in arrows(found).items()
        for target, one in targets.items()
        if target not in allowed.get(source, ())
    ]


def test_rooms_import_what_the_page_allows() -> None:
    assert not forbidden(IMPORTS, ALLOWED)


def test_the_page_has_every_room_and_no_arrow_that_nobody_uses() -> None:
    used = arrows(IMPORTS)
    assert set(ALLOWED) == {file.stem for file in PACKAGE.iterdir() if _is_room(file)} | {"webrnn"}
    unused = {(room, other) for room, others in ALLOWED.items() for other in others} - {
        (room, other) for room, others in used.items() for other in others
    }
    assert not unused


def _is_room(file: Path) -> bool:
    return (file / "__init__.py").exists() or (file.suffix == ".py" and file.stem != "__init__")


def test_a_room_imports_rooms_above_it() -> None:
    rooms = list(ALLOWED)
    upward = [
        (room, other) for room, others in ALLOWED.items() for other in others if rooms.index(other) > rooms.index(room)
    ]
    assert not upward


def test_inside_the_engine() -> None:
    between = arrows(IMPORTS, "webrnn.engine")
    assert set(ORDER) == {file.stem for file in (PACKAGE / "engine").iterdir() if _is_room(file)}
    wrong = [
        str(one)
        for source, targets in between.items()
        for target, one in targets.items()
        if ORDER.index(target) > ORDER.index(source)
    ]
    assert not wrong


@pytest.mark.parametrize("package", PACKAGES)
def test_no_circle_inside_a_package(package: str) -> None:
    """Imports for types are left out: they are not there when the program runs."""
    circle = cycle(arrows((one for one in IMPORTS if one.when != "for types"), package))
    assert bool(circle) == (package in CHOSEN_LATE), circle


# ------------------------------------------------------------------------------------------- the tests of these tests


@pytest.mark.parametrize(
    ("line", "when"),
    [
        ("from webrnn.engine.session import InferenceSession", "at once"),
        ("import webrnn.engine.session", "at once"),
        ("from ..engine import session", "at once"),
        ("def late():\n    from ..engine.session import InferenceSession", "when called"),
        ("if TYPE_CHECKING:\n    from ..engine.session import InferenceSession", "for types"),
    ],
)
def test_a_forbidden_arrow_is_found(tmp_path: Path, line: str, when: str) -> None:
    for room in ("ir", "engine"):
        shutil.copytree(PACKAGE / room, tmp_path / "webrnn" / room)
    assert not forbidden(imports(tmp_path / "webrnn"), ALLOWED)
    with open(tmp_path / "webrnn" / "ir" / "dims.py", "a") as file:
        file.write(f"\n{line}\n")
    (message,) = forbidden(imports(tmp_path / "webrnn"), ALLOWED)
    assert re.fullmatch(
        rf"webrnn\.ir\.dims:\d+ imports webrnn\.engine\.session \({when}\): no arrow ir -> engine in .*", message
    )


def test_a_circle_is_found() -> None:
    assert cycle({"a": ["b"], "b": ["c"], "c": []}) == []
    assert cycle({"a": ["b"], "b": ["c"], "c": ["b"]}) == ["b", "c", "b"]

from __future__ import annotations

import io
import zipfile

import pytest

import webrnn
from webrnn.build.archives import Archive


def zipped(*entries: tuple[str, bytes], kind: int = zipfile.ZIP_STORED) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", kind) as archive:
        for name, data in entries:
            archive.writestr(name, data)
    return made.getvalue()


def test_entries() -> None:
    for kind in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        assert Archive(zipped(("a", b"x" * 99), kind=kind)).read("a") == b"x" * 99


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_what_is_wrong_is_said() -> None:
    with pytest.raises(webrnn.ModelError, match="twice"):
        Archive(zipped(("a", b"1"), ("a", b"2")))
    with pytest.raises(webrnn.ModelError, match="'b' is not in the zip file"):
        Archive(zipped(("a", b"1"))).read("b")
    with pytest.raises(webrnn.UnsupportedOp, match="'a' is compressed"):
        Archive(zipped(("a", b"1" * 50), kind=zipfile.ZIP_DEFLATED)).read("a", only_stored=True)
    with pytest.raises(webrnn.ModelError, match="damaged"):
        Archive(zipped(("a", b"hello")).replace(b"hello", b"hullo")).read("a")
    with pytest.raises(webrnn.ModelError, match="damaged"):
        Archive(b"PK nothing")

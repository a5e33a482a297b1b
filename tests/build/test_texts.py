from __future__ import annotations

import pytest

import webrnn
from webrnn.build.texts import DEEPEST, read_json


def test_values() -> None:
    assert read_json(b'{"a": [1, {"b": "]]}}"}], "\\"{": null}', "it") == {"a": [1, {"b": "]]}}"}], '"{': None}
    assert read_json(b"[" * DEEPEST + b"]" * DEEPEST, "it")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b"[" * 100_000, "it is not JSON: nested too deep"),
        (b'[[],"]]]]",' * 5_000, "nested too deep"),
        (b'{"a":' * 5_000, "nested too deep"),
        (b'{"a":1,"b":2,"a":3}', "'a' is there twice"),
        (b"{", "it is not JSON"),
        (b"\xff", "it is not JSON"),
        (b"", "it is not JSON"),
    ],
)
def test_what_is_wrong_is_said(text: bytes, words: str) -> None:
    with pytest.raises(webrnn.ModelError, match=words):
        read_json(text, "it")

"""Tests read what commands print line by line; that lines fit a terminal is tested in test_output.py."""

import pytest


@pytest.fixture(autouse=True)
def wide_terminal(monkeypatch):
    monkeypatch.setenv("COLUMNS", "400")

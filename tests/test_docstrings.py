"""The examples in docstrings are true."""

import doctest
import importlib
import pkgutil

import pytest

import webrnn

MODULES = [name for _, name, _ in pkgutil.walk_packages(webrnn.__path__, "webrnn.") if not name.endswith("__main__")]


@pytest.mark.parametrize("name", MODULES)
def test_examples(name):
    result = doctest.testmod(importlib.import_module(name))
    assert result.failed == 0, "see the output above"

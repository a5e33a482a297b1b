"""What the rows of ops say, and what is registered for them."""

from __future__ import annotations

import importlib
import pkgutil
import subprocess
import sys

import pytest
from onnx import helper

import webrnn.along_time
import webrnn.checks
import webrnn.plan.lowerings
import webrnn.reference
import webrnn.shapes.rules
from tests.onnx.models import floats, model
from webrnn.along_time import view
from webrnn.checks.registry import check
from webrnn.ops.rows import ROWS
from webrnn.ops.table import TABLE
from webrnn.plan import lowering
from webrnn.reference import registry
from webrnn.report import flops
from webrnn.shapes.rules.registry import rule

REGISTRIES = {
    "numpy": (registry.FUNCTIONS, webrnn.reference),
    "shape": (rule, webrnn.shapes.rules),
    "check": (check, webrnn.checks),
    "plan": (lowering.rule, webrnn.plan.lowerings),
    "time": (view._rules, webrnn.along_time),
}


@pytest.mark.parametrize("column", REGISTRIES)
def test_rows_and_functions_agree(column):
    functions, package = REGISTRIES[column]
    for module in pkgutil.iter_modules(package.__path__):
        importlib.import_module(f"{package.__name__}.{module.name}")
    assert functions.column == column
    assert functions.functions.keys() == set(functions.names())
    for key, function in functions.functions.items():
        assert function.__module__ == functions.module_of(*key)


@pytest.mark.parametrize("column", REGISTRIES)
def test_a_function_is_refused_in_a_module_that_the_table_does_not_name(column):
    functions, _ = REGISTRIES[column]

    def add(*arguments):
        return arguments

    with pytest.raises(
        ValueError, match=rf"the table of ops does not say that tests\.ops\.test_table has the {column} of :Add"
    ):
        functions("Add")(add)
    add.__module__ = functions.module_of("", "Add")
    functions.get("", "Add")
    with pytest.raises(ValueError, match="two functions"):
        functions("Add")(add)


def test_each_op_has_one_row_in_columns_that_are_aligned():
    lines = [line for line in TABLE.splitlines()[2:] if line and not line.startswith("[")]
    assert len(lines) == len(ROWS)
    starts = [TABLE.splitlines()[1].index(name) for name in ("shape", "check", "plan", "time", "flops", "operands")]
    for line in lines:
        if not line.startswith("com.microsoft:"):
            assert all(line[start - 1] == " " != line[start] for start in starts), line


def test_traits_are_those_that_the_table_explains():
    import webrnn.ops.table

    explained = webrnn.ops.table.__doc__.partition("Its traits")[2]
    known = {line.split()[0] for line in explained.splitlines() if line.startswith("    ") and line[4] != " "}
    assert set().union(*(row.traits for row in ROWS.values())) <= known | {"weights"}


def test_estimates_are_those_that_rows_name():
    named = {row.flops for row in ROWS.values() if row.flops and not row.flops[0].isdigit()}
    assert named == set(flops._ESTIMATES)


def test_opening_a_model_imports_the_modules_of_its_ops_only():
    proto = model([helper.make_node("Softmax", ["x"], ["y"])], [floats("x", ["n", 3])], [floats("y", None)])
    code = "import sys, webrnn; webrnn.InferenceSession(sys.stdin.buffer.read(), backend='native'); print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], input=proto.SerializeToString(), capture_output=True, check=True
    )
    loaded = set(done.stdout.decode().split())
    for functions, _ in REGISTRIES.values():
        families = {functions.module_of(*key) for key in functions.names()}
        expected = set() if functions.column == "time" else {functions.module_of("", "Softmax")}
        assert families & loaded == expected

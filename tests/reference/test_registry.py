from __future__ import annotations

import inspect
import subprocess
import sys

import numpy as np
import pytest
from onnx import defs, helper

from webrnn import reference
from webrnn.checks import arrays
from webrnn.errors import ModelError, UnsupportedOp
from webrnn.reference import registry

SCHEMAS = {
    (schema.domain, schema.name): schema
    for schema in sorted(defs.get_all_schemas_with_history(), key=lambda schema: schema.since_version)
    if not schema.deprecated
}
STANDARD = [key for key in reference.registered() if key in SCHEMAS]


def test_every_standard_op_is_one_that_onnx_knows():
    assert [key for key in reference.registered() if key not in SCHEMAS] == [("com.microsoft", "DynamicQuantizeLSTM")]


@pytest.mark.parametrize(("domain", "op_type"), STANDARD)
def test_signatures_agree_with_the_newest_schema(domain, op_type):
    function, schema = reference.lookup(domain, op_type), SCHEMAS[domain, op_type]
    defaults = function.__kwdefaults__ or {}
    attributes = {name: value for name, value in schema.attributes.items() if name != "sparse_value"}
    assert registry._attributes[function] - {"n_outputs"} == attributes.keys()
    for name, attribute in attributes.items():
        assert attribute.required == (name not in defaults)
        if attribute.default_value.type:
            value = helper.get_attribute_value(attribute.default_value)
            if isinstance(value, bytes):
                assert defaults[name] == value.decode()
            else:
                np.testing.assert_allclose(defaults[name], value, rtol=1e-6)


@pytest.mark.parametrize(("domain", "op_type"), STANDARD)
def test_numbers_of_inputs_agree_with_the_newest_schema(domain, op_type):
    function, schema = reference.lookup(domain, op_type), SCHEMAS[domain, op_type]
    parameters = inspect.signature(function).parameters.values()
    positional = [p for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD]
    if any(p.kind is p.VAR_POSITIONAL for p in parameters):
        assert schema.max_input > 1000
    else:
        assert len(positional) == schema.max_input
        required = sum(p.default is p.empty for p in positional)
        takes_an_empty_optional = op_type == "Identity"
        assert required == schema.min_input or takes_an_empty_optional


def test_unknown_ops_and_attributes_are_named():
    with pytest.raises(UnsupportedOp, match="x:Nothing"):
        arrays.call("Nothing", "x", [], {})
    with pytest.raises(UnsupportedOp, match="Relu, attribute 'slope'"):
        arrays.call("Relu", "", [np.float32([1])], {"slope": 1.0})
    with pytest.raises(UnsupportedOp, match="n_outputs"):
        arrays.call("Split", "", [np.float32([1])], {"n_outputs": 1})


def test_wrong_numbers_of_inputs_and_outputs():
    x = np.float32([1])
    for inputs in ([], [x], [x, x, x], [x, None]):
        with pytest.raises(ModelError, match="Add"):
            arrays.call("Add", "", inputs, {})
    with pytest.raises(ModelError, match="2 outputs"):
        arrays.call("Relu", "", [x], {}, 2)
    with pytest.raises(ModelError, match="'to'"):
        arrays.call("Cast", "", [x], {})


def test_the_long_name_of_the_default_domain():
    assert reference.lookup("ai.onnx", "Add") is reference.lookup("", "Add")


def test_importing_webrnn_does_not_load_the_op_families():
    program = "import sys, webrnn; print([m for m in sys.modules if m.startswith('webrnn.reference.conv')])"
    output = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert output.strip() == "[]"


def test_complex_numbers_are_only_moved():
    z = np.array([1 + 2j], np.complex64)
    assert arrays.call("Identity", "", [z], {}, 1)[0] is not None
    with pytest.raises(UnsupportedOp, match="complex64"):
        arrays.call("ReduceSum", "", [z], {}, 1)


def test_a_lookup_imports_the_module_of_its_op_and_no_other():
    code = "import sys; from webrnn import reference; reference.lookup('', 'TopK'); print(*sys.modules)"
    modules = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    families = {registry.FUNCTIONS.module_of(*key) for key in reference.registered()}
    assert families & set(modules) == {"webrnn.reference.sort"}

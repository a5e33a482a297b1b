"""Calls that users of onnxruntime write, on both: the same outcome, or a difference that is listed with its reason."""

import warnings

import numpy as np
import onnxruntime
import pytest
from onnx.parser import parse_model

import webrnn

onnxruntime.set_default_logger_severity(4)

TEXT = """<ir_version: 8, opset_import: ["": 17], producer_name: "maker", producer_version: "1", domain: "d",
    model_version: 3, doc_string: "about">
g (float[n, 3] x, float[n] z, int64 k) => (float[n, 3] y, float s, int64 kk)
{ y = Add(x, x) t = ReduceSum<keepdims = 0>(z) s = Identity(t) kk = Identity(k) }"""
X, Z, K = np.ones((2, 3), np.float32), np.ones(2, np.float32), np.array(1)
FEEDS = {"x": X, "z": Z, "k": K}


def proto():
    made = parse_model(TEXT)
    made.metadata_props.add(key="a", value="b")
    return made.SerializeToString()


def with_feed(name, feed):
    return lambda ort, session: session.run(None, {**FEEDS, name: feed})


def ended(ort):
    options = ort.RunOptions()
    options.terminate = True
    return options


CALLS = {
    "all by None": lambda ort, session: session.run(None, FEEDS),
    "all by no names": lambda ort, session: session.run([], FEEDS),
    "one": lambda ort, session: session.run(["s"], FEEDS),
    "one twice": lambda ort, session: session.run(["y", "y"], FEEDS),
    "a tuple of names": lambda ort, session: session.run(("kk", "y"), FEEDS),
    "a name alone": lambda ort, session: session.run("y", FEEDS),
    "no such output": lambda ort, session: session.run(["q"], FEEDS),
    "no such input": with_feed("q", X),
    "a missing input": lambda ort, session: session.run(None, {"x": X}),
    "run options": lambda ort, session: session.run(None, FEEDS, ort.RunOptions()),
    "keywords": lambda ort, session: session.run(output_names=None, input_feed=FEEDS, run_options=None),
    "lists": lambda ort, session: session.run(None, {"x": [[1.0, 2.0, 3.0]], "z": [1.0], "k": K}),
    "lists of integers for floats": with_feed("x", [[1, 2, 3], [4, 5, 6]]),
    "lists of numpy's numbers": with_feed("x", [[np.float64(1)] * 3, [np.float64(2)] * 3]),
    "lists of arrays of doubles": with_feed("x", [np.ones(3), np.zeros(3)]),
    "a list of words": with_feed("x", [["a", "b", "c"]]),
    "run options that are none": lambda ort, session: session.run(None, FEEDS, "x"),
    "run options that end it": lambda ort, session: session.run(None, FEEDS, ended(ort)),
    "how an input is printed": lambda ort, session: [str(each) for each in session.get_inputs()],
    "no profile": lambda ort, session: [session.end_profiling()],
    "a list that is ragged": with_feed("x", [[1, 2, 3], [4]]),
    "double for float": with_feed("x", X.astype(np.float64)),
    "int32 for int64": with_feed("k", np.array(1, np.int32)),
    "other order of bytes": with_feed("x", X.astype(">f4")),
    "not contiguous": with_feed("x", np.ones((3, 2), np.float32).T),
    "other rank": with_feed("x", np.ones(3, np.float32)),
    "other size": with_feed("x", np.ones((2, 4), np.float32)),
    "two sizes of one name": with_feed("z", np.ones(5, np.float32)),
    "empty": lambda ort, session: session.run(
        None, {"x": np.ones((0, 3), np.float32), "z": np.ones(0, np.float32), "k": K}
    ),
    "None": with_feed("x", None),
    "a number": with_feed("k", 1),
    "numpy's number": with_feed("k", np.int64(1)),
    "a float for an integer": with_feed("k", 1.5),
    "one element for a scalar": with_feed("k", np.array([1])),
    "feeds that are no dict": lambda ort, session: session.run(None, [X]),
    "inputs": lambda ort, session: [(each.name, each.shape, each.type) for each in session.get_inputs()],
    "outputs": lambda ort, session: [(each.name, each.shape, each.type) for each in session.get_outputs()],
    "overridable": lambda ort, session: session.get_overridable_initializers(),
    "providers": lambda ort, session: session.get_providers(),
    "options of providers": lambda ort, session: session.get_provider_options(),
    "other providers": lambda ort, session: session.set_providers(["CPUExecutionProvider"]),
    "options": lambda ort, session: session.get_session_options().intra_op_num_threads,
    "metadata": lambda ort, session: [
        getattr(session.get_modelmeta(), name)
        for name in (
            "producer_name", "graph_name", "domain", "description", "graph_description", "version",
            "custom_metadata_map",
        )
    ],
    "values in wrappers": lambda ort, session: [
        value.numpy()
        for value in session.run_with_ort_values(
            ["y"], {name: ort.OrtValue.ortvalue_from_numpy(feed) for name, feed in FEEDS.items()}
        )
    ],
    "what a wrapper holds": lambda ort, session: [
        (value.data_type(), value.element_type(), value.shape())
        for value in (
            ort.OrtValue.ortvalue_from_numpy(K), ort.OrtValue.ortvalue_from_shape_and_type([1, 2], np.float32)
        )
    ],
    "io_binding": lambda ort, session: [session.io_binding()][1:],
}  # fmt: skip
"""Each takes the module and a session."""

DIFFERENCES = {
    "other order of bytes": "it is converted; onnxruntime reads the bytes as if they were in its own order",
    "a number": "a number of Python's is an array without axes here; onnxruntime refuses it",
    "numpy's number": "the same",
    "one element for a scalar": "it is taken as a scalar; in onnxruntime the axis goes through the model",
    "io_binding": "there is one memory; the error names what to use",
}


def outcome(call, ort, session):
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = call(ort, session)
    except Exception as error:
        return "raises", error
    return "gives", found


@pytest.mark.parametrize("name", CALLS)
def test_a_call_on_both(name):
    theirs = outcome(CALLS[name], onnxruntime, onnxruntime.InferenceSession(proto()))
    ours = outcome(CALLS[name], webrnn, webrnn.InferenceSession(proto()))
    if name in DIFFERENCES:
        assert str(theirs) != str(ours)
        return
    assert ours[0] == theirs[0], (ours, theirs)
    if ours[0] == "raises":
        assert isinstance(ours[1], webrnn.Error | TypeError), ours
        return
    if ours[1] is None or isinstance(ours[1], int):
        assert ours[1] == theirs[1]
        return
    for mine, wanted in zip(ours[1], theirs[1], strict=True):
        if isinstance(wanted, np.ndarray):
            assert (mine.dtype, mine.shape) == (wanted.dtype, wanted.shape)
            np.testing.assert_array_equal(mine, wanted)
        else:
            assert mine == wanted


def options_of(ort):
    options = ort.SessionOptions()
    options.intra_op_num_threads = 2
    options.inter_op_num_threads = 1
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.execution_mode = ort.ExecutionMode.ORT_SEQUENTIAL
    options.log_severity_level = 3
    options.enable_mem_pattern = 0
    options.inter_op_num_threads = np.int64(1)
    return options


OPENINGS = {
    "providers": lambda ort: ort.InferenceSession(proto(), providers=["CPUExecutionProvider"]),
    "options second": lambda ort: ort.InferenceSession(proto(), options_of(ort)),
    "options, then providers": lambda ort: ort.InferenceSession(proto(), options_of(ort), ["CPUExecutionProvider"]),
    "None second": lambda ort: ort.InferenceSession(proto(), None),
    "keywords": lambda ort: ort.InferenceSession(
        proto(), sess_options=options_of(ort), providers=[("CPUExecutionProvider", {})], provider_options=None
    ),
    "the first by keyword": lambda ort: ort.InferenceSession(path_or_bytes=proto()),
    "a provider alone": lambda ort: ort.InferenceSession(proto(), providers="CPUExecutionProvider"),
    "fallback and optimizers": lambda ort: ort.InferenceSession(
        proto(), enable_fallback=False, disabled_optimizers=["ConstantFolding"]
    ),
    "available providers": lambda ort: ort.InferenceSession(proto(), providers=["CPUExecutionProvider"]),
    "bytes that are no model": lambda ort: ort.InferenceSession(b"abc"),
    "no such file": lambda ort: ort.InferenceSession("no_such_file.onnx"),
}


@pytest.mark.parametrize("name", OPENINGS)
def test_opening_on_both(name):
    kinds = []
    for ort in (onnxruntime, webrnn):
        kind, found = outcome(lambda ort, _: OPENINGS[name](ort), ort, None)
        kinds.append(kind)
        if kind == "gives":
            np.testing.assert_array_equal(found.run(["y"], FEEDS)[0], 2 * X)
    assert kinds[0] == kinds[1]


def test_options_have_effects():
    session = webrnn.InferenceSession(proto(), options_of(webrnn))
    assert session.threads == (2 if session.backend.startswith("native") else 1)
    assert session._disable == ("all",)
    assert session.get_session_options().log_severity_level == 3
    theirs = webrnn.InferenceSession(proto(), options_of(onnxruntime))
    assert theirs._disable == ("all",)


def test_attributes_are_those_of_onnxruntime():
    theirs, ours = onnxruntime.SessionOptions(), webrnn.SessionOptions()
    for name in webrnn.SessionOptions._DEFAULTS:
        assert (
            int(getattr(ours, name)) == int(getattr(theirs, name))
            if not isinstance(getattr(ours, name), str)
            else (getattr(ours, name) == getattr(theirs, name))
        )
    with pytest.raises(AttributeError, match="nothing"):
        ours.nothing = 1
    with pytest.raises(TypeError, match="graph_optimization_level"):
        ours.graph_optimization_level = 99
    for name in webrnn.RunOptions._DEFAULTS:
        assert getattr(webrnn.RunOptions(), name) == getattr(onnxruntime.RunOptions(), name)
    with pytest.raises(webrnn.OptionError, match="custom ops"):
        ours.register_custom_ops_library("x.so")


def test_what_has_no_effect_is_said_once():
    options = webrnn.SessionOptions()
    with pytest.warns(UserWarning, match=r"webrnn profile"):
        options.enable_profiling = True
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        webrnn.SessionOptions().enable_profiling = True
    with pytest.warns(UserWarning, match="webrnn has no CUDAExecutionProvider"):
        session = webrnn.InferenceSession(proto(), providers=["CUDAExecutionProvider", "CPUExecutionProvider"])
    assert session.get_providers() == ["CPUExecutionProvider"]
    assert webrnn.get_available_providers() == ["CPUExecutionProvider"]
    assert webrnn.get_device() == onnxruntime.get_device()


@pytest.mark.parametrize("providers", [3, [3]])
def test_providers_that_are_no_list_of_names(providers):
    with pytest.raises(webrnn.OptionError, match="provider"):
        webrnn.InferenceSession(proto(), providers=providers)


@pytest.mark.parametrize("backend", ["native", "numpy"])
def test_two_sizes_of_one_name_are_a_warning(backend):
    session = webrnn.InferenceSession(proto(), backend=backend)
    for _ in range(2):
        with pytest.warns(UserWarning, match=r"axis 0 is 5, not 2"):
            y, s, _ = session.run(None, {**FEEDS, "z": np.ones(5, np.float32)})
        assert y.shape == (2, 3)
        assert s == 5
    text = '<ir_version: 8, opset_import: ["": 17]> g (float[n] x, float[n] z) => (float[n] y) { y = Add(x, z) }'
    strict = webrnn.InferenceSession(parse_model(text).SerializeToString(), backend=backend)
    with pytest.raises(webrnn.ShapeError, match="axis 0 is 3, not 2"):
        strict.run(None, {"x": np.ones(2, np.float32), "z": np.ones(3, np.float32)})


def test_shapes_of_outputs_are_inferred():
    made = parse_model(
        '<ir_version: 8, opset_import: ["": 17]> g (float[n, 3] x) => (float[n, 3] y, float s) '
        "{ y = Relu(x) t = Transpose(x) s = Concat<axis = 1>(t, t) }"
    )
    for output in made.graph.output:
        output.type.tensor_type.ClearField("shape")
    ours, theirs = (ort.InferenceSession(made.SerializeToString()) for ort in (webrnn, onnxruntime))
    assert [each.shape for each in ours.get_outputs()] == [["n", 3], [3, "2*n"]]
    assert theirs.get_outputs()[0].shape == ["n", 3]


def test_shapes_of_outputs_are_shown_as_onnxruntime_shows_them():
    text = """<ir_version: 8, opset_import: ["": 17]> g (float[n, t, 3] x, seq(float[a]) s)
    => (float[p, q, r] named, float[a, b] unnamed) <float[3, 2] w = {0, 0, 0, 0, 0, 0}>
    { named = MatMul(x, w) unnamed = ReduceMax<axes = [2], keepdims = 0>(x) }"""
    made = parse_model(text)
    for value, axes in ((made.graph.input[0], (0,)), (made.graph.output[1], (0, 1))):
        for axis in axes:
            value.type.tensor_type.shape.dim[axis].ClearField("dim_param")
    ours, theirs = (ort.InferenceSession(made.SerializeToString()) for ort in (webrnn, onnxruntime))
    found, wanted = (
        [each.shape for each in (*session.get_inputs(), *session.get_outputs())] for session in (ours, theirs)
    )
    assert found == wanted


def test_lists_hold_numbers_of_the_declared_type_or_are_refused():
    session = webrnn.InferenceSession(proto())
    for feed in ([1.0], [True], [np.int32(1)], np.array(1).tolist()):
        assert session.run(["kk"], {**FEEDS, "k": feed})[0] == 1
    with pytest.raises(webrnn.ShapeError, match="numbers that int64 does not have"):
        session.run(None, {**FEEDS, "k": [1.5]})


def test_an_input_with_a_default():
    made = parse_model(
        '<ir_version: 8, opset_import: ["": 17]> g (float[2] x, float[2] w) => (float[2] y) '
        "<float[2] w = {1, 2}> { y = Add(x, w) }"
    )
    ours, theirs = (ort.InferenceSession(made.SerializeToString()) for ort in (webrnn, onnxruntime))
    found, wanted = (
        [(each.name, each.shape, each.type) for each in session.get_overridable_initializers()]
        for session in (ours, theirs)
    )
    assert found == wanted
    with pytest.raises(webrnn.ShapeError, match=r"fixed=\{'w': ...\}"):
        ours.run(None, {"x": np.ones(2, np.float32), "w": np.ones(2, np.float32)})

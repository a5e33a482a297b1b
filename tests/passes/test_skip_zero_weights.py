"""Mel spectra whose filter banks read a part of the bins: fewer are made, and no bit changes, whatever is fed."""

import numpy as np
import pytest

import webrnn
from tests.backends import KERNELS, UNFUSED
from tests.passes.differential import apply, floats, ops, reasons
from webrnn.ir import DType, GraphBuilder, Symbol

NAME = "skip_zero_weights"
BINS, KERNEL, HOP, BANDS = 33, 64, 16, 5
FIRST, LAST = 3, 18
"""The bins that the filter bank reads."""


def bank(first=FIRST, last=LAST):
    weights = np.zeros((BINS, BANDS), np.float32)
    weights[first:last] = np.abs(floats(last - first, BANDS, seed=5))
    return weights


def filters(seed, zeros=7, bins=BINS):
    """Windows that are shorter than the transform, as those of 400 samples for a transform of 512."""
    weights = floats(bins, 1, KERNEL, seed=seed)
    weights[..., :zeros] = weights[..., KERNEL - zeros + 1 :] = 0
    return weights


def squares(b, real, imaginary):
    return b.op("Add", b.op("Mul", real, real), b.op("Mul", imaginary, imaginary))


def magnitudes(b, real, imaginary):
    small = b.constant(np.float32(1e-9))
    return b.op("Sqrt", b.op("Add", squares(b, real, imaginary), small))


def absolutes(b, real, imaginary):
    return b.op("Add", b.op("Abs", real), b.op("Abs", imaginary))


def spectrogram(
    build=squares, weights=None, length=240, layout="Transpose", also=False, bias=False, zeros=7, **attributes
):
    """x [batch, 1, samples] -> bands [batch, frames, 5]"""
    b = GraphBuilder("mel")
    x = b.input("x", DType.FLOAT, (Symbol("batch"), 1, length))
    extra = [b.constant(floats(BINS, seed=4))] if bias else []
    attributes = {"strides": [HOP], **attributes}
    parts = [b.op("Conv", x, b.constant(filters(seed, zeros)), *extra, **attributes) for seed in (1, 2)]
    if layout == "Unsqueeze":
        parts = [b.op("Unsqueeze", part, b.ints(1)) for part in parts]
    if layout == "Reshape":
        frames = (length - KERNEL) // HOP + 1
        parts = [b.op("Reshape", part, b.ints(-1, 1, BINS, frames)) for part in parts]
    rank = 3 if layout == "Transpose" else 4
    parts = [b.op("Transpose", part, perm=[*range(rank - 2), rank - 1, rank - 2]) for part in parts]
    made = build(b, *parts)
    b.graph.outputs = [b.op("MatMul", made, b.constant(bank() if weights is None else weights), output=b.value("y"))]
    b.graph.outputs += [made] if also else []
    return b.graph


def fed(kind, length=240):
    x = floats(2, 1, length, seed=9)
    match kind:
        case "nan":
            x[0, 0, 100] = np.nan
        case "infinity":
            x[1, 0, 100] = -np.inf
        case "first":
            x[0, 0, 0] = np.inf  # where all filters of the first window are zero
        case "huge":
            x[1] *= np.float32(1e25)
        case "loud":
            x[0] *= np.float32(3e17)
        case "tiny":
            x *= np.float32(1e-30)
    return x


@pytest.mark.parametrize("backend", [*KERNELS, UNFUSED])
@pytest.mark.parametrize("kind", ["plain", "nan", "infinity", "first", "huge", "loud", "tiny"])
@pytest.mark.parametrize("build", [squares, magnitudes, absolutes], ids=lambda build: build.__name__)
def test_no_bit_changes(build, kind, backend):
    graph, x = spectrogram(build), fed(kind)
    (wanted,) = webrnn.InferenceSession(graph.copy(), backend=backend, disable=[NAME]).run(None, {"x": x})
    session = webrnn.InferenceSession(graph, backend=backend)
    (found,) = session.run(None, {"x": x})
    assert ops(session.graph)["If"] == 1
    np.testing.assert_array_equal(found, wanted)
    assert np.array_equal(np.signbit(found)[~np.isnan(found)], np.signbit(wanted)[~np.isnan(wanted)])
    is_bad = kind in ("nan", "infinity", "first") or (kind == "huge" and build is not absolutes)
    assert np.isnan(found).any() == is_bad


@pytest.mark.parametrize("backend", [*KERNELS, UNFUSED])
def test_no_signal_at_all(backend):
    (found,) = webrnn.InferenceSession(spectrogram(), backend=backend).run(None, {"x": fed("plain")[:0]})
    assert found.shape == (0, 12, BANDS)


@pytest.mark.parametrize(
    ("layout", "length"),
    [
        ("Transpose", 240),
        ("Unsqueeze", 240),
        ("Reshape", 240),
        *((each, Symbol("n")) for each in ("Transpose", "Unsqueeze")),
    ],
)
@pytest.mark.parametrize("bias", [False, True])
def test_layouts_and_sizes(layout, length, bias):
    graph, x = spectrogram(length=length, layout=layout, bias=bias), fed("plain")
    (wanted,) = webrnn.InferenceSession(graph.copy(), disable=[NAME]).run(None, {"x": x})
    session = webrnn.InferenceSession(graph)
    assert ops(session.graph)["If"] == 1
    assert session.run(None, {"x": x})[0].tobytes() == wanted.tobytes()


def shapes(graph, op):
    return [graph.constants[node.inputs[1]].shape for node in graph.nodes if node.op == op]


def test_filters_that_are_not_read_are_not_made():
    graph = spectrogram()
    apply(graph, NAME)
    assert shapes(graph, "Conv") == [(LAST - FIRST, 1, KERNEL - 13)] * 2
    assert shapes(graph, "MatMul") == [(LAST - FIRST, BANDS)]


@pytest.mark.parametrize("change", [{"length": Symbol("samples")}, {"pads": [3, 3]}, {"dilations": [2]}, {"zeros": 1}])
def test_windows_are_cut_only_where_the_signal_can_be(change):
    graph = spectrogram(**change)
    apply(graph, NAME)
    kernel = KERNEL - (1 if change.get("zeros") == 1 else 0)
    assert shapes(graph, "Conv") == [(LAST - FIRST, 1, kernel)] * 2


def test_it_settles():
    graph = spectrogram()
    assert apply(graph, NAME).rewrites[NAME] == 1


@pytest.mark.parametrize(
    ("graph", "reason"),
    [
        (spectrogram(weights=bank(0, 30)), "it reads most of the spectrum, or the spectrum is small"),
        (spectrogram(also=True), "something else reads the spectrum"),
    ],
    ids=["most", "read twice"],
)
def test_declines(graph, reason):
    outcome = apply(graph, NAME)
    assert reasons(outcome, NAME) == {reason}
    assert ops(graph)["If"] == 0


def products(b, real, imaginary):
    return b.op("Mul", real, imaginary)


def differences(b, real, imaginary):
    return b.op("Sub", b.op("Mul", real, real), b.op("Mul", imaginary, imaginary))


@pytest.mark.parametrize(
    "graph",
    [
        spectrogram(products),
        spectrogram(differences),
        spectrogram(weights=-bank()),
        spectrogram(weights=bank(0, BINS)),
        spectrogram(weights=0 * bank()),
        spectrogram(
            auto_pad="SAME_UPPER", strides=[1], group=1, weights=bank().astype(np.float32) * np.float32(np.nan)
        ),
    ],
    ids=["products", "differences", "negative", "all read", "none read", "NaN"],
)
def test_leaves_what_may_be_negative_and_banks_without_zeros(graph):
    apply(graph, NAME)
    assert ops(graph)["If"] == 0


def test_signals_that_may_be_too_large_for_their_filters():
    graph = spectrogram()
    for value, array in graph.constants.items():
        if array.ndim == 3:
            graph.constants[value] = array * np.float32(1e15)
    assert reasons(apply(graph, NAME), NAME) == {"its spectrum may be too large"}

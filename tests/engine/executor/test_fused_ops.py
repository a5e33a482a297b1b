import numpy as np
import pytest

from tests.passes.differential import floats
from wasm_kernels import naive, table
from webrnn.engine.executor.fused_ops import FUSED_OPS
from webrnn.errors import ModelError, ShapeError
from webrnn.ir import WEBRNN, DType, Graph, Node, Value
from webrnn.ir.activations import ACTIVATIONS
from webrnn.ir.check import check
from webrnn.ir.fused import CELLS

ROWS, H = 3, 4


def test_activations_are_those_of_the_kernels():
    assert ACTIVATIONS == table.ACTIVATIONS


def cell_attrs(op, names, clip=np.inf):
    numbers = [number for _ in names for number in (0.7, 0.2)]
    attrs = {"activations": tuple(names), "params": (clip, *numbers)}
    return {**attrs, "couple": 0} if op == "LstmCell" else attrs


def acts_of(names):
    return sum(ACTIVATIONS.index(name) << 8 * place for place, name in enumerate(names))


@pytest.mark.parametrize("clip", [np.inf, 0.6])
@pytest.mark.parametrize("name", ACTIVATIONS)
@pytest.mark.parametrize("op", CELLS)
def test_cells_agree_with_the_naive_kernels(op, name, clip):
    form = CELLS[op]
    names = (name, "tanh", name)[: form.activations]
    widths = {"xw": form.gates, "hw": {"GruReset": 2}.get(op, form.gates), "h": 1, "c": 1, "hn": 1, "z": 1}
    kernel = {"RnnCell": "rnn", "GruCell": "gru", "LstmCell": "lstm"}.get(op)
    kernel = f"{kernel}_cell" if kernel else {"GruReset": "gru_reset", "GruUpdate": "gru_update"}[op]
    wanted = [part.split("*")[1].strip() for part in table.SIGNATURES[kernel].split(",") if "const f32 *" in part]
    arrays = {key: floats(ROWS, widths[key] * H, seed=index) for index, key in enumerate(wanted) if key in widths}
    attrs = cell_attrs(op, names, clip)
    results = FUSED_OPS[op](list(arrays.values()), attrs)
    extra = {"peephole": None, "couple": 0} if op == "LstmCell" else {}
    naive_arguments = {key: array.ravel() for key, array in arrays.items()}
    expected = getattr(naive, kernel)(
        **naive_arguments, **extra, rows=ROWS, hidden=H, acts=acts_of(names), params=np.float32(attrs["params"])
    )
    for result, want in zip(results, expected if isinstance(expected, tuple) else [expected], strict=True):
        assert result.shape == (ROWS, H)
        np.testing.assert_allclose(result.ravel(), want, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("couple", [0, 1])
def test_peepholes(couple):
    arrays = [floats(ROWS, 4 * H), floats(ROWS, 4 * H, seed=1), floats(ROWS, H, seed=2), floats(3 * H, seed=3)]
    attrs = {**cell_attrs("LstmCell", ("sigmoid", "tanh", "tanh")), "couple": couple}
    results = FUSED_OPS["LstmCell"](arrays, attrs)
    flat = [array.ravel() for array in arrays]
    acts = acts_of(attrs["activations"])
    expected = naive.lstm_cell(*flat, ROWS, H, couple, acts, np.float32(attrs["params"]))
    for result, want in zip(results, expected, strict=True):
        np.testing.assert_allclose(result.ravel(), want, rtol=1e-5, atol=1e-6)


def test_linear():
    x, w, bias = floats(2, ROWS, H), floats(H, 5), floats(5)
    np.testing.assert_array_equal(FUSED_OPS["Linear"]([x, w], {})[0], x @ w)
    np.testing.assert_array_equal(FUSED_OPS["Linear"]([x, w, bias], {})[0], x @ w + bias)


@pytest.mark.parametrize("arguments", [[floats(H), floats(H, 5)], [floats(2, H), floats(H, 5), floats(1)]])
def test_linear_says_what_does_not_fit(arguments):
    with pytest.raises(ShapeError, match="a Linear takes"):
        FUSED_OPS["Linear"](arguments, {})


def test_a_cell_says_what_does_not_fit():
    with pytest.raises(ShapeError, match="does not hold 3 gates"):
        FUSED_OPS["GruCell"]([floats(2, 9), floats(2, 12), floats(2, 4)], cell_attrs("GruCell", ("sigmoid", "tanh")))


@pytest.mark.parametrize(
    ("op", "n_inputs", "n_outputs", "attrs", "message"),
    [
        ("Linear", 1, 1, {}, "1 inputs, there need to be 2 to 3"),
        ("GruCell", 2, 1, cell_attrs("GruCell", ("sigmoid", "tanh")), "2 inputs, there need to be 3 to 3"),
        ("LstmCell", 3, 1, cell_attrs("LstmCell", ("tanh",) * 3), "1 outputs, there need to be 2"),
        ("RnnCell", 2, 1, cell_attrs("RnnCell", ("tanh", "tanh")), "2 activations, there need to be 1"),
        ("RnnCell", 2, 1, cell_attrs("RnnCell", ("cosine",)), "there is no activation 'cosine'"),
        ("Expression", 2, 1, {"body": Graph("e", [Value("a")])}, "1 inputs of the body, there need to be 2"),
    ],
)
def test_the_checker_knows_them(op, n_inputs, n_outputs, attrs, message):
    inputs = [Value(f"i{index}", DType.FLOAT) for index in range(n_inputs)]
    outputs = [Value(f"o{index}") for index in range(n_outputs)]
    node = Node(op, list(inputs), list(outputs), attrs, "it", WEBRNN)
    with pytest.raises(ModelError, match=message):
        check(Graph("g", inputs, outputs, [node]))


@pytest.mark.parametrize("rows", [1, 2, 3])
@pytest.mark.parametrize("names", [("sigmoid",) * 3, ("relu", "sigmoid", "relu"), ("sigmoid", "tanh", "tanh")])
def test_an_lstm_of_one_unit(names, rows):
    """Its gates are columns of a matrix of four."""
    xw, hw, c = floats(rows, 4), floats(rows, 4, seed=1), floats(rows, 1, seed=2)
    results = FUSED_OPS["LstmCell"]([xw, hw, c], {**cell_attrs("LstmCell", names), "couple": 0})
    functions = {"relu": lambda x: np.maximum(x, 0), "tanh": np.tanh, "sigmoid": lambda x: 1 / (1 + np.exp(-x))}
    f, g, h = (functions[name] for name in names)
    i, o, forget, n = np.split(xw.astype(np.float64) + hw, 4, axis=1)
    c_next = f(forget) * c + f(i) * g(n)
    np.testing.assert_allclose(results[1], c_next, rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(results[0], f(o) * h(c_next), rtol=1e-6, atol=1e-7)

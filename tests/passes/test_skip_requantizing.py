import numpy as np
import pytest

from tests.passes.differential import apply, assert_keeps_results, graph_of, ops, reasons

FROM_X = "d = DequantizeLinear(x, s, z)"
X = np.arange(-12, 12, dtype=np.int8).reshape(2, 12)
CONSTANTS = (
    "<float s = {0.3}, int8 z = {-3}, float other = {0.4}, int8 one = {1}, float tiny = {1e-45}, float huge = {3e38}>"
)


def graph(body, outputs="int8[2, 12] y"):
    return graph_of(f"g (int8[2, 12] x) => ({outputs}) {CONSTANTS} {{ {body} }}")


@pytest.mark.parametrize(
    ("made", "left"),
    [
        (graph(f"{FROM_X} a = Neg(d) q = QuantizeLinear(d, s, z) w = Neg(q)", "float[2, 12] a, int8[2, 12] w"),
         {"DequantizeLinear": 1, "Neg": 2}),
        (graph(f"{FROM_X} t = Transpose<perm=[1, 0]>(d) y = QuantizeLinear(t, s, z)", "int8[12, 2] y"),
         {"DequantizeLinear": 1, "Transpose": 2}),
        (graph(f"{FROM_X} a, b = Split<axis=1, num_outputs=2>(d) y = QuantizeLinear(b, s, z)", "int8[2, 6] y"),
         {"DequantizeLinear": 1, "Split": 2}),
    ],
    ids=["pair", "transposed", "split"],
)  # fmt: skip
def test_fires(made, left):
    assert_keeps_results(made, [X], "skip_requantizing")
    outcome = apply(made, "skip_requantizing")
    assert len(outcome.fired["skip_requantizing"]) == 1
    assert ops(made) == left


def test_names_of_inputs_and_outputs_stay():
    """An input that is an output, too, would have two names."""
    made = graph("d = DequantizeLinear(x, s, z) y = QuantizeLinear(d, s, z)")
    assert_keeps_results(made, [X], "skip_requantizing")
    assert not apply(made, "skip_requantizing").fired


@pytest.mark.parametrize(
    "body",
    [
        "d = DequantizeLinear(x, s, z) y = QuantizeLinear(d, other, z)",
        "d = DequantizeLinear(x, s, z) y = QuantizeLinear(d, s, one)",
        "d = DequantizeLinear(x, s, z) r = Relu(d) y = QuantizeLinear(r, s, z)",
    ],
    ids=["scale", "zero point", "arithmetic between"],
)
def test_does_not_fire(body):
    made = graph(body)
    assert_keeps_results(made, [X], "skip_requantizing")
    assert not apply(made, "skip_requantizing").fired


@pytest.mark.parametrize("scale", ["tiny", "huge"])
def test_declines_if_numbers_would_change(scale):
    made = graph(f"n = Neg(x) d = DequantizeLinear(n, {scale}, one) q = QuantizeLinear(d, {scale}, one) y = Neg(q)")
    with np.errstate(all="ignore"):
        outcome = assert_keeps_results(made, [X], "skip_requantizing")
    found = reasons(outcome, "skip_requantizing")
    assert found == ({"it does not give back every number"} if scale == "huge" else set())

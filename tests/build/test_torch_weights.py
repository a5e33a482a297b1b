from __future__ import annotations

import numpy as np
import pytest

import webrnn
from webrnn.build.torch_weights import Module
from webrnn.build.weights import Weights

FLOAT = np.dtype("f4")


def module(**arrays: np.ndarray) -> Module:
    return Module(Weights({f"m.{name}": a for name, a in arrays.items()}, ".", "a dict"), "m", FLOAT)


@pytest.mark.parametrize(
    "names", [("weight_g", "weight_v"), ("parametrizations.weight.original0", "parametrizations.weight.original1")]
)
@pytest.mark.parametrize("shape", [(4, 1, 1), (1, 3, 1), (), (1,)])
def test_weight_norm_is_folded(names: tuple[str, str], shape: tuple[int, ...]) -> None:
    numbers = np.random.default_rng(0)
    g, v = numbers.normal(size=shape).astype("f"), numbers.normal(size=(4, 3, 2)).astype("f")
    axes = tuple(axis for axis in range(3) if g.size == 1 or shape[axis] == 1)
    expected = g.reshape(shape if g.ndim == 3 else ()) * v / np.sqrt((v**2).sum(axes, keepdims=True))
    found = module(**{names[0]: g, names[1]: v})
    assert found.has("weight")
    assert np.allclose(found.get("weight", 4, 3, 2), expected, atol=1e-6)
    assert not found.weights.unused()


def test_norms_that_do_not_fit() -> None:
    with pytest.raises(webrnn.ShapeError, match=r"'m.weight_g' is \[5, 1\], it needs to be \[4, 1\]"):
        module(weight_g=np.ones((5, 1)), weight_v=np.ones((4, 3))).get("weight")
    with pytest.raises(webrnn.ShapeError, match="weight_g"):
        module(weight_g=np.ones(4), weight_v=np.ones((4, 3))).get("weight")


@pytest.mark.parametrize("name", ["weight_orig", "parametrizations.weight.original"])
def test_other_parametrizations_are_refused(name: str) -> None:
    with pytest.raises(webrnn.UnsupportedOp, match="only weight norm is folded"):
        module(**{name: np.ones((2, 2))}).get("weight")


def test_half_floats_are_widened() -> None:
    assert module(weight=np.ones((2, 2), np.float16)).get("weight").dtype == FLOAT
    assert module(weight=np.ones((2, 2))).get("weight").dtype == FLOAT


def test_what_is_not_there() -> None:
    with pytest.raises(webrnn.OptionError, match="no weights below 'x'"):
        Module(Weights({}, ".", "a dict"), "x", FLOAT)
    with pytest.raises(webrnn.OptionError, match=r"'m\.other' is no parameter of a Linear"):
        module(weight=np.ones(1), other=np.ones(1)).require_only("weight", "bias", kind="Linear")
    assert module(weight=np.ones(1)).maybe("bias", 3) is None

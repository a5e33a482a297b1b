"""Einsum as products of matrices and sums."""

import numpy as np
import pytest

import webrnn
from tests.backends import BACKENDS
from tests.passes.expansions.harness import check_node, proto_of

EQUATIONS = [
    ("ij,jk->ik", (2, 3), (3, 4)), ("ij,jk", (2, 3), (3, 4)), ("bij,bjk->bik", (5, 2, 3), (5, 3, 4)), ("ii->i", (3, 3)),
    ("ii", (3, 3)), ("...ii->...i", (2, 3, 3)), ("bhqd,bhkd->bhqk", (2, 3, 4, 5), (2, 3, 6, 5)),
    ("...ij,...jk->...ik", (2, 1, 3, 4), (5, 4, 2)), ("i,j->ij", (3,), (4,)), ("i,i", (3,), (3,)), ("ij->", (2, 3)),
    ("ij->ji", (2, 3)), ("abc,cd,de->abe", (2, 3, 4), (4, 5), (5, 6)), ("ij,kl->ijkl", (2, 3), (4, 5)),
    ("bthd,hde->bte", (2, 3, 4, 5), (4, 5, 6)), ("ijk,ilm,njm,nlk->nm", (2, 3, 4), (2, 5, 6), (7, 3, 6), (7, 5, 4)),
    ("ij,ij->ij", (1, 3), (2, 3)), ("ij,ij->", (1, 3), (2, 3)), (" b i , b j -> b i j ", (2, 3), (2, 4)),
    ("iij,jk->ik", (3, 3, 4), (4, 2)), ("...,...->...", (2, 3), (3,)), ("ij,jk->ik", (0, 3), (3, 4)),
    ("ij,jk->ik", (2, 0), (0, 4)), ("B...a,aA->B...A", (2, 3, 4), (4, 5)),
]  # fmt: skip


def _arrays(shapes, dtype):
    rng = np.random.default_rng(0)
    return [rng.integers(-3, 4, shape).astype(dtype) for shape in shapes]


@pytest.mark.parametrize("case", EQUATIONS, ids=lambda case: case[0])
def test_equations(case):
    equation, *shapes = case
    check_node("Einsum", *_arrays(shapes, np.float32), equation=equation)
    check_node("Einsum", *_arrays(shapes, np.int64), equation=equation)


@pytest.mark.parametrize(
    ("equation", "shapes", "sizes"),
    [
        ("bxhd,byhd->bhxy", [(2, 3, 4, 5), (2, 6, 4, 5)], [["b", "x", 4, 5], ["b", "y", 4, 5]]),
        ("bthd,hde->bte", [(2, 3, 4, 5), (4, 5, 6)], [["b", "t", "h", "d"], ["h", "d", 6]]),
        ("...ij,...jk->...ik", [(2, 3, 4), (2, 4, 2)], [["b", "i", 4], ["b", 4, 2]]),
    ],
)
def test_named_sizes(equation, shapes, sizes):
    check_node("Einsum", *_arrays(shapes, np.float32), sizes=sizes, equation=equation)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    ("equation", "shapes"),
    [("ij,jk->ik", [(2, 3), (4, 5)]), ("ij->i", [(2, 3, 4)]), ("ij,jk->ix", [(2, 3), (3, 4)]), ("ij->ii", [(2, 2)])],
)
def test_what_is_wrong(equation, shapes, backend):
    with pytest.raises(webrnn.Error):
        webrnn.InferenceSession(proto_of("Einsum", _arrays(shapes, np.float32), equation=equation), backend=backend)

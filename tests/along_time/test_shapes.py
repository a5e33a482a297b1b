"""Sizes that are computed from the number of frames, given that there are enough of them."""

import pytest

from webrnn.along_time.kinds import NeedsStride
from webrnn.along_time.paces import STRIDES
from webrnn.along_time.shapes import SHAPES_OF_MANY, content_of_many
from webrnn.ir import DType, Node, Value
from webrnn.shapes.facts import Fact, Facts

M = STRIDES


def made_of(op, *operands, size=1):
    """A node on lists of sizes, and what is known of them."""
    facts, inputs, made = Facts(), [], Value("made")
    for place, content in enumerate(operands):
        value = Value(f"v{place}")
        sizes = content if isinstance(content, tuple) else (content,)
        facts.set(value, Fact(DType.INT64, (len(sizes),), sizes))
        inputs.append(value)
    facts.set(made, Fact(DType.INT64, (size,), (None,) * size))
    return Node(op, inputs, [made]), facts


@pytest.mark.parametrize(
    ("op", "a", "b", "expected"),
    [
        ("Div", 160 * M, 80, 2 * M),
        ("Div", 160 * M - 400, 160, M - 3),
        ("Div", 160 * M + 159, 160, M),
        ("Div", -160 * M, 160, -M),
        ("Div", -160 * M - 1, 160, -M),
        ("Mod", 160 * M, 80, 0),
        ("Mod", -160 * M - 1, 160, 159),
        ("Mod", 160 * M - 400, 160, 80),
        ("Max", 0, M - 3, M - 3),
        ("Max", M + 4, 5, M + 4),
        ("Max", M, 5, None),
        ("Max", 0, 400 - M, None),
        ("Min", M + 8, 9, 9),
        ("Min", M, 9, None),
        ("Div", 7, M, None),
    ],
)
def test_arithmetic(op, a, b, expected):
    assert content_of_many(*made_of(op, a, b)) == (expected,)


@pytest.mark.parametrize(("length", "by", "factor"), [(M, 80, 80), (6 * M, 4, 2), (2 * M + 1, 3, 3)])
@pytest.mark.parametrize("op", ["Div", "Mod"])
def test_a_quotient_that_is_not_whole_needs_longer_strides(op, length, by, factor):
    with pytest.raises(NeedsStride) as raised:
        content_of_many(*made_of(op, length, by))
    assert raised.value.factor == factor


def test_lists_of_sizes():
    assert content_of_many(*made_of("Neg", (M, 3, None), size=3)) == (-M, -3, None)
    assert content_of_many(*made_of("Div", (4 * M, 8, None), 2, size=3)) == (2 * M, 4, None)
    assert content_of_many(*made_of("Div", (4 * M, 8), (2, 2, 2), size=3)) is None
    assert content_of_many(*made_of("Add", M, 1)) is None


@pytest.mark.parametrize(
    ("limit", "step", "length"), [(M, 1, M), (M - 2, 1, M - 2), (4 * M, 4, M), (4 * M + 1, 2, 2 * M + 1)]
)
def test_how_many_numbers_a_range_has(limit, step, length):
    node, facts = made_of("Range", 0, limit, step)
    assert SHAPES_OF_MANY["Range"](node, facts) == (length,)


def test_a_table_lasts():
    node, facts = made_of("Slice", (0,), (3,), (M + 3,), (0,))
    facts.set(node.inputs[0], Fact(DType.FLOAT, (500, 2)))
    facts.set(node.outputs[0], Fact(DType.FLOAT, (None, 2)))
    assert SHAPES_OF_MANY["Slice"](node, facts) == (M, 2)

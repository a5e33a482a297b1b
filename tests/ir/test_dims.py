import pytest
from hypothesis import given
from hypothesis import strategies as st

from webrnn.ir import Symbol, is_static
from webrnn.ir.dims import FloorQuotient, floor_divide, quotient

N, M = Symbol("n"), Symbol("m")


@st.composite
def expressions(draw):
    total = draw(st.integers(-3, 3))
    for _ in range(draw(st.integers(0, 4))):
        term = draw(st.sampled_from([N, M, N * M, N * N, 1]))
        total = total + term * draw(st.integers(-3, 3))
    return total


def value_of(expression, n, m):
    return expression if isinstance(expression, int) else expression.substitute({"n": n, "m": m})


@given(expressions(), expressions(), st.integers(0, 9), st.integers(0, 9))
def test_arithmetic_commutes_with_substitution(a, b, n, m):
    left, right = value_of(a, n, m), value_of(b, n, m)
    assert value_of(a + b, n, m) == left + right
    assert value_of(a - b, n, m) == left - right
    assert value_of(a * b, n, m) == left * right


def test_equal_expressions_are_equal_values():
    assert (N + 1) * (N - 1) == N * N - 1
    assert hash(N + M) == hash(M + N)
    assert N - N == 0
    assert isinstance(N - N + 2, int)


def test_text():
    assert str(2 * N - M + 3) == "-m + 2*n + 3"


def test_partial_substitution():
    assert (N * M).substitute({"n": 2}) == 2 * M


def test_static():
    assert is_static((1, 2))
    assert not is_static((1, None))


def test_quotient_times_divisor_is_the_dim():
    n, m = Symbol("n"), Symbol("m")
    for dim, divisor in [(n * m * 4, m * 2), (n * n + n, n), (12, 4), (n * 0, 3)]:
        found = quotient(dim, divisor)
        assert found is not None
        assert found * divisor == dim
    assert quotient(n, 0) is None
    assert quotient(n + 1, n) is None


@given(expressions(), expressions(), st.integers(1, 6), st.integers(1, 6), st.integers(0, 9), st.integers(0, 9))
def test_floor_division_commutes_with_substitution(a, b, first, second, n, m):
    quotient_of_a = floor_divide(a, first)
    assert value_of(quotient_of_a, n, m) == value_of(a, n, m) // first
    nested = floor_divide(quotient_of_a * b + b, second)
    expected = (value_of(a, n, m) // first * value_of(b, n, m) + value_of(b, n, m)) // second
    assert value_of(nested, n, m) == expected
    half = nested.substitute({"n": n}) if not isinstance(nested, int) else nested
    assert value_of(half, n, m) == expected


@given(expressions(), st.integers(1, 6), st.integers(1, 6), st.integers(-4, 4))
def test_equal_quotients_are_equal_values(a, divisor, factor, shift):
    assert floor_divide(a * factor, divisor * factor) == floor_divide(a, divisor)
    assert floor_divide(a + shift * divisor, divisor) == floor_divide(a, divisor) + shift
    assert floor_divide(floor_divide(a, divisor), factor) == floor_divide(a, divisor * factor)


def test_quotients_say_what_they_are():
    half = floor_divide(N + 3, 2)
    assert str(half) == "(n + 1)//2 + 1"
    assert str(floor_divide(N, 4) * 4) == "4*(n//4)"
    assert str(floor_divide(2 * N, 3)) == "(2*n)//3"
    (name,) = (name for names, _ in half.terms for name in names)
    assert isinstance(name, FloorQuotient)
    assert (name.numerator, name.divisor) == (N + 1, 2)
    assert half.names == {"n"}


def test_a_size_that_a_model_names_like_a_quotient_is_another():
    assert Symbol("n//2") != floor_divide(N, 2)
    assert (Symbol("n//2") + floor_divide(N, 2)).substitute({"n//2": 100, "n": 4}) == 102


@pytest.mark.parametrize("divisor", [0, -2])
def test_divisors_that_are_not_positive(divisor):
    with pytest.raises(ValueError, match="not positive"):
        floor_divide(N, divisor)

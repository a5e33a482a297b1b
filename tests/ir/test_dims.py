from hypothesis import given
from hypothesis import strategies as st

from webrnn.ir import Symbol, is_static
from webrnn.ir.dims import quotient

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

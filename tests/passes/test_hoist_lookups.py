import numpy as np
import pytest

from tests.passes.differential import apply, assert_keeps_results, floats, graph_of, ops, reasons
from webrnn.ir import Scan, is_scan
from webrnn.passes import run_passes

NAME = "hoist_lookups"
ADD_A_BOOL = "b = Cast<to = 7>(blank) next = Add(t, b)"
WHERE = "more = Add(one, t) next = Where(blank, more, t)"
ADD_ONE_OR_NONE = "b = Where(blank, one, zero) next = Add(b, t)"
IF = """next = If(blank) <
    then_branch = yes () => (int64 y) { y = Add(t, one) },
    else_branch = no () => (int64 n) { n = Identity(t) }
>"""
LESS, GREATER = "going = Less(next, n)", "going = Greater(n, next)"
BOTH = "far = Less(next, n) early = Less(i, ten) going = And(early, far)"
ROWS = floats(5, 3)


def walk(advance=ADD_A_BOOL, ends=LESS, product="p = MatMul(row, w)", start=0, rows="x", index="t"):
    """h' = tanh(rows[t] w + h), and t goes on where the sum of that is positive."""
    return graph_of(
        f"""g (float[frames, 3] x, float[5, 3] y, float[4] h0) => (float[4] h, float[k, 4] trace)
        <float[3, 4] w = {{{", ".join(map(str, range(12)))}}}, int64 start = {{{start}}}, int64 one = {{1}},
         int64 zero = {{0}}, int64 two = {{2}}, int64 ten = {{10}}, int64[1] axis = {{0}}, bool true = {{1}},
         float none = {{0}}, int64 many = {{40}}> {{
            sizes = Shape(x)
            n = Gather<axis = 0>(sizes, zero)
            t_last, h, trace = Loop(many, true, start, h0) <body = body (int64 i, bool c, int64 t, float[4] before)
                => (bool going, int64 next, float[4] after, float[4] kept) {{
                row = Gather<axis = 0>({rows}, {index})
                {product}
                sum = Add(p, before)
                after = Tanh(sum)
                kept = Identity(after)
                total = ReduceSum<keepdims = 0>(after)
                blank = Greater(total, none)
                {advance}
                {ends}
            }}>
        }}"""
    )


def hoisted(graph, *arguments):
    arguments = arguments or (ROWS, ROWS, floats(4))
    assert_keeps_results(graph, list(arguments), NAME)
    outcome = apply(graph, NAME)
    (loop,) = [node for node in graph.nodes if is_scan(node)]
    return ops(Scan.of(loop).body), outcome


@pytest.mark.parametrize("ends", [LESS, GREATER, BOTH], ids=["less", "greater", "both"])
@pytest.mark.parametrize("advance", [ADD_A_BOOL, WHERE, ADD_ONE_OR_NONE, IF], ids=["bool", "where", "one", "if"])
def test_a_product_of_the_row_at_a_place(advance, ends):
    body, outcome = hoisted(walk(advance, ends))
    assert outcome.rewrites[NAME] == 1
    assert body["MatMul"] == 0
    assert body["Gather"] == 2  # one of them for nobody, until remove_dead comes


@pytest.mark.parametrize("frames", [1, 7])
def test_other_numbers_of_rows(frames):
    hoisted(walk(), floats(frames, 3), ROWS, floats(4))


def test_all_passes_leave_one_lookup():
    graph = walk()
    before = graph.copy()
    run_passes(graph, check=True)
    (loop,) = [node for node in graph.nodes if is_scan(node)]
    assert ops(Scan.of(loop).body)["Gather"] == 1
    assert not sum(run_passes(graph).rewrites.values())
    assert [value.name for value in before.outputs] == [value.name for value in graph.outputs]


@pytest.mark.parametrize(
    "graph",
    [
        walk("next = Add(t, two)"),
        walk("d = ArgMax<axis = 0, keepdims = 0>(after) next = Add(t, d)"),
        walk("next = Sub(t, one)", "going = Greater(next, zero)", start=4),
        walk(ends="going = Less(next, ten)"),
        walk(ends="going = Less(i, n)"),
        walk(start=1),
        walk(rows="y"),
        walk(index="i", advance="next = Add(t, one)"),
    ],
    ids=["two", "any", "back", "another number", "another place", "begins late", "other rows", "counts"],
)
def test_declines_what_may_not_walk_over_all_rows(graph):
    outcome = apply(graph, NAME)
    assert outcome.rewrites[NAME] == 0
    assert reasons(outcome, NAME) == {"it may not walk over all rows"}


def test_leaves_a_product_with_what_changes():
    graph = walk(product="turned = Unsqueeze(before, axis) p1 = Mul(turned, w) p = MatMul(row, p1)")
    outcome = apply(graph, NAME)
    assert outcome.rewrites[NAME] == 0
    assert not outcome.declines


def test_a_loop_of_no_steps():
    graph = walk()
    graph.constants.update({value: np.array(0) for value in graph.constants if value.name == "many"})
    hoisted(graph)

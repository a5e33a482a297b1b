from tests.passes.differential import apply, assert_keeps_results, floats, graph_of, ops, reasons


def optimized(text, *arguments):
    graph = graph_of(text)
    assert_keeps_results(graph, list(arguments), "merge_layout", "remove_dead")
    outcome = apply(graph, "merge_layout", "remove_dead")
    return graph, outcome


def test_transposes_become_one():
    graph, _ = optimized(
        """g (float[2, 3, 4] x) => (float[a, b, c] y) {
            t = Transpose<perm = [1, 2, 0]>(x)
            y = Transpose<perm = [0, 2, 1]>(t)
        }""",
        floats(2, 3, 4),
    )
    assert ops(graph) == {"Transpose": 1}
    assert graph.nodes[0].attrs["perm"] == [1, 0, 2]


def test_reshapes_become_one():
    graph, _ = optimized(
        """g (float[n, 6] x) => (float[a, b] y) <int64[1] flat = {-1}, int64[2] target = {-1, 3}> {
            t = Reshape(x, flat)
            y = Reshape(t, target)
        }""",
        floats(2, 6),
    )
    assert ops(graph) == {"Reshape": 1}


def test_there_and_back_is_nothing():
    graph, _ = optimized(
        """g (float[n, m] x) => (float[n, m] y) <int64[1] one = {1}> {
            a = Exp(x)
            t = Unsqueeze(a, one)
            b = Squeeze(t, one)
            y = Neg(b)
        }""",
        floats(2, 3),
    )
    assert ops(graph) == {"Exp": 1, "Neg": 1}


def test_the_first_stays_if_it_is_read():
    graph, _ = optimized(
        """g (float[2, 3] x) => (float[a, b] y, float[c, d] z) {
            a = Transpose<perm = [1, 0]>(x)
            z = Exp(a)
            b = Transpose<perm = [1, 0]>(a)
            y = Neg(b)
        }""",
        floats(2, 3),
    )
    assert ops(graph)["Transpose"] == 2


def test_declines_a_target_that_copies_a_size():
    graph, outcome = optimized(
        """g (float[n, 6] x) => (float[a, b, c] y) <int64[3] first = {-1, 3, 2}, int64[3] target = {0, 2, 3}> {
            t = Reshape(x, first)
            y = Reshape(t, target)
        }""",
        floats(2, 6),
    )
    assert ops(graph) == {"Reshape": 2}
    assert reasons(outcome, "merge_layout") == {"its target copies a size of the tensor in between"}


def test_declines_where_a_name_would_be_lost():
    text = "g (float[2] x) => (float[2] y) <int64[1] one = {1}> { t = Unsqueeze(x, one) y = Squeeze(t, one) }"
    _, outcome = optimized(text, floats(2))
    assert reasons(outcome, "merge_layout") == {"the model's output needs a name of its own"}

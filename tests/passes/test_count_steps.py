"""count_steps: where it fires, where it declines, and that results stay."""

from __future__ import annotations

import numpy as np
import pytest

from tests.passes.differential import assert_keeps_results, graph_of, ops, reasons
from webrnn.ir import Graph, Scan, is_scan
from webrnn.passes import run_passes
from webrnn.passes.count_steps import MOST_STEPS, CountSteps

BODY = """
body (int64 i, bool go, {state}) => (bool again, {state_out}, float[2] y) {{
    {rest}
    y = Add(x, x)
}}"""


def counting_loop(step: int, limit: str, *, trips: str = "trips", start: int = 0) -> Graph:
    return graph_of(f"""
    agraph (float[2] x, int64 bound) => (int64 last, float[n, 2] out)
    <int64 start = {{{start}}}, int64 by = {{{step}}}, int64 ten = {{10}}, int64 trips = {{9223372036854775807}},
     int64 three = {{3}}, bool yes = {{1}}>
    {{
        last, out = Loop ({trips}, yes, start) <body = body (int64 i, bool go, int64 count) =>
            (bool again, int64 next, float[2] y) {{
                next = Add(count, by)
                again = Less(next, {limit})
                y = Add(x, x)
            }}>
    }}""")


def scan_of(graph: Graph) -> Scan:
    return Scan.of(next(node for node in graph.nodes if is_scan(node)))


@pytest.mark.parametrize(("step", "start", "steps"), [(1, 0, 10), (3, 0, 4), (4, 8, 1), (1, 20, 1)])
def test_counts_steps_of_a_counter(step: int, start: int, steps: int) -> None:
    graph = counting_loop(step, "ten", start=start)
    arguments = [np.float32([1, 2]), np.array(0, np.int64)]
    assert_keeps_results(graph.copy(), arguments, "count_steps")
    run_passes(graph, [CountSteps()], check=True)
    scan = scan_of(graph)
    assert scan.body_cond is None
    assert scan.n_steps is not None
    assert graph.constants[scan.n_steps] == steps


def test_a_trip_count_ends_it_earlier() -> None:
    graph = counting_loop(1, "ten", trips="three")
    run_passes(graph, [CountSteps()], check=True)
    assert graph.constants[scan_of(graph).n_steps] == 3  # type: ignore[index]


def test_the_whole_pipeline_leaves_no_loop_of_a_map() -> None:
    graph = counting_loop(1, "ten")
    run_passes(graph, check=True)
    assert scan_of(graph).body_cond is None if "Scan" in ops(graph) else True


def test_declines_data() -> None:
    outcome = run_passes(counting_loop(1, "bound"), [CountSteps()])
    assert reasons(outcome, "count_steps") == {"its condition depends on data"}


def test_declines_what_takes_too_long_to_count() -> None:
    outcome = run_passes(counting_loop(0, "ten"), [CountSteps()])
    assert reasons(outcome, "count_steps") == {f"it takes more than {MOST_STEPS} steps"}


def loop_up_to_a_size(
    first: str = "go = Less(start, size)", again: str = "again = Less(next, size)", row: str = "y = Gather(x, count)"
) -> Graph:
    """As Keras' loops are exported: a state of its own counts up to the size of a tensor."""
    return graph_of(f"""
    agraph (float[T, 2] x) => (float[T, 2] out)
    <int64 start = {{0}}, int64 one = {{1}}, int64 trips = {{9223372036854775807}}, bool yes = {{1}},
     int64[2] corner = {{3, 4}}>
    {{
        sizes = Shape(x)
        size = Gather(sizes, start)
        size_as_float = Cast<to=1>(size)
        {first}
        last, out = Loop (trips, go, start) <body = body (int64 i, bool g, int64 count) =>
            (bool again, int64 next, float[2] y) {{
                next = Add(count, one)
                next_as_float = Cast<to=1>(next)
                {again}
                {row}
            }}>
    }}""")


@pytest.mark.parametrize(
    "again",
    [
        "again = Less(next, size)",
        "again = Less(next_as_float, size_as_float)",
        "ends = LessOrEqual(size, next) again = Not(ends)",
        "a = Less(next, size) b = Greater(size_as_float, next_as_float) again = And(a, b)",
        "a = Less(count, size) b = Less(next, size) again = And(a, b)",  # as tf2onnx: the first holds a step longer
    ],
)
def test_a_loop_up_to_a_size(again: str) -> None:
    graph = loop_up_to_a_size(again=again)
    for steps in (0, 1, 3):
        x = np.arange(2 * steps, dtype=np.float32).reshape(steps, 2)
        assert_keeps_results(graph, [x], "counters_to_iterations", "count_steps", "gather_to_sequence")
    run_passes(graph, check=True)
    assert not {"Scan", "Gather", "Loop"} & ops(graph).keys()


def test_a_loop_that_does_not_ask_before_its_first_step() -> None:
    """Without rows it fails, so it may be taken to have some."""
    graph = loop_up_to_a_size("go = Identity(yes)")
    for steps in (1, 3):
        x = np.arange(2 * steps, dtype=np.float32).reshape(steps, 2)
        assert_keeps_results(graph, [x], "counters_to_iterations", "count_steps", "gather_to_sequence")
    run_passes(graph, check=True)
    assert not {"Scan", "Gather", "Loop"} & ops(graph).keys()


@pytest.mark.parametrize(
    ("first", "again", "row"),
    [
        ("go = Identity(yes)", "again = Less(next, size)", "y = Cast<to=1>(corner)"),  # takes a step of no rows
        ("go = Less(start, size)", "again = Less(count, size)", "y = Gather(x, count)"),
        ("go = Less(start, size)", "again = Greater(next, size)", "y = Gather(x, count)"),
    ],
)
def test_loops_that_do_not_end_at_the_size_keep_their_condition(first: str, again: str, row: str) -> None:
    outcome = run_passes(loop_up_to_a_size(first, again, row), check=True)
    assert "its condition depends on data" in reasons(outcome, "count_steps")

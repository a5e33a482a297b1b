import pytest

from tests.passes.differential import apply, assert_keeps_results, ops, reasons
from tests.passes.scans import scan_in
from tests.passes.sequence_models import MODELS, STAY, model
from webrnn.ir.containers import MAKES_SEQUENCES
from webrnn.passes import run_passes

ALL = ("unpack_sequences", "unbox_sequences", "sequences_to_traces")


@pytest.mark.parametrize("name", MODELS)
def test_no_sequence_is_left(name):
    graph, arguments = model(name)
    assert_keeps_results(graph, arguments, *ALL)
    run_passes(graph, check=True)
    assert not MAKES_SEQUENCES & ops(graph).keys()


@pytest.mark.parametrize("name", [name for name in MODELS if "Loop" in MODELS[name]])
def test_alone(name):
    graph, arguments = model(name)
    assert_keeps_results(graph, arguments, "sequences_to_traces")


@pytest.mark.parametrize("name", STAY)
def test_declines(name):
    graph, arguments = model(name)
    outcome = assert_keeps_results(graph, arguments, *ALL)
    assert STAY[name][1] in reasons(outcome, "sequences_to_traces")


def test_an_element_for_each_step():
    graph, _ = model("appended")
    apply(graph, "sequences_to_traces")
    (trace,) = scan_in(graph).traces
    assert (trace.spec.axis, trace.spec.reverse) == (0, False)
    assert len(scan_in(graph).states) == 1


def test_what_is_put_in_front_is_a_trace_in_reverse():
    graph, _ = model("in_front")
    apply(graph, "sequences_to_traces")
    assert [trace.spec.reverse for trace in scan_in(graph).traces] == [True]


def test_a_state_for_each_element():
    graph, _ = model("window")
    apply(graph, *ALL)
    assert len(scan_in(graph).states) == 3


def test_the_last_element_is_a_state():
    graph, _ = model("last_in_a_branch")
    apply(graph, *ALL)
    (state,) = scan_in(graph).states
    assert state.init.shape == (2, 4)

import numpy as np
import onnx
import pytest

import webrnn
from tests.along_time.judge import by_steps, cuttings, difference
from tests.backends import MAIN
from tests.passes.differential import apply, assert_keeps_results, graph_of, ops, reasons

CUT = "next = Slice(frame, three, far, minus, one)"


def text_of(cut=CUT, joined="frame = Concat<axis=-1>(before, new)", start="start", out="frame", **options):
    """Windows of 5 samples, every 3, by a buffer of 2."""
    axes = {"step": 1, "trace": 1, **options}
    made = "float[B, 2] last, " if options.get("with_last") else ""
    ignored = "last" if options.get("with_last") else "unread"
    return f"""
    g (float[B, T, 3] x, float[B, 2] start) => ({made}float[a, b, c] y)
      <int64[1] three = {{3}}, int64[1] far = {{9223372036854775807}}, int64[1] minus = {{-1}}, int64[1] one = {{1}}> {{
        blocks = Transpose<perm={[0, 1, 2] if axes["step"] == 1 else [1, 0, 2]}>(x)
        {ignored}, y = Scan<num_scan_inputs=1, scan_input_axes=[{axes["step"]}], scan_output_axes=[{axes["trace"]}],
            body = body (float[B, 2] before, float[B, 3] new) => (float[B, 2] next, float[B, 5] {out}) {{
            {joined}
            {cut}
        }}>({start}, blocks)
    }}"""


def arguments(batch=2, blocks=4):
    rng = np.random.default_rng(0)
    return [
        rng.standard_normal((batch, blocks, 3)).astype(np.float32),
        rng.standard_normal((batch, 2)).astype(np.float32),
    ]


@pytest.mark.parametrize("trace", [0, 1, 2, -1])
@pytest.mark.parametrize("step", [0, 1])
@pytest.mark.parametrize("blocks", [4, 1, 0])
def test_the_windows_are_taken_at_once(step, trace, blocks):
    graph = graph_of(text_of(step=step, trace=trace))
    outcome = assert_keeps_results(graph, arguments(blocks=blocks), "buffers_to_windows")
    assert outcome.rewrites["buffers_to_windows"] == 1
    apply(graph, "buffers_to_windows")
    assert ops(graph)["Scan"] == 0


OTHERS = {
    "it moves on by less": {"cut": "two = Constant<value_ints=[2]>()  next = Slice(frame, two, far, minus, one)"},
    "it cuts at the end": {"cut": "end = Constant<value_ints=[4]>()  next = Slice(frame, three, end, minus, one)"},
    "the new ones first": {"joined": "frame = Concat<axis=-1>(new, before)"},
    "it computes": {"joined": "tame = Tanh(new)  frame = Concat<axis=-1>(before, tame)"},
    "what is left is read": {"with_last": True},
}


@pytest.mark.parametrize("name", OTHERS)
def test_other_loops_stay(name):
    graph = graph_of(text_of(**OTHERS[name]))
    outcome = apply(graph, "fold_constants", "buffers_to_windows")
    assert outcome.rewrites["buffers_to_windows"] == 0
    assert ops(graph)["Scan"] == 1


def test_reasons():
    less = apply(graph_of(text_of(**OTHERS["it moves on by less"])), "fold_constants", "buffers_to_windows")
    assert reasons(less, "buffers_to_windows") == {"how much its buffer moves on is not known"}
    above = text_of(joined="frame = Concat<axis=0>(before, new)").replace("[B, 3]", "[B, 2]")
    outcome = apply(graph_of(above), "buffers_to_windows")
    assert reasons(outcome, "buffers_to_windows") == {"its buffer is not along the last axis"}


def test_a_buffer_that_starts_from_the_first_frames_streams():
    """As onnx-asr cuts frames: the first samples fill the buffer, the others come in blocks."""
    text = """<ir_version: 10, opset_import: ["": 21]>
    g (float[B, samples] x) => (float[a, b, c] y)
      <int64[1] zero = {0}, int64[1] one = {1}, int64[1] two = {2}, int64[1] three = {3}, int64[1] far = {2147483647},
       int64 window = {5}, int64 hop = {3}, int64[3] blocks = {0, -1, 3}> {
        sizes = Shape<start=1>(x)
        count = Squeeze(sizes)
        rest = Sub(count, window)
        spare = Mod(rest, hop)
        whole = Sub(count, spare)
        end = Unsqueeze(whole, zero)
        start = Slice(x, zero, two, one, one)
        others = Slice(x, two, end, one, one)
        cut = Reshape(others, blocks)
        last, y = Scan<num_scan_inputs=1, scan_input_axes=[1], scan_output_axes=[1],
            body = body (float[B, 2] before, float[B, 3] new) => (float[B, 2] next, float[B, 5] frame) {
            frame = Concat<axis=-1>(before, new)
            next = Slice(frame, three, far, one, one)
        }>(start, cut)
    }"""
    session = webrnn.InferenceSession(onnx.parser.parse_model(text).SerializeToString(), backend=MAIN)
    stream = session.stream(carry="internal")
    feeds = {"x": np.random.default_rng(1).standard_normal((2, 24)).astype(np.float32)}
    whole = {"y": session.run(None, feeds)[0]}
    for lengths in cuttings(24, stream.stride, np.random.default_rng(2)):
        stream.reset()
        assert not difference(by_steps(stream, feeds, lengths), whole)
    with pytest.raises(webrnn.ModelError):
        webrnn.InferenceSession(
            onnx.parser.parse_model(text).SerializeToString(), backend=MAIN, disable=["buffers_to_windows"]
        ).stream(carry="internal")

"""What is guessed for inputs follows from what a graph does with them."""

import re
import shlex

import numpy as np
import pytest
from onnx.parser import parse_model

import webrnn
from webrnn.guesses import Guesses, first_that_runs
from webrnn.guesses.sizes import arithmetic
from webrnn.ir import DType, Value
from webrnn.names import unknown_name


def zeros(match):
    """Initializers need their elements."""
    return f"{match[0]} = {{{', '.join(['0'] * (int(match[1]) * int(match[2])))}}}"


def session(text, **options):
    head = '<ir_version: 8, opset_import: ["": 17]> '
    text = re.sub(r"float\[(\d+), (\d+)\] (?:table|w)(?=[,>])", zeros, text)
    return webrnn.InferenceSession(parse_model(head + text).SerializeToString(), backend="numpy", **options)


def first(text, **given):
    return next(session(text).guesses(**given).tries())


def runs(text):
    s = session(text)
    return first_that_runs(s.guesses().tries(), lambda feeds: s.run(None, feeds))


@pytest.mark.parametrize(
    ("declared", "sizes"),
    [
        ("float[batch, channels, samples] x", {"batch": 1, "channels": 1, "samples": 16000}),
        ("float[B, T, 80] x", {"B": 1, "T": 200}),
        ("float[batch, 80, frames] x", {"batch": 1, "frames": 200}),
        ("int64[batch, seq] x", {"batch": 1, "seq": 20}),
        ("float[n, 2] x", {"n": 1}),
        ("float[time, 7] x", {"time": 200}),
        ("float[batch, 8, past_length, 36] x", {"batch": 1, "past_length": 1}),
        ("float[b, 3, h, w] x", {"b": 1, "h": 32, "w": 32}),
    ],
)
def test_kinds_of_sizes(declared, sizes):
    assert first(f"g ({declared}) => (y) {{ y = Identity(x) }}").sizes == sizes


def test_a_product_settles_a_size():
    guess = first("g (float[n, m] x) => (y) <float[161, 4] w> { y = MatMul(x, w) }")
    assert guess.sizes["m"] == 161


def test_conditions_on_one_size_are_met():
    text = """g (float[n] x) => (y) <int64[2] shape = {7, 5}> { y = Reshape(x, shape) }"""
    guess, _, (y,) = runs(text)
    assert guess.sizes == {"n": 35}
    assert y.shape == (7, 5)


def test_an_index_is_below_the_rows_and_no_sentinel():
    text = """g (int64[batch, seq] ids) => (y, p) <float[6, 2] table, int64 zero = {3}>
        { y = Gather(table, ids) p = Equal(ids, zero) }"""
    _, feeds, _ = runs(text)
    assert feeds["ids"].max() < 6
    assert feeds["ids"].min() >= 1
    assert 3 not in feeds["ids"]


def test_floats_that_become_indices():
    text = """g (float[n] x) => (y) <float[5, 2] table> { i = Cast<to = 7>(x) y = Gather(table, i) }"""
    _, feeds, _ = runs(text)
    assert set(feeds["x"]) <= {1.0, 2.0, 3.0, 4.0}


def test_a_shifted_index_stays_below():
    text = """g (int64[seq, 9] ids) => (y) <float[4, 2] table, int64 two = {2}>
        { i = Add(ids, two) y = Gather(table, i) }"""
    _, feeds, _ = runs(text)
    assert feeds["ids"].max() < 2


def test_a_rate_is_one_that_the_model_knows():
    text = """g (float[n, 4] x, int64 k) => (y) <int64 low = {8000}, int64 high = {16000}>
        { a = Equal(k, low) b = Equal(k, high) y = Or(a, b) }"""
    guess = first(text)
    assert guess.feeds(np.random.default_rng(0))["k"] == 16000
    assert "compared with 16000" in {row.name: row.why for row in guess.rows()}["k"]


def test_a_length_is_that_of_the_sequence():
    text = """g (float[batch, T, 4] x, int64[batch] k) => (y) <int64 zero = {0}, int64 one = {1}>
        { s = Shape<start = 1, end = 2>(x) t = Squeeze(s) r = Range(zero, t, one) y = Less(r, k) }"""
    _, feeds, _ = runs(text)
    assert feeds["k"].tolist() == [200]


def test_uses_inside_branches_and_loops_count():
    then = "then_branch = a () => (p) { p = Gather(table, ids) }"
    other = "else_branch = b () => (q) { q = Gather(table, ids) }"
    text = f"g (bool flag, int64[5] ids) => (y) <float[3, 2] table> {{ y = If (flag) <{then}, {other}> }}"
    _, feeds, _ = runs(text)
    assert feeds["ids"].max() < 3


def test_masks_hide_nothing():
    guess = first("g (bool[batch, seq] m, float[batch, seq] x) => (y) <float zero = {0}> { y = Where(m, x, zero) }")
    assert guess.feeds(np.random.default_rng(0))["m"].all()


def test_operands_that_say_how():
    text = "g (float[3, 4] x, int64[2] shape, int64[1] axes, int64[1] k) => (r, s, v) "
    text += "{ r = Reshape(x, shape) s = ReduceSum(x, axes) v, i = TopK(x, k) }"
    runs(text)


def test_sizes_whose_names_are_arithmetic():
    text = """g (float[batch, past, 4] p, float[batch, past + seq] m, float[batch, seq, 4] x) => (y)
        { y = Concat<axis = 1>(p, x) }"""
    proto = parse_model('<ir_version: 8, opset_import: ["": 17]> ' + text.replace("past + seq", "pastseq"))
    proto.graph.input[1].type.tensor_type.shape.dim[1].dim_param = "past + seq"
    guess = next(webrnn.InferenceSession(proto.SerializeToString()).guesses().tries())
    assert guess.sizes["past + seq"] == guess.sizes["past"] + guess.sizes["seq"]
    assert arithmetic("__import__('os')", {}) is None


def test_what_is_given_stays():
    x = np.ones((1, 3, 80), np.float32)
    guess = first("g (float[B, T, 80] x, float[B, T] z) => (y) { y = Identity(x) }", given={"x": x})
    assert guess.feeds(np.random.default_rng(0))["z"].shape == (1, 3)
    guess = first("g (float[B, T, 80] x, float[B, T] z) => (y) { y = Identity(x) }", shapes={"x": (2, 5, 80)})
    assert guess.shapes == {"x": (2, 5, 80), "z": (2, 5)}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"sizes": {"frame": 3}}, "no size 'frame': did you mean 'frames'"),
        ({"shapes": {"y": (1,)}}, "no input 'y'"),
        ({"shapes": {"x": (1, 4, 81)}}, "cannot be 1x4x81"),
        ({"shapes": {"x": (1, 4, 80)}, "sizes": {"frames": 5}}, "said to be 5 and 4"),
    ],
)
def test_names_and_shapes_that_there_are_not(given, message):
    with pytest.raises(webrnn.Error, match=message):
        first("g (float[batch, frames, 80] x) => (y) { y = Identity(x) }", **given)


def test_without_a_graph_an_input_of_unknown_rank_needs_a_shape():
    inputs = [Value("x", DType.FLOAT, None)]
    with pytest.raises(webrnn.ShapeError, match=r"--shape x=1x16"):
        Guesses(inputs)
    assert next(Guesses(inputs, shapes={"x": [1, 3]}).tries()).shapes == {"x": (1, 3)}


def test_a_model_that_takes_nothing_says_what_to_try():
    text = "g (float[n] x) => (y) <int64[2] shape = {7, 5}> { p = NonZero(x) y = Reshape(p, shape) }"
    with pytest.raises(webrnn.ShapeError, match=r"sizes were guessed, try others: --size n=\d+"):
        runs(text)


def test_many_names_are_not_all_listed():
    message = unknown_name("input", "zzz", [f"name{i}" for i in range(50)])
    assert "and 38 more" in message


def test_loose_containers():
    text = "g (seq(float[3]) s, int64 i) => (y) { y = SequenceAt(s, i) }"
    assert runs(text)[2][0].shape == (3,)


def test_the_steps_of_a_loop_are_time_whatever_they_are_called():
    from tests.onnx.models import floats, recurrent

    proto = recurrent("GRU")
    name = proto.graph.input[0].name
    proto.graph.input[0].CopyFrom(floats(name, ["a", "b", 4]))
    for output in proto.graph.output:
        output.type.tensor_type.ClearField("shape")
    guess = next(webrnn.InferenceSession(proto.SerializeToString()).guesses().tries())
    assert guess.sizes["a"] == 200
    assert guess.sizes["b"] <= 2


def test_a_step_of_a_stream_has_one_frame():
    from webrnn.bench.models import streaming_gru

    gru = webrnn.InferenceSession(streaming_gru(6, 8), backend="numpy")
    assert next(gru.guesses().tries()).shapes["x"] == (200, 1, 6)
    assert next(gru.guesses(is_step=True).tries()).shapes["x"] == (1, 1, 6)
    assert next(gru.guesses({"steps": 3}, is_step=True).tries()).shapes["x"] == (3, 1, 6)


@pytest.mark.parametrize(
    ("shape", "sizes"),
    [("3, 25, 2, 2", {"N": 1, "T": 75}), ("-1, 9, 2, 2", {"N": 1, "T": 9}), ("1, 7, 4", {"N": 1, "T": 7})],
)
def test_sizes_that_have_to_go_together_are_searched(shape, sizes):
    rank = shape.count(",") + 1
    guess, _, _ = runs(f"g (float[N, T, 4] x) => (y) <int64[{rank}] s = {{{shape}}}> {{ y = Reshape(x, s) }}")
    assert guess.sizes == sizes


JOINED = """g (float[1, a] x, float[1, b] y, float[1, c] z) => (u, v)
<int64[2] all = {{1, {total}}}, int64[2] last = {{1, {last}}}> {{
  joined = Concat<axis = 1>(x, y, z)  u = Reshape(joined, all)  v = Reshape(z, last) }}"""


def test_what_follows_from_other_sizes_is_no_negative_number():
    guess, _, _ = runs(JOINED.format(total=1009, last=500))
    assert guess.sizes["c"] == 500
    assert guess.sizes["a"] + guess.sizes["b"] == 509
    with pytest.raises(webrnn.ShapeError, match="try others: --size"):
        runs(JOINED.format(total=1009, last=1013))


def test_a_search_for_sizes_that_never_fit_ends():
    names = [f"s{index}" for index in range(12)]
    inputs = ", ".join(f"float[1, {name}] x_{name}" for name in names)
    joined = ", ".join(f"x_{name}" for name in names)
    text = f"g ({inputs}) => (u, v) <int64[2] all = {{1, 7919}}, int64[2] last = {{1, 8009}}>"
    nodes = f"{{ c = Concat<axis = 1>({joined})  u = Reshape(c, all)  v = Reshape(x_s11, last) }}"
    with pytest.raises(webrnn.ShapeError):
        runs(text + nodes)


def test_a_plan_is_asked_which_sizes_it_takes(tmp_path):
    text = "g (float[batch, t, 4] x) => (y) <int64[2] s = {-1, 36}> { y = Reshape(x, s) }"
    head = '<ir_version: 8, opset_import: ["": 17]> '
    model = webrnn.InferenceSession(parse_model(head + text).SerializeToString())
    model.export(tmp_path / "model.rnn")
    plan = webrnn.InferenceSession(tmp_path / "model.rnn")
    guess, _, (y,) = first_that_runs(plan.guesses().tries(), lambda feeds: plan.run(None, feeds))
    assert guess.sizes["t"] % 9 == 0
    assert y.shape[1] == 36


def test_images_may_have_their_channels_last():
    assert first("g (float[n, h, w, 3] x) => (y) { y = Identity(x) }").sizes == {"n": 1, "h": 32, "w": 32}


@pytest.mark.parametrize(("node", "shape"), [("MatMul(x, w)", (1, 8)), ("MatMul(x, w) z = Conv(x, k)", None)])
def test_a_rank_that_the_model_does_not_say(node, shape):
    text = f"g (float[n] x) => (y) <float[8, 4] w, float[2, 8, 1] k = {{{', '.join(['0'] * 16)}}}> {{ y = {node} }}"
    head = '<ir_version: 8, opset_import: ["": 17]> '
    proto = parse_model(head + re.sub(r"float\[(\d+), (\d+)\] w(?=[,>])", zeros, text))
    proto.graph.input[0].type.tensor_type.ClearField("shape")
    made = webrnn.InferenceSession(proto.SerializeToString(), backend="numpy")
    guess, feeds, _ = first_that_runs(made.guesses().tries(), lambda feeds: made.run(None, feeds))
    assert feeds["x"].ndim == (2 if shape else 3)
    assert shape is None or guess.shapes == {"x": shape}


def test_one_frame_that_is_repeated_is_the_last_guess():
    text = "g (float[batch, frames, 4] x) => (y) <float[30, 4] w> { y = Add(x, w) }"
    assert first(text).sizes == {"batch": 1, "frames": 30}


def test_options_can_be_pasted():
    text = "g (float[batch, p, 4] x) => (y) { y = Identity(x) }"
    proto = parse_model('<ir_version: 8, opset_import: ["": 17]> ' + text)
    proto.graph.input[0].type.tensor_type.shape.dim[1].dim_param = "past + 1"
    guess = next(webrnn.InferenceSession(proto.SerializeToString(), backend="numpy").guesses().tries())
    assert shlex.split(guess.options) == ["--size", "batch=1", f"past + 1={guess.sizes['past + 1']}"]

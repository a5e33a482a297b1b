"""The finder of states: on names as exporters write them, on graphs, on real models."""

from __future__ import annotations

import random

import numpy as np
import pytest
from onnx import helper
from onnx.parser import parse_model

import webrnn
from tests.engine.stream_models import HIDDEN, growing, hidden_state, stateful
from tests.engine.streams.carry_models import Signature, decoder, signatures
from tests.models.fetch import model_path
from tests.onnx.models import floats, initializer, model
from webrnn.engine.streams.state_names import HABITS
from webrnn.engine.streams.states import FoundStates, find_states, states_of
from webrnn.ir import DType, Symbol, Value
from webrnn.onnx.reader import read_model

SIGNATURES = signatures()


def by_names(signature: Signature) -> FoundStates:
    return find_states([port.value for port in signature.inputs], [port.value for port in signature.outputs])


def by_graph(proto) -> FoundStates:
    return states_of(read_model(proto.SerializeToString()))


def answer(found: FoundStates) -> dict[str, str] | None:
    return None if found.problem else found.carry()


def value(name, *shape, dtype=DType.FLOAT):
    return Value(name, dtype, shape)


def renamed(proto, names):
    for part in (proto.graph.input, proto.graph.output):
        for item in part:
            item.name = names.get(item.name, item.name)
    for node in proto.graph.node:
        for ends in (node.input, node.output):
            ends[:] = [names.get(name, name) for name in ends]
    return proto


def test_there_are_many_signatures():
    assert len(SIGNATURES) > 350
    assert sum(signature.carry is None for signature in SIGNATURES) > 45


@pytest.mark.parametrize("signature", SIGNATURES, ids=str)
def test_signatures(signature):
    assert answer(by_names(signature)) == signature.carry
    assert answer(by_graph(signature.graph())) == signature.carry


def test_a_large_decoder():
    signature = decoder(layers=80)
    assert answer(by_names(signature)) == signature.carry


def test_the_order_of_inputs_and_outputs_does_not_matter():
    rng = random.Random(5)
    for signature in SIGNATURES:
        inputs, outputs = ([port.value for port in side] for side in (signature.inputs, signature.outputs))
        expected = find_states(inputs, outputs)
        for _ in range(3):
            rng.shuffle(inputs)
            rng.shuffle(outputs)
            found = find_states(inputs, outputs)
            assert set(found.pairs) == set(expected.pairs), str(signature)
            assert bool(found.problem) == bool(expected.problem), str(signature)


@pytest.mark.parametrize("habit", HABITS, ids=lambda habit: " -> ".join(habit.example))
def test_habits(habit):
    before, after = habit.example
    inputs = [value("x", 1, 40), value(before, 1, 1, 64)]
    found = find_states(inputs, [value("y", 1, 10), value(after, 1, 1, 64)])
    assert found.carry() == {before: after}
    assert found.pairs[0].reason.startswith("by name: ")


def test_names_put_together_at_random():
    """Words for states, numbers, marks and separators of all kinds: pairs have the same words and numbers."""
    rng = random.Random(16)
    marks = [
        ("", "out"),
        ("in", "out"),
        ("prev", "next"),
        ("", "new"),
        ("past", "present"),
        ("old", "new"),
        ("", "next"),
    ]
    for _ in range(200):
        mark, separator, in_front = rng.choice(marks), rng.choice("_./"), rng.random() < 0.5
        stems = rng.sample(["state", "h", "c", "cache", "conv_buf", "mem", "enc_state", "dec_cache", "lstm1_h"], 3)
        layers = rng.sample(range(12), rng.randint(1, 3))
        shape = rng.choice([(1, 1, 64), (1, 64), (1, 8, 16, 2)])
        pairs = {}
        for stem in stems:
            for layer in layers:
                words = [stem, str(layer)]
                names = [[word, *words] if in_front else [*words, word] for word in mark]
                before, after = (separator.join(word for word in name if word) for name in names)
                pairs[before] = after
        inputs = [value("x", *shape), *(value(name, *shape) for name in pairs)]
        outputs = [value("y", *shape), *(value(name, *shape) for name in pairs.values())]
        rng.shuffle(inputs)
        rng.shuffle(outputs)
        assert find_states(inputs, outputs).carry() == pairs


def test_a_missing_output_is_never_made_up_for():
    """Of each signature with several states one output is left away: what is found is never found in another place."""
    tried = 0
    for signature in SIGNATURES:
        for gone in signature.carry.values() if signature.carry and len(signature.carry) > 1 else ():
            outputs = [port.value for port in signature.outputs if port.name != gone]
            found = find_states([port.value for port in signature.inputs], outputs)
            wrong = {p.before: p.after for p in found.pairs}.items() - signature.carry.items()
            assert found.problem or not wrong, (str(signature), gone)
            tried += 1
    assert tried > 100


# The graph


def test_loops_say_what_names_do_not():
    found = by_graph(renamed(stateful("GRU"), {"h_in": "a", "h_out": "b"}))
    assert found.carry() == {"a": "b"}
    assert found.pairs[0].reason == "by flow: starts the loop 'cell'"


def test_the_two_states_of_an_lstm():
    names = {"h_in": "input_2", "c_in": "input_3", "h_out": "lstm_1", "c_out": "lstm_2"}
    assert by_graph(renamed(stateful("LSTM"), names)).carry() == {"input_2": "lstm_1", "input_3": "lstm_2"}


def test_names_that_the_graph_contradicts():
    found = by_graph(renamed(stateful("LSTM"), {"h_out": "c_out", "c_out": "h_out"}))
    with pytest.raises(webrnn.ModelError, match=r"h_in -> h_out by name.*but h_in -> c_out by flow: starts the loop"):
        found.carry()


def test_a_final_state_that_is_an_output_twice():
    proto = stateful("GRU")
    proto.graph.node.append(helper.make_node("Identity", ["h_out"], ["b"]))
    proto.graph.output.append(floats("b", [1, "batch", HIDDEN]))
    assert by_graph(proto).carry() == {"h_in": "h_out"}
    again = by_graph(renamed(proto, {"h_in": "a", "h_out": "c"}))
    with pytest.raises(webrnn.ModelError, match=r"not sure.*a: (b or c|c or b)"):
        again.carry()


def test_stacked_states():
    """One input is split into the states of two loops; what they end with is put together."""
    proto = stateful("LSTM")
    cell = proto.graph.node[0]
    cell.input[5:] = ["h", "c"]
    cell.output[1:] = ["hn", "cn"]
    nodes = [
        helper.make_node("Split", ["s"], ["h", "c"], axis=0, num_outputs=2),
        cell,
        helper.make_node("Concat", ["hn", "cn"], ["t"], axis=0),
    ]
    inputs = [proto.graph.input[0], floats("s", [2, "batch", HIDDEN])]
    outputs = [proto.graph.output[0], floats("t", [2, "batch", HIDDEN])]
    proto = model(nodes, inputs, outputs, list(proto.graph.initializer))
    assert by_graph(proto).carry() == {"s": "t"}


def written_out(op: str, names: dict[str, str]):
    """A cell in plain ops; its state are the inputs p (and q), what it becomes v (and w)."""
    gates = 4 if op == "LSTM" else 2
    nodes = [
        helper.make_node("MatMul", ["x", "W"], ["wx"]),
        helper.make_node("MatMul", ["p", "R"], ["rh"]),
        helper.make_node("Add", ["wx", "rh"], ["sum"]),
        helper.make_node("Split", ["sum"], [f"g{k}" for k in range(gates)], axis=1, num_outputs=gates),
        helper.make_node("Tanh", ["g0"], ["new"]),
        helper.make_node("Sigmoid", ["g1"], ["z"]),
    ]
    if op == "LSTM":
        nodes += [
            helper.make_node("Sigmoid", ["g2"], ["f"]),
            helper.make_node("Sigmoid", ["g3"], ["o"]),
            helper.make_node("Mul", ["f", "q"], ["kept"]),
            helper.make_node("Mul", ["new", "z"], ["written"]),
            helper.make_node("Add", ["written", "kept"], ["w"]),
            helper.make_node("Tanh", ["w"], ["squashed"]),
            helper.make_node("Mul", ["squashed", "o"], ["v"]),
        ]
    elif op == "GRU":
        nodes += [
            helper.make_node("Sub", ["one", "z"], ["rest"]),
            helper.make_node("Mul", ["rest", "new"], ["written"]),
            helper.make_node("Mul", ["z", "p"], ["kept"]),
            helper.make_node("Add", ["written", "kept"], ["v"]),
        ]
    else:
        nodes += [
            helper.make_node("Sub", ["p", "new"], ["change"]),
            helper.make_node("Mul", ["change", "z"], ["kept"]),
            helper.make_node("Add", ["new", "kept"], ["v"]),
        ]
    nodes.append(helper.make_node("ReduceMax", ["v"], ["y"]))
    states = ["p", "q"] if op == "LSTM" else ["p"]
    weights = [
        initializer("W", np.ones((3, 4 * gates), np.float32)),
        initializer("R", np.ones((4, 4 * gates), np.float32)),
        initializer("one", np.float32(1)),
    ]
    inputs = [floats("x", [1, 3]), *(floats(name, [1, 4]) for name in states)]
    outputs = [floats("y", [1, 1]), *(floats(name, [1, 4]) for name in ["v", "w"][: len(states)])]
    return renamed(model(nodes, inputs, outputs, weights), names)


@pytest.mark.parametrize("op", ["GRU", "GRU by a difference"])
def test_a_gru_in_plain_ops(op):
    found = by_graph(written_out(op, {"p": "args_1", "v": "add_5"}))
    assert found.carry() == {"args_1": "add_5"}
    assert "goes through the gates" in found.pairs[0].reason


def test_an_lstm_in_plain_ops():
    names = {"p": "args_1", "q": "args_2", "v": "mul_7", "w": "add_5"}
    assert by_graph(written_out("LSTM", names)).carry() == {"args_1": "mul_7", "args_2": "add_5"}
    crossed = {"p": "h", "q": "c", "v": "cn", "w": "hn"}
    with pytest.raises(webrnn.ModelError, match=r"c -> cn by name.*but c -> hn by flow"):
        by_graph(written_out("LSTM", crossed)).carry()


def rolling(before: str, after: str):
    nodes = [
        helper.make_node("Concat", [before, "x"], ["window"], axis=1),
        helper.make_node("Slice", ["window", "from", "to", "axis"], [after]),
        helper.make_node("ReduceMax", ["window"], ["y"]),
    ]
    constants = [initializer(name, np.int64([number])) for name, number in (("from", 2), ("to", 99), ("axis", 1))]
    inputs, outputs = [floats("x", [1, 2]), floats(before, [1, 6])], [floats("y", [1, 1]), floats(after, [1, 6])]
    return model(nodes, inputs, outputs, constants)


def test_a_buffer_that_rolls():
    found = by_graph(rolling("b", "q"))
    assert found.carry() == {"b": "q"}
    assert "moves on in Concat" in found.pairs[0].reason


def test_a_signal_that_starts_a_loop_is_none():
    proto = renamed(stateful("GRU"), {"h_in": "frame", "h_out": "last"})
    with pytest.raises(webrnn.ModelError, match="finds no input"):
        by_graph(proto).carry()


def test_a_highway_around_a_signal_is_no_state():
    proto = written_out("GRU", {"p": "audio", "v": "audio_out"})
    with pytest.raises(webrnn.ModelError, match="finds no input"):
        by_graph(proto).carry()


def test_a_mask_on_a_signal_is_no_state():
    nodes = [
        helper.make_node("Sigmoid", ["q"], ["mask"]),
        helper.make_node("Mul", ["mask", "p"], ["r"]),
        helper.make_node("ReduceMax", ["p"], ["t"]),
    ]
    ports = [floats("p", [1, 4]), floats("q", [1, 4])], [floats("r", [1, 4]), floats("t", [1, 1])]
    with pytest.raises(webrnn.ModelError, match="finds no input"):
        by_graph(model(nodes, *ports)).carry()


def test_the_only_pair_that_a_tool_can_have_meant():
    nodes = [
        helper.make_node("ReduceMax", ["input_1"], ["peak"], keepdims=0),
        helper.make_node("Add", ["input_2", "peak"], ["Identity_1"]),
        helper.make_node("ReduceMax", ["Identity_1"], ["Identity"]),
    ]
    ports = (
        [floats("input_1", [1, 9]), floats("input_2", [1, 4])],
        [floats("Identity", [1, 1]), floats("Identity_1", [1, 4])],
    )
    found = by_graph(model(nodes, *ports))
    assert found.carry() == {"input_2": "Identity_1"}
    assert found.pairs[0].reason.startswith("by elimination")


def test_a_malformed_node_is_left_to_others():
    graph = read_model(written_out("LSTM", {}).SerializeToString())
    for node in graph.nodes:
        del node.inputs[1:]
    assert states_of(graph).problem is not None


def test_a_state_that_grows_and_one_of_any_size():
    assert by_graph(growing()).carry() == {"past_in": "past_out"}
    assert find_states(
        [value("x", 1), value("h_in", Symbol("b"), 4)], [value("y", 1), value("h_out", None, 4)]
    ).carry() == {"h_in": "h_out"}


# What is said


def test_the_candidates_are_named():
    found = find_states([value("x", 1), value("state", 1, 4)], [value("state_a", 1, 4), value("state_b", 1, 4)])
    with pytest.raises(
        webrnn.ModelError, match=r"not sure.*state: state_a or state_b\. Name the pairs: carry=\{\"state\""
    ):
        found.carry()


def test_what_was_found_and_what_is_open():
    inputs = [value("x", 1), value("h_in", 1, 4), value("c_in", 1, 4)]
    found = find_states(inputs, [value("y", 1), value("h_out", 1, 4)])
    assert [pair.before for pair in found.pairs] == ["h_in"]
    text = r'found h_in -> h_out \(by name: \*_in -> \*_out\); c_in looks like a state.*carry=\{"h_in": "h_out"\}'
    with pytest.raises(webrnn.ModelError, match=text):
        found.carry()


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (value("h_in", 1, 4), value("h_out", 1, 5)),
        (value("h_in", 1, 4), value("h_out", 1, 4, dtype=DType.DOUBLE)),
        (value("h_in", 1, 4), value("h_out", 4)),
        (value("x", 1, 4), value("y", 1, 4)),
    ],
)
def test_nothing_is_found(before, after):
    with pytest.raises(webrnn.ModelError, match=r'finds no input that looks like a state.*carry="internal"'):
        find_states([before], [after]).carry()


def test_no_carried_set_takes_all():
    with pytest.raises(webrnn.ModelError, match="no output would be left"):
        find_states([value("x", 1, 4), value("h", 1, 4)], [value("hn", 1, 4)]).carry()
    with pytest.raises(webrnn.ModelError, match="no input would be left"):
        find_states([value("h", 1, 4)], [value("y", 1, 4), value("hn", 1, 4)]).carry()


def test_streams_pools_and_files_refuse_what_is_not_sure(tmp_path):
    proto = renamed(stateful("LSTM"), {"h_out": "c_out", "c_out": "h_out"})
    session = webrnn.InferenceSession(proto.SerializeToString())
    for use in (session.stream, session.pool, lambda: session.export(tmp_path / "m.rnn", carry="auto")):
        with pytest.raises(webrnn.ModelError, match="not sure"):
            use()
    assert not (tmp_path / "m.rnn").exists()
    assert session.stream(carry={"h_in": "c_out", "c_in": "h_out"}).carry == {"h_in": "c_out", "c_in": "h_out"}


def test_sessions_say_why():
    session = webrnn.InferenceSession(stateful("GRU").SerializeToString())
    assert [pair.reason for pair in session.find_states().pairs] == ["by name: *_in -> *_out"]
    hidden = webrnn.InferenceSession(hidden_state("GRU", with_final=True).SerializeToString())
    assert hidden.find_states().pairs == ()


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("riann", {"h0": "hn"}),
        ("dtln_1", {"input_3": "tf_op_layer_stack_2"}),
        ("dtln_2", {"input_5": "tf_op_layer_stack_5"}),
        ("silero_v6", {"state": "stateN"}),
        ("silero_v6_op15", {"state": "stateN"}),
        ("silero_v6_op18_ifless", {"state": "stateN"}),
        ("silero_v6_seq", {"h": "hn", "c": "cn"}),
        ("nsnet2_16k", None),
        ("localwake_loop", None),
    ],
)
def test_real_models(name, expected):
    assert answer(states_of(read_model(model_path(name)))) == expected


def test_a_token_that_a_loop_hands_on_beside_a_state_is_a_doubt():
    """A greedy decoder: `token_out` is the next `token_in`, but a caller may as well feed tokens."""
    text = """<ir_version: 8, opset_import: ["": 17]>
    greedy (float[T,2,4] x, float[2,4] h_in, int64[2] token_in) =>
           (float[T,2,4] y, float[2,4] h_out, int64[2] token_out) {
        shape = Shape<start=0, end=1>(x) steps = Squeeze(shape) go = Constant<value=bool {1}>()
        h_out, token_out, y = Loop(steps, go, h_in, token_in) <body = b (int64 i, bool c, float[2,4] h, int64[2] t) =>
            (bool c2, float[2,4] h2, int64[2] t2, float[2,4] o) {
            row = Gather(x, i) f = Cast<to=1>(t) one = Constant<value=int64[1] {1}>() column = Unsqueeze(f, one)
            sum = Add(row, h) more = Add(sum, column) h2 = Tanh(more) o = Identity(h2)
            t2 = ArgMax<axis=1, keepdims=0>(h2) c2 = Identity(c) }> }"""
    found = by_graph(parse_model(text))
    assert [(pair.before, pair.after) for pair in found.pairs] == [("h_in", "h_out")]
    assert "token_in: token_out, if it is fed back" in str(found.problem)
    assert found.answer == {"h_in": "h_out", "token_in": "token_out"}

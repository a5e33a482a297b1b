"""Loops as people and exporters write them, in ONNX's text: x [time, 2, 4] -> y, frames first.

Each is streamed exactly, or refused with the name of a node: `EXACT` and `REFUSED` say which.
"""

from __future__ import annotations

import numpy as np
from onnx import ModelProto, numpy_helper
from onnx.parser import parse_model

WIDTH, BATCH = 4, 2
FRAME = f"float[{BATCH},{WIDTH}]"

_CONSTANTS = """
    sizes = Shape(x)
    zero = Constant<value_int=0>()
    one = Constant<value_int=1>()
    two = Constant<value_int=2>()
    three = Constant<value_int=3>()
    many = Constant<value_int=2147483647>()
    n = Gather(sizes, zero)
    last = Sub(n, one)
    yes = Constant<value=bool {1}>()
    first_axis = Constant<value_ints=[0]>()
    second = Constant<value_ints=[1]>()
    far = Constant<value_ints=[9223372036854775807]>()
    minus_one = Constant<value_ints=[-1]>()
    very_first = Constant<value_ints=[-9223372036854775807]>()
    limit = Constant<value_float=0.9>()
    corner = Constant<value_ints=[1,1]>()
"""

CELL = "p = MatMul(h, w)  s = Add(f, p)  h_next = Tanh(s)  y_t = Identity(h_next)"
ALWAYS = "go_on = Identity(go)"
H = (FRAME, "h", "h0", "h_next")


def loop(
    *steps: str,
    count: str = "n",
    go: str = "yes",
    states: tuple[tuple[str, str, str, str], ...] = (H,),
    y: str = "y",
    y_type: str = FRAME,
    name: str = "walk",
) -> str:
    """A Loop; a state is its type, its name, what it starts from and its next value; the last is `<name>_last`."""
    ins = "".join(f", {kind} {state}" for kind, state, _, _ in states)
    outs = "".join(f", {kind} {after}" for kind, _, _, after in states)
    finals = "".join(f"{state}_of_{name}, " for _, state, _, _ in states)
    inits = "".join(f", {init}" for _, _, init, _ in states)
    inside = "\n".join(steps)
    return (
        f"[{name}] {finals}{y} = Loop <body = step (int64 i, bool go{ins}) => (bool go_on{outs}, {y_type} y_t) "
        f"{{ {inside} }}> ({count}, {go}{inits})"
    )


def counted(init: str = "zero", kind: str = "int64", name: str = "k") -> tuple[str, str, str, str]:
    return (kind, name, init, f"{name}_next")


def proto_of(text: str, inputs: str = "", y: str = f"float[frames,{BATCH},{WIDTH}] y") -> ModelProto:
    """The model of these nodes, which may use what stands below and in `_CONSTANTS`."""
    rng = np.random.default_rng(5)
    arrays = {
        "w": rng.normal(0, 0.5, (WIDTH, WIDTH)),
        "w2": rng.normal(0, 0.5, (WIDTH, WIDTH)),
        "table": rng.normal(0, 1, (16, WIDTH)),
        "kernel": rng.normal(0, 0.5, (WIDTH, WIDTH, 3)),
        "W": rng.normal(0, 0.5, (1, 3 * WIDTH, WIDTH)),
        "R": rng.normal(0, 0.5, (1, 3 * WIDTH, WIDTH)),
        "W4": rng.normal(0, 0.5, (1, 4 * WIDTH, WIDTH)),
        "R4": rng.normal(0, 0.5, (1, 4 * WIDTH, WIDTH)),
        "W2": rng.normal(0, 0.5, (2, 3 * WIDTH, WIDTH)),
        "R2": rng.normal(0, 0.5, (2, 3 * WIDTH, WIDTH)),
        "before": np.full((1, BATCH, WIDTH), 0.5),
        "w_lstm": rng.normal(0, 0.5, (2 * WIDTH, 4 * WIDTH)),
        "line": rng.normal(0, 0.5, (BATCH, BATCH, 3)),
        "h0": np.zeros((BATCH, WIDTH)),
        "small": np.full((BATCH, WIDTH), 0.25),
    }
    head = f"m (float[time,{BATCH},{WIDTH}] x{inputs}) => ({y})"
    model = parse_model(f'<ir_version: 8, opset_import: ["": 20]> {head} {{ {_CONSTANTS} {text} }}')
    model.graph.initializer.extend(numpy_helper.from_array(a.astype(np.float32), name) for name, a in arrays.items())
    return model


def _gru(x: str, y: str, name: str = "gru", **attributes: str) -> str:
    more = "".join(f", {key}={value}" for key, value in attributes.items())
    return f"[{name}] {y}_4, {y}_final = GRU<hidden_size={WIDTH}{more}>({x}, W, R) {y} = Squeeze({y}_4, second)"


def _at(index: str) -> str:
    return f"f = Gather<axis=0>(x, {index})"


_KERAS_STEP = "k_next = Add(k, one)  time_next = Add(time, one)  go_on = Less(k_next, n)"
_WEIGHTS = (f"float[{WIDTH},{WIDTH}]", "v", "w", "v_next")
_FROM_THE_SECOND = "at = Add(i, one)  now = Gather<axis=0>(x, at)  old = Gather<axis=0>(x, i)  f = Sub(now, old)"

EXACT: dict[str, str] = {
    "plain walk": loop(_at("i"), CELL, ALWAYS),
    "own counter": loop(
        _at("k"), CELL, "k_next = Add(k, one)  go_on = Less(k_next, n)", count="many", states=(counted(), H)
    ),
    "own counter of int32": "short = Cast<to=6>(one)  none = Cast<to=6>(zero)"
    + loop(
        _at("k"), CELL, "k_next = Add(k, short)  long = Cast<to=7>(k_next)  go_on = Less(long, n)", count="many",
        states=(counted("none", kind="int32"), H),
    ),
    "two counters": loop(
        _at("time"), CELL, _KERAS_STEP, count="many", states=(counted(), counted(name="time"), H)
    ),
    "weights are states": loop(
        _at("k"), "p = MatMul(h, v)  s = Add(f, p)  h_next = Tanh(s)  y_t = Identity(h_next)  v_next = Identity(v)",
        "k_next = Add(k, one)  go_on = Less(k_next, n)", count="many", states=(counted(), _WEIGHTS, H),
    ),
    "writes by index": "blank = ConstantOfShape(sizes)"
    + loop(
        _at("time"), CELL, _KERAS_STEP,
        "place = Reshape(time, corner)  row = Unsqueeze(h_next, first_axis)"
        "  results_next = ScatterND(results, place, row)",
        count="many",
        states=(
            counted(), counted(name="time"), (f"float[time,{BATCH},{WIDTH}]", "results", "blank", "results_next"), H,
        ),
        y="unused",
    ) + "y = Identity(results_of_walk)",
    "masked": loop(
        _at("time"), "m = Gather<axis=0>(mask, time)  wide = Unsqueeze(m, second)",
        "p = MatMul(h, w)  s = Add(f, p)  new = Tanh(s)  h_next = Where(wide, new, h)",
        "y_t = Where(wide, new, out)  out_next = Identity(y_t)", _KERAS_STEP, count="many",
        states=(counted(), counted(name="time"), (FRAME, "out", "h0", "out_next"), H),
    ),
    "step number as a number": loop(
        _at("i"), "number = Cast<to=1>(i)  phase = Sin(number)  g = Add(f, phase)",
        CELL.replace("Add(f, p)", "Add(g, p)"), ALWAYS,
    ),
    "step number in a comparison": loop(
        _at("i"), "early = Less(i, three)  g = Where(early, small, f)", CELL.replace("Add(f, p)", "Add(g, p)"), ALWAYS
    ),
    "parity of the step": loop(
        _at("i"), "rest = Mod(i, two)  even = Equal(rest, zero)  new_f = Neg(f)  g = Where(even, f, new_f)",
        CELL.replace("Add(f, p)", "Add(g, p)"), ALWAYS,
    ),
    "row of a table": loop(
        _at("i"), "row = Gather<axis=0>(table, i)  g = Add(f, row)", CELL.replace("Add(f, p)", "Add(g, p)"), ALWAYS
    ),
    "row of a table, before the frame": loop(
        "row = Gather<axis=0>(table, i)", _at("i"), "g = Add(f, row)", CELL.replace("Add(f, p)", "Add(g, p)"), ALWAYS
    ),
    "row of a table, round and round": loop(
        _at("i"), "at = Mod(i, three)  row = Gather<axis=0>(table, at)  g = Add(f, row)",
        CELL.replace("Add(f, p)", "Add(g, p)"), ALWAYS,
    ),
    "counter from 3": loop(
        _at("i"), "number = Cast<to=1>(k)  phase = Sin(number)  g = Add(f, phase)  k_next = Add(k, two)",
        CELL.replace("Add(f, p)", "Add(g, p)"), ALWAYS, states=(counted("three"), H),
    ),
    "step number is an output": loop(
        _at("i"), CELL.replace("y_t = Identity(h_next)", "number = Cast<to=1>(i)  y_t = Add(h_next, number)"), ALWAYS
    ),
    "frame before, Max": loop("b = Sub(i, one)  at = Max(b, zero)", _at("at"), CELL, ALWAYS),
    "frame before, Clip": loop("b = Sub(i, one)  at = Clip(b, zero)", _at("at"), CELL, ALWAYS),
    "frame before, Relu": loop("b = Sub(i, one)  at = Relu(b)", _at("at"), CELL, ALWAYS),
    "frame before, place by Where": loop(
        "b = Sub(i, one)  later = Greater(i, zero)  at = Where(later, b, zero)", _at("at"), CELL, ALWAYS
    ),
    "frame before, frame by Where": loop(
        "at = Sub(i, one)  g = Gather<axis=0>(x, at)  later = Greater(i, zero)  f = Where(later, g, small)",
        CELL, ALWAYS,
    ),
    "frame before, frame by Where, other way round": loop(
        "at = Sub(i, one)  g = Gather<axis=0>(x, at)  is_first = Equal(i, zero)  f = Where(is_first, small, g)",
        CELL, ALWAYS,
    ),
    "frame before, If": loop(
        "later = Greater(i, zero)",
        f"f = If(later) <then_branch = t () => ({FRAME} a) {{ at = Sub(i, one)  a = Gather<axis=0>(x, at) }}, "
        f"else_branch = e () => ({FRAME} c) {{ c = Identity(small) }}>",
        CELL, ALWAYS,
    ),
    "frame before and this one": loop(
        "b = Sub(i, one)  at = Max(b, zero)  old = Gather<axis=0>(x, at)  now = Gather<axis=0>(x, i)",
        "f = Sub(now, old)", CELL, ALWAYS,
    ),
    "two frames before": loop("b = Sub(i, two)  at = Max(b, zero)", _at("at"), CELL, ALWAYS),
    "frame before by own counter": loop(
        "b = Sub(k, one)  at = Max(b, zero)", _at("at"), CELL, "k_next = Add(k, one)  go_on = Less(k_next, n)",
        count="many", states=(counted(), H),
    ),
    "padded by a frame before": "padded = Concat<axis=0>(before, x)"
    + loop("f = Gather<axis=0>(padded, i)", CELL, ALWAYS),
    "frame before as a state": loop(
        "now = Gather<axis=0>(x, i)  f = Sub(now, old)  old_next = Identity(now)", CELL, ALWAYS,
        states=((FRAME, "old", "h0", "old_next"), H),
    ),
    "next frame, Min": loop("a = Add(i, one)  at = Min(a, last)", _at("at"), CELL, ALWAYS),
    "next frame, one step less": loop("at = Add(i, one)", _at("at"), CELL, ALWAYS, count="last"),
    "from the second frame": loop(_FROM_THE_SECOND, CELL, ALWAYS, count="last"),
    "two frames ahead, Min": loop("a = Add(i, two)  at = Min(last, a)", _at("at"), CELL, ALWAYS),
    "frame before, from the fourth on": loop(
        "b = Sub(i, one)  later = Greater(i, two)  at = Where(later, b, zero)", _at("at"), CELL, ALWAYS
    ),
    "frame before, index with an axis": loop(
        "b = Sub(i, one)  c = Max(b, zero)  at = Unsqueeze(c, first_axis)  g = Gather<axis=0>(x, at)",
        "f = Squeeze(g, first_axis)", CELL, ALWAYS,
    ),
    "frame before, used behind work": loop(
        "at = Sub(i, one)  g = Gather<axis=0>(x, at)  m = MatMul(g, w2)  is_first = Less(i, one)",
        "f = Where(is_first, small, m)", CELL, ALWAYS,
    ),
    "frame before, If not": loop(
        "is_first = Equal(i, zero)",
        f"f = If(is_first) <then_branch = t () => ({FRAME} c) {{ c = Identity(small) }}, "
        f"else_branch = e () => ({FRAME} a) {{ at = Sub(i, one)  b = Gather<axis=0>(x, at)  a = Neg(b) }}>",
        CELL, ALWAYS,
    ),
    "frame before and after, If and Min": loop(
        "a = Add(i, one)  at = Min(a, last)  next = Gather<axis=0>(x, at)  later = Greater(i, zero)",
        f"g = If(later) <then_branch = t () => ({FRAME} q) {{ o = Sub(i, one)  q = Gather<axis=0>(x, o) }}, "
        f"else_branch = e () => ({FRAME} c) {{ c = Identity(small) }}>  f = Sub(next, g)",
        CELL, ALWAYS,
    ),
    "batch first": "turned = Transpose<perm=[1,0,2]>(x)"
    + loop("b = Sub(i, one)  at = Max(b, zero)  f = Gather<axis=1>(turned, at)", CELL, ALWAYS),
    "LSTM written by hand": loop(
        _at("k"), "xh = Concat<axis=1>(f, h)  z = MatMul(xh, w_lstm)  a, b, c, d = Split<axis=1, num_outputs=4>(z)",
        "e = Sigmoid(a)  g = Sigmoid(b)  o = Sigmoid(d)  u = Tanh(c)  eu = Mul(e, u)  gs = Mul(g, s)",
        "s_next = Add(gs, eu)  t = Tanh(s_next)  h_next = Mul(o, t)  y_t = Identity(h_next)",
        "k_next = Add(k, one)  go_on = Less(k_next, n)", count="many",
        states=(counted(), (FRAME, "s", "h0", "s_next"), H),
    ),
    "GRU of Keras, stacked": loop(
        _at("time"), CELL, _KERAS_STEP, count="many", states=(counted(), counted(name="time"), H), y="z"
    )
    + loop(
        "f = Gather<axis=0>(z, time)", CELL, _KERAS_STEP, count="many",
        states=(counted(), counted(name="time"), H), name="walk_again",
    ),
    "convolution in each step": "wide = Unsqueeze(x, second)  h0_wide = Unsqueeze(h0, first_axis)"
    + loop(
        "f = Gather<axis=0>(wide, k)  c = Conv<pads=[1,1]>(f, line)  p = Conv<pads=[1,1]>(h, line)  s = Add(c, p)",
        "h_next = Tanh(s)  y_t = Squeeze(h_next, first_axis)  k_next = Add(k, one)  go_on = Less(k_next, n)",
        count="many", states=(counted(), (f"float[1,{BATCH},{WIDTH}]", "h", "h0_wide", "h_next")),
    ),
    "loop in each step": loop(
        _at("i"), "inner = Loop <body = fade (int64 j, bool on, float[2,4] a) => (bool still, float[2,4] b) "
        "{ still = Identity(on)  b = Mul(a, limit) }> (three, go, f)",
        CELL.replace("Add(f, p)", "Add(inner, p)"), ALWAYS,
    ),
    "two loops": loop(_at("i"), CELL, ALWAYS, y="z")
    + loop("f = Gather<axis=0>(z, i)", CELL, ALWAYS, name="walk_again"),
    "starts from the first frame": "start = Gather<axis=0>(x, zero)  h_start = Tanh(start)"
    + loop(_at("i"), CELL, ALWAYS, states=((FRAME, "h", "h_start", "h_next"),)),
    "starts from the first frame, Slice": "cut = Slice(x, first_axis, second, first_axis)"
    "  start = Squeeze(cut, first_axis)  h_start = MatMul(start, w2)"
    + loop(_at("i"), CELL, ALWAYS, states=((FRAME, "h", "h_start", "h_next"),)),
    "smoothed from the first frame on": "start = Gather<axis=0>(x, zero)"
    + loop(
        _at("i"), "a = Mul(h, limit)  d = Sub(f, h)  e = Mul(d, limit)  h_next = Add(a, e)  y_t = Identity(h_next)",
        ALWAYS, states=((FRAME, "h", "start", "h_next"),),
    ),
    "sum over time": "c = CumSum(x, zero)" + _gru("c", "y"),
    "sum over time, without the frame itself": "c = CumSum<exclusive=1>(x, zero)" + _gru("c", "y"),
    "sum over time alone": "y = CumSum(x, zero)",
    "causal convolution": "a = Transpose<perm=[1,2,0]>(x)  c = Conv<pads=[2,0]>(a, kernel)"
    "  d = Transpose<perm=[2,0,1]>(c)" + _gru("d", "y"),
    "loop behind a centred convolution": "a = Transpose<perm=[1,2,0]>(x)  c = Conv<pads=[1,1]>(a, kernel)"
    "  d = Transpose<perm=[2,0,1]>(c)"
    + loop(
        "f = Gather<axis=0>(d, i)  number = Cast<to=1>(i)  g = Add(f, number)",
        CELL.replace("Add(f, p)", "Add(g, p)"), ALWAYS,
    ),
    "GRU behind a centred convolution": "a = Transpose<perm=[1,2,0]>(x)  c = Conv<pads=[1,1]>(a, kernel)"
    "  d = Transpose<perm=[2,0,1]>(c)" + _gru("d", "y"),
}  # fmt: skip

REFUSED: dict[str, tuple[str, str, str]] = {
    "backwards by hand": (loop("at = Sub(last, i)", _at("at"), CELL, ALWAYS), "walk", "backwards"),
    "counter that counts down": (
        loop(_at("k"), CELL, "k_next = Sub(k, one)  go_on = GreaterOrEqual(k_next, zero)", count="many",
             states=(counted("last"), H)),
        "walk", "",
    ),
    "flipped": (
        "back = Slice(x, minus_one, very_first, first_axis, minus_one)" + loop(
            "f = Gather<axis=0>(back, i)", CELL, ALWAYS),
        "", "turns the sequence round",
    ),
    "LSTM of a flipped input": (
        "[flip] back = Slice(x, minus_one, very_first, first_axis, minus_one)"
        f"[lstm] y_4 = LSTM<hidden_size={WIDTH}>(back, W4, R4)  y = Squeeze(y_4, second)",
        "flip", "turns the sequence round",
    ),
    "GRU backwards": (_gru("x", "y", direction='"reverse"'), "gru_reverse", "backwards"),
    "Keras' go_backwards": (
        _gru("x", "z", direction='"reverse"') + "[flip] y = Slice(z, minus_one, very_first, first_axis, minus_one)",
        "", "",
    ),
    "frame before, round to the last": (loop("at = Sub(i, one)", _at("at"), CELL, ALWAYS), "walk", "last frame"),
    "two frames before, guarded for one": (
        loop("at = Sub(i, two)  g = Gather<axis=0>(x, at)  later = Greater(i, zero)  f = Where(later, g, small)",
             CELL, ALWAYS),
        "walk", "last frame",
    ),
    "frame before, guarded the wrong way": (
        loop("at = Sub(i, one)  g = Gather<axis=0>(x, at)  later = Greater(i, zero)  f = Where(later, small, g)",
             CELL, ALWAYS),
        "walk", "last frame",
    ),
    "frame before, If that reads too early": (
        loop("later = GreaterOrEqual(i, zero)",
             f"f = If(later) <then_branch = t () => ({FRAME} a) {{ at = Sub(i, one)  a = Gather<axis=0>(x, at) }}, "
             f"else_branch = e () => ({FRAME} c) {{ c = Identity(small) }}>",
             CELL, ALWAYS),
        "walk", "",
    ),
    "never before the second frame": (
        loop("b = Sub(i, one)  c = Max(b, one)  at = Min(c, last)", _at("at"), CELL, ALWAYS), "walk", "",
    ),
    "next frame, round to the first": (
        loop("a = Add(i, one)  at = Mod(a, n)", _at("at"), CELL, ALWAYS), "walk", "",
    ),
    "a fixed number of steps": (loop(_at("i"), CELL, ALWAYS, count="three"), "walk", ""),
    "every other frame": (
        "half = Div(n, two)" + loop("at = Mul(i, two)", _at("at"), CELL, ALWAYS, count="half"), "walk", "",
    ),
    "goes on while small": (
        loop(_at("k"), CELL, "k_next = Add(k, one)  a = ReduceMax<keepdims=0>(h_next)  b = Less(a, limit)",
             "c = Less(k_next, n)  go_on = And(b, c)", count="many", states=(counted(), H)),
        "walk", "condition",
    ),
    "last step is another": (
        loop(_at("i"), "is_last = Equal(i, last)  g = Where(is_last, small, f)",
             CELL.replace("Add(f, p)", "Add(g, p)"), ALWAYS),
        "walk", "number of frames",
    ),
    "step as a part of all": (
        loop(_at("i"), "a = Cast<to=1>(i)  b = Cast<to=1>(n)  part = Div(a, b)  g = Add(f, part)",
             CELL.replace("Add(f, p)", "Add(g, p)"), ALWAYS),
        "walk", "number of frames",
    ),
    "all frames in each step": (
        loop(_at("i"), "all = ReduceMean<keepdims=0>(x, first_axis)  g = Add(f, all)",
             CELL.replace("Add(f, p)", "Add(g, p)"), ALWAYS),
        "walk", "sees all of 'x'",
    ),
    "last state beside each frame": (
        loop(_at("i"), CELL, ALWAYS, y="z") + "y = Add(z, h_of_walk)", "", "after the last",
    ),
    "second loop starts from the end of the first": (
        loop(_at("i"), CELL, ALWAYS, y="z")
        + loop(_at("i"), CELL, ALWAYS, states=((FRAME, "h", "h_of_walk", "h_next"),), name="decoder"),
        "decoder", "starts from",
    ),
    "starts from the last frame": (
        "start = Gather<axis=0>(x, last)"
        + loop(_at("i"), CELL, ALWAYS, states=((FRAME, "h", "start", "h_next"),)),
        "walk", "starts from",
    ),
    "sum over time, backwards": ("[sum] c = CumSum<reverse=1>(x, zero)" + _gru("c", "y"), "sum", ""),
    "bidirectional": (
        f"[both] a, b = GRU<hidden_size={WIDTH}, direction=\"bidirectional\">(x, W2, R2)"
        "  y = ReduceMax<keepdims=0>(a, second)",
        "both_reverse", "backwards",
    ),
}  # fmt: skip

_CENTRED = "a = Transpose<perm=[1,2,0]>(x)  c = Conv<pads=[1,1]>(a, kernel)  d = Transpose<perm=[2,0,1]>(c)"
_END = "z = Identity(h_of_walk)"

ENDS: dict[str, str] = {
    "GRU": _CENTRED + _gru("d", "y") + "z = Squeeze(y_final, first_axis)",
    "step number": _CENTRED + loop(
        "f = Gather<axis=0>(d, i)  number = Cast<to=1>(i)  g = Add(f, number)", CELL.replace("Add(f, p)", "Add(g, p)"),
        ALWAYS,
    ) + _END,
    "frame before": _CENTRED + loop(
        "b = Sub(i, one)  at = Max(b, zero)  f = Gather<axis=0>(d, at)", CELL, ALWAYS
    ) + _END,
    "starts from the first frame": _CENTRED + "start = Gather<axis=0>(d, zero)" + loop(
        "f = Gather<axis=0>(d, i)", CELL, ALWAYS, states=((FRAME, "h", "start", "h_next"),)
    ) + _END,
    "sum over time": _CENTRED + "y = CumSum(d, zero)  z = Gather<axis=0>(y, last)",
    "one step less": loop("at = Add(i, one)", _at("at"), CELL, ALWAYS, count="last") + _END,
    "next frame": loop("a = Add(i, one)  at = Min(a, last)", _at("at"), CELL, ALWAYS) + _END,
}  # fmt: skip
"""Also z, what is left after the last frame, all but the last two behind a convolution that looks a frame ahead."""

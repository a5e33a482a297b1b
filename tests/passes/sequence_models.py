"""Models with sequences, as exporters of loops that append write them."""

from __future__ import annotations

import numpy as np

from tests.passes.differential import floats, graph_of
from webrnn.ir import Graph

_STEPS = "zero = Constant<value=int64 {0}>() n = Shape(x) steps = Gather(n, zero) go = Constant<value=bool {1}>()"
_EMPTY = "empty = SequenceEmpty<dtype=1>()"
_STACK = "y = ConcatFromSequence<axis=0, new_axis=1>(all)"
_ROW = "row = Gather<axis=0>(x, i)"
_FIRST_LAST = "f = Constant<value=int64 {0}>() l = Constant<value=int64 {-1}>()"
_SEQ, _ONE = "seq(float[B,4])", "float[B,4]"

MODELS = {
    "appended": f"""g (float[T,B,4] x, {_ONE} h0) => (y, h) {{ {_STEPS} {_EMPTY}
        h, all = Loop(steps, go, h0, empty) <body = b (int64 i, bool c, {_ONE} h, {_SEQ} s) =>
            (bool c2, {_ONE} h2, {_SEQ} s2) {{
            {_ROW} sum = Add(row, h) h2 = Tanh(sum) s2 = SequenceInsert(s, h2) c2 = Identity(c) }}>
        {_STACK} }}""",
    "in_front": f"""g (float[T,B,4] x) => (y) {{ {_STEPS} {_EMPTY}
        all = Loop(steps, go, empty) <body = b (int64 i, bool c, {_SEQ} s) => (bool c2, {_SEQ} s2) {{
            {_ROW} h = Tanh(row) p = Constant<value=int64 {{0}}>() s2 = SequenceInsert(s, h, p) c2 = Identity(c) }}>
        y = ConcatFromSequence<axis=1, new_axis=1>(all) }}""",
    "not_empty_at_first": f"""g (float[T,B,4] x, {_ONE} h0) => (y, count, last) {{ {_STEPS}
        start = SequenceConstruct(h0)
        all = Loop(steps, go, start) <body = b (int64 i, bool c, {_SEQ} s) => (bool c2, {_SEQ} s2) {{
            {_ROW} h = Tanh(row) s2 = SequenceInsert(s, h) c2 = Identity(c) }}>
        y = ConcatFromSequence<axis=0>(all) count = SequenceLength(all) {_FIRST_LAST} last = SequenceAt(all, l) }}""",
    "unbound": f"""g (float[B,T,4] x, {_ONE} h0) => (y) {{ {_EMPTY} one = Constant<value=int64 {{1}}>()
        rows = SplitToSequence<axis=1, keepdims=0>(x, one) steps = SequenceLength(rows)
        go = Constant<value=bool {{1}}>()
        h, all = Loop(steps, go, h0, empty) <body = b (int64 i, bool c, {_ONE} h, {_SEQ} s) =>
            (bool c2, {_ONE} h2, {_SEQ} s2) {{ row = SequenceAt(rows, i)
            sum = Add(row, h) h2 = Tanh(sum) s2 = SequenceInsert(s, h2) c2 = Identity(c) }}>
        y = ConcatFromSequence<axis=1, new_axis=1>(all) }}""",
    "list_of_states": f"""g (float[T,B,4] x, float[2,B,4] h0) => (y) {{ {_STEPS}
        one = Constant<value=int64 {{1}}>() start = SplitToSequence<axis=0, keepdims=0>(h0, one)
        all = Loop(steps, go, start) <body = b (int64 i, bool c, {_SEQ} s) => (bool c2, {_SEQ} s2) {{
            {_ROW} {_FIRST_LAST} a = SequenceAt(s, f) b = SequenceAt(s, l) a2 = Add(row, a) a3 = Tanh(a2)
            b2 = Add(a3, b) b3 = Tanh(b2) s2 = SequenceConstruct(a3, b3) c2 = Identity(c) }}>
        y = ConcatFromSequence<axis=0, new_axis=1>(all) }}""",
    "window": f"""g (float[T,B,4] x, {_ONE} h0) => (y) {{ {_STEPS} start = SequenceConstruct(h0, h0, h0)
        all, y = Loop(steps, go, start) <body = b (int64 i, bool c, {_SEQ} s) => (bool c2, {_SEQ} s2, float[3,B,4] w) {{
            {_ROW} {_FIRST_LAST} s1 = SequenceErase(s, f) s2 = SequenceInsert(s1, row)
            w = ConcatFromSequence<axis=0, new_axis=1>(s2) c2 = Identity(c) }}> }}""",
    "two_in_each_step": f"""g (float[T,B,4] x) => (y, count) {{ {_STEPS} {_EMPTY}
        all = Loop(steps, go, empty) <body = b (int64 i, bool c, {_SEQ} s) => (bool c2, {_SEQ} s2) {{
            {_ROW} h = Tanh(row) s1 = SequenceInsert(s, row) s2 = SequenceInsert(s1, h) c2 = Identity(c) }}>
        y = ConcatFromSequence<axis=-1, new_axis=1>(all) count = SequenceLength(all) }}""",
    "loop_in_a_loop": f"""g (float[T,3,B,4] x) => (y) {{ {_STEPS} {_EMPTY}
        all = Loop(steps, go, empty) <body = b (int64 i, bool c, {_SEQ} s) => (bool c2, {_SEQ} s2) {{
            {_ROW} three = Constant<value=int64 {{3}}>()
            s2 = Loop(three, c, s) <body = d (int64 j, bool e, {_SEQ} u) => (bool e2, {_SEQ} u2) {{
                cell = Gather<axis=0>(row, j) h = Tanh(cell) u2 = SequenceInsert(u, h) e2 = Identity(e) }}>
            c2 = Identity(c) }}>
        {_STACK} }}""",
    "in_both_branches": f"""g (float[T,B,4] x, bool p) => (y) {{ {_STEPS} {_EMPTY}
        all = Loop(steps, go, empty) <body = b (int64 i, bool c, {_SEQ} s) => (bool c2, {_SEQ} s2) {{ {_ROW}
            s2 = If(p) <then_branch = t () => ({_SEQ} o) {{ h = Tanh(row) o = SequenceInsert(s, h) }},
                        else_branch = e () => ({_SEQ} o) {{ h = Relu(row) o = SequenceInsert(s, h) }}>
            c2 = Identity(c) }}>
        {_STACK} }}""",
    "length_so_far": f"""g (float[T,B,4] x) => (y) {{ {_STEPS} {_EMPTY}
        all = Loop(steps, go, empty) <body = b (int64 i, bool c, {_SEQ} s) => (bool c2, {_SEQ} s2) {{
            k = SequenceLength(s) row = Gather<axis=0>(x, k) h = Tanh(row) s2 = SequenceInsert(s, h)
            c2 = Identity(c) }}>
        {_STACK} }}""",
    "last_so_far": f"""g (float[T,B,4] x, {_ONE} h0) => (y) {{ {_STEPS} start = SequenceConstruct(h0)
        all = Loop(steps, go, start) <body = b (int64 i, bool c, {_SEQ} s) => (bool c2, {_SEQ} s2) {{
            {_ROW} {_FIRST_LAST} h = SequenceAt(s, l) sum = Add(row, h) h2 = Tanh(sum) s2 = SequenceInsert(s, h2)
            c2 = Identity(c) }}>
        {_STACK} }}""",
    "last_in_a_branch": f"""g (float[T,2,4] x, float[2,4] h0) => (y) {{ {_STEPS} {_EMPTY}
        all = Loop(steps, go, empty) <body = b (int64 i, bool c, seq(float[2,4]) s) =>
            (bool c2, seq(float[2,4]) s2) {{ z = Constant<value=int64 {{0}}>() later = Greater(i, z)
            h = If(later) <then_branch = t () => (float[2,4] o) {{ one = Constant<value=int64 {{1}}>()
                                k = Sub(i, one) o = SequenceAt(s, k) }},
                           else_branch = e () => (float[2,4] o) {{ o = Identity(h0) }}>
            {_ROW} sum = Add(row, h) h2 = Tanh(sum) s2 = SequenceInsert(s, h2) c2 = Identity(c) }}>
        {_STACK} }}""",
    "read_so_far": f"""g (float[T,B,4] x) => (y) {{ {_STEPS} start = SplitToSequence<axis=0, keepdims=0>(x)
        all = Loop(steps, go, start) <body = b (int64 i, bool c, {_SEQ} s) => (bool c2, {_SEQ} s2) {{
            h = SequenceAt(s, i) t = Tanh(h) s2 = SequenceInsert(s, t) c2 = Identity(c) }}>
        {_STACK} }}""",
    "attended_so_far": f"""g (float[T,2,4] x) => (y) {{ {_STEPS} {_EMPTY}
        all = Loop(steps, go, empty) <body = b (int64 i, bool c, seq(float[2,4]) s) =>
            (bool c2, seq(float[2,4]) s2) {{ {_ROW} p = Constant<value=int64 {{0}}>() t = Tanh(row)
            s1 = SequenceInsert(s, t, p) m = ConcatFromSequence<axis=0, new_axis=1>(s1)
            a = Constant<value=int64[1] {{0}}>() f = ReduceSum<keepdims=0>(m, a) s2 = SequenceInsert(s, f, p)
            c2 = Identity(c) }}>
        {_STACK} }}""",
    "parts_of_known_lengths": """g (float[2,7,4] x) => (y, z, count) {
        three = Constant<value=int64 {3}>() parts = SplitToSequence<axis=1>(x, three)
        two = Constant<value=int64 {2}>() y = SequenceAt(parts, two) count = SequenceLength(parts)
        fewer = SequenceErase(parts, two) z = ConcatFromSequence<axis=1>(fewer) }""",
    "parts_of_equal_lengths": """g (float[2,T,4] x, int64 k) => (y, count) {
        two = Constant<value=int64 {2}>() twice = Concat<axis=1>(x, x) parts = SplitToSequence<axis=2>(twice, two)
        y = SequenceAt(parts, k) count = SequenceLength(parts) }""",
    "chosen_while_running": """g (float[2,4] x, int64 k) => (y, z) { t = Tanh(x) r = Relu(x)
        all = SequenceConstruct(x, t, r) y = SequenceAt(all, k)
        p = Constant<value=int64 {1}>() more = SequenceInsert(all, y, p) z = ConcatFromSequence<axis=1>(more) }""",
    "optional": """g (float[B,4] x) => (y, there) { o = Optional(x) there = OptionalHasElement(o)
        y = OptionalGetElement(o) }""",
}

MODELS |= {
    "read_so_far": f"""g (float[T,B,4] x) => (y) {{ {_STEPS} start = SplitToSequence<axis=0, keepdims=0>(x)
        all = Loop(steps, go, start) <body = b (int64 i, bool c, {_SEQ} s) => (bool c2, {_SEQ} s2) {{
            h = SequenceAt(s, i) t = Tanh(h) s2 = SequenceInsert(s, t) c2 = Identity(c) }}>
        {_STACK} }}""",
    "as_many_as_the_data_say": f"""g (float[T,2,4] x) => (y) {{ {_STEPS} {_EMPTY} two = Constant<value=int64 {{3}}>()
        all = Loop(steps, go, empty) <body = b (int64 i, bool c, seq(float[2,4]) s) => (bool c2, seq(float[2,4]) s2) {{
            {_ROW} zero = Constant<value=float {{0}}>() c2 = Identity(c)
            s2 = Loop(two, c, s) <body = inner (int64 j, bool d, seq(float[2,4]) r) =>
                (bool d2, seq(float[2,4]) r2) {{
                h = Tanh(row) r2 = SequenceInsert(r, h) sum = ReduceSum<keepdims=0>(row) d2 = Greater(sum, zero) }}> }}>
        y = ConcatFromSequence<axis=0>(all) }}""",
}
"""The tensor of all elements so far is a state."""

STAY = {
    "of_changing_shape": (
        f"""g (float[T,2,4] x, float[2,4] h0) => (y) {{ {_STEPS} {_EMPTY}
        h, all = Loop(steps, go, h0, empty) <body = b (int64 i, bool c, float[n,4] h, seq(float[n,4]) s) =>
            (bool c2, float[m,4] h2, seq(float[m,4]) s2) {{
            {_ROW} h2 = Concat<axis=0>(row, h) s2 = SequenceInsert(s, h2) c2 = Identity(c) }}>
        y = ConcatFromSequence<axis=0>(all) }}""",
        "the shape of what it inserts may change from step to step",
    ),
    "in_one_branch": (
        f"""g (float[T,B,4] x) => (y) {{ {_STEPS} {_EMPTY}
        all = Loop(steps, go, empty) <body = b (int64 i, bool c, {_SEQ} s) => (bool c2, {_SEQ} s2) {{ {_ROW}
            one = Constant<value=int64 {{1}}>() p = Less(i, one)
            s2 = If(p) <then_branch = t () => ({_SEQ} o) {{ h = Tanh(row) o = SequenceInsert(s, h) }},
                        else_branch = e () => ({_SEQ} o) {{ o = Identity(s) }}>
            c2 = Identity(c) }}>
        {_STACK} }}""",
        "it is not known how many elements a step leaves",
    ),
    "read_so_far_of_open_size": (
        f"""g (float[T,B,4] x) => (y) {{ {_STEPS} {_EMPTY}
        all = Loop(steps, go, empty) <body = b (int64 i, bool c, {_SEQ} s) => (bool c2, {_SEQ} s2) {{ {_ROW}
            s1 = SequenceInsert(s, row) z = Constant<value=int64 {{0}}>() h = SequenceAt(s1, z) t = Tanh(h)
            s2 = SequenceInsert(s, t) c2 = Identity(c) }}>
        {_STACK} }}""",
        "it reads the sequence that it inserts into",
    ),
}
"""Models whose loops keep their sequences, and why."""

SIZES = {"T": 5, "B": 3}


def model(name: str) -> tuple[Graph, list[np.ndarray]]:
    """A graph as it was read, and inputs for it."""
    graph = graph_of(MODELS[name] if name in MODELS else STAY[name][0], 17)
    return graph, [_argument(value) for value in graph.inputs]


def _argument(value) -> np.ndarray:
    if value.name == "p":
        return np.array(True)
    if value.name == "k":
        return np.array(-1, np.int64)
    return floats(*(dim if isinstance(dim, int) else SIZES[str(dim)] for dim in value.shape))

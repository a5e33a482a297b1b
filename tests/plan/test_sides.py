"""Two parts of a plan at the same time: which ones become the blocks of a `beside`, and that no others are let run."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import helper

from tests.backends import BACKENDS
from tests.onnx.models import floats, initializer, model
from tests.passes.random_graphs import random_graph
from tests.plan.corpus import LOOP, _graphs, directions
from tests.plan.handmade import Handmade
from tests.plan.harness import IN_PARTS, arguments_of, assert_same_bits, graph_of, loaded, plan_of, run_plan
from tests.plan.test_fused_sequences import array
from tests.plan.test_verify import refused_by_c, refused_by_python
from webrnn.engine.kernels.loading import load
from webrnn.engine.kernels.team import LEAST_WORK
from webrnn.engine.limits import Limits
from webrnn.engine.programs.plan_program import PlanProgram
from webrnn.errors import LimitError, PlanError
from webrnn.ir import Graph, Symbol
from webrnn.onnx.reader import read_model
from webrnn.passes import run_passes
from webrnn.plan import opcodes
from webrnn.plan.decode import decode
from webrnn.plan.instructions import CODES
from webrnn.plan.lower import lower
from webrnn.plan.lowering import NotLowered
from webrnn.plan.sides import are_apart
from webrnn.plan.views import Storage, dense_view

OPS = ("RNN", "GRU", "LSTM")
BEFORE: dict[str, dict[str, int]] = {"RNN": {}, "GRU": {"linear_before_reset": 1}, "LSTM": {}}
"""What makes one instruction of a whole sequence."""
N, T = Symbol("n"), Symbol("t")


def sides_of(graph: Graph, least: int = LEAST_WORK, options: frozenset[str] = frozenset()) -> list[list[list[str]]]:
    """For each `beside` the names of the instructions of its blocks."""
    draft = lower(graph.copy(), options, least_side=least)
    return [[[each.name for each in block] for block in one.blocks] for one in draft.code if one.name == "beside"]


# --- what is made


@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize("sizes", [{}, {"steps": 30, "batch": 2}, {"steps": 100, "batch": 1}, {"batch": 1}])
def test_directions_are_side_by_side(op, sizes):
    (blocks,) = sides_of(directions(op, 128, 128, **BEFORE[op], **sizes))
    one, two = ([name for name in block if name in ("loop", "gemm") or name.endswith("_sequence")] for block in blocks)
    assert one == two
    assert one[-1] == f"{op.lower()}_sequence"
    assert ("loop" in one) == (sizes.get("steps") != 30)


def test_loops_are_side_by_side():
    for op in OPS:
        (blocks,) = sides_of(directions(op, 128, 128), options=LOOP)
        assert all("loop" in block for block in blocks)


def test_small_directions_are_not():
    assert not sides_of(directions("GRU", 8, 8))


def branches(b, x, y, *widths):
    """A product of each."""
    return [
        b.op("Tanh", b.op("MatMul", x, b.constant(array(9, width)))) for x, width in zip((x, y), widths, strict=True)
    ]


def test_products_of_branches_are_left_to_parts():
    graph = graph_of(lambda b, x, y: branches(b, x, y, 512, 512), "f 64 9", "f 64 9")
    assert not sides_of(graph)
    assert sides_of(graph, 0)


def layers(*widths: int) -> Graph:
    """Recurrent layers that do not depend on each other, and one behind them."""
    nodes, weights = [], []
    for index, width in enumerate(widths):
        for name, shape in (("W", (1, 3 * width, 64)), ("R", (1, 3 * width, width))):
            weights.append(initializer(f"{name}{index}", array(*shape, seed=index)))
        nodes.append(helper.make_node("GRU", ["x", f"W{index}", f"R{index}"], [f"y{index}"], hidden_size=width))
    nodes.append(helper.make_node("Concat", [f"y{index}" for index in range(len(widths))], ["y"], axis=3))
    proto = model(nodes, [floats("x", ["t", "n", 64])], [floats("y", None)], weights)
    graph = read_model(proto.SerializeToString())
    run_passes(graph)
    return graph


@pytest.mark.parametrize(
    ("widths", "count"), [((96, 96), 1), ((96, 64), 1), ((96, 16), 0), ((96, 72, 64), 1), ((96,), 0)]
)
def test_branches_of_about_the_same_work(widths, count):
    assert len(sides_of(layers(*widths))) == count


def test_what_is_made_holds_for_the_same_sizes():
    """Blocks that are apart for all sizes are found to be so for each."""
    tried = 0
    graphs = [(name, *graph) for name, graph in _graphs().items()]
    for seed in range(60):
        graph = random_graph(seed).graph
        run_passes(graph)
        graphs.append((f"random {seed}", graph, frozenset()))
    for name, graph, options in graphs:
        try:
            plain, beside = plan_of(graph, options), plan_of(graph, options, least_side=0)
        except NotLowered:
            continue
        n_symbols = decode(plain).header["symbols"]
        for number in (0, 1, 2, 3, 7, 24, 25, 49, 1000):
            for symbols in ([number] * n_symbols, [number, 1, 2][:n_symbols], [2, number, 1][:n_symbols]):
                assert refused_by_c(beside, symbols) == refused_by_c(plain, symbols), (name, symbols)
                tried += beside != plain
    assert tried > 100


def test_views_of_one_buffer():
    one, two = (dense_view(Storage("arena", "f32", 100), (T, 2, N, 5)).without_axis(1, index) for index in (0, 1))
    assert are_apart(one, two)
    assert are_apart(one.sliced(0, T - 1, T, -1), two)
    assert not are_apart(one, one)
    assert not are_apart(one, one.sliced(0, 1, T - 1))
    assert are_apart(one.moving(0, 20 * N), two.moving(0, -10 * N))
    assert not are_apart(one.moving(0, 5 * N), two)
    assert not are_apart(one.moving(0, 15), two)
    assert not are_apart(one, dense_view(one.storage, (T, N)))
    flat = dense_view(Storage("arena", "f32", 100), (100,))
    assert are_apart(flat.sliced(0, 0, 50), flat.sliced(0, 50, 50))
    assert not are_apart(flat.sliced(0, 0, 51), flat.sliced(0, 50, 50))
    assert not are_apart(flat.sliced(0, 0, N), flat.sliced(0, T, 50))


# --- what comes out


@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize("options", [frozenset(), LOOP])
@pytest.mark.parametrize("sizes", [{"t": 60, "n": 1}, {"t": 7, "n": 8}, {"t": 30, "n": 5}, {"t": 0, "n": 2}])
def test_bits_do_not_depend_on_threads(op, options, sizes):
    graph = directions(op, 9, 4, **BEFORE[op])
    runs = [arguments_of(graph, sizes)]
    wanted = run_plan(plan_of(graph, options), "native", runs)[0]
    data = plan_of(graph, options, least_side=0)
    assert any(each.name == "beside" for each in decode(data).code)
    for spec in ("native", *IN_PARTS, *(backend for backend in BACKENDS if backend.startswith("wasm"))):
        for _ in range(3 if spec in IN_PARTS else 1):
            found = run_plan(data, spec, runs)[0]
            if loaded(spec).fused == loaded("native").fused:
                assert_same_bits(found, wanted, spec)


def test_arenas_do_not_share():
    """Two directions have twice the memory, and no slot of one is a slot of the other."""
    graph = directions("LSTM", 8, 8, steps=100, batch=3)
    plain, beside = (decode(plan_of(graph, **settings)) for settings in ({}, {"least_side": 0}))
    (blocks,) = [each.blocks for each in beside.code if each.name == "beside"]
    slots = []
    for block in blocks:
        touched: set[int] = set()
        pending = [block]
        while pending:
            for each in pending.pop():
                touched |= {beside.tensors[tensor].buffer for tensor, _ in each.tensors()}
                pending.extend(each.blocks)
        buffers = [beside.buffers[index] for index in touched]
        slots.append({buffer.place for buffer in buffers if buffer.kind == "arena"})
    assert slots[0]
    assert not slots[0] & slots[1]
    assert beside.header["slots"] == 2 * plain.header["slots"]


@pytest.mark.skipif(not IN_PARTS, reason="no native library here")
def test_steps_are_counted_together():
    graph = directions("GRU", 9, 4)
    data, arguments = plan_of(graph, least_side=0), arguments_of(graph, {"t": 60, "n": 1})
    for spec in ("native", *IN_PARTS):
        program = PlanProgram(data, loaded(spec))
        for _ in range(5):
            program.run(arguments)
            assert program.steps_taken == 120
        for most, limits in ((119, {"run_steps": 119}), (59, {"loop_steps": 59})):
            program = PlanProgram(data, loaded(spec), limits=Limits(**limits))
            for _ in range(3):
                with pytest.raises(LimitError, match=str(most)) as caught:
                    program.run(arguments)
                assert caught.value.node, caught.value
        assert PlanProgram(data, loaded(spec), limits=Limits(run_steps=120)).run(arguments)


# --- what is refused


def beside(*blocks: list[int]) -> list[int]:
    return [CODES["beside"], 2, len(blocks[0]), len(blocks[1]), *blocks[0], *blocks[1]]


def copy(x: int, y: int) -> list[int]:
    return [CODES["copy"], 2, x, y]


class _Plan(Handmade):
    """Copies between an input x, two outputs and a slot."""

    def __init__(self):
        super().__init__()
        self.x, self.y, self.z = self.external([4]), self.external([4], written=True), self.external([4], written=True)
        self.slot, self.other = self.arena([4]), self.arena([4])
        self.input("x", [4], 0)
        self.output("y", [4], 1)
        self.output("z", [4], 2)

    def part(self, tensor: int, offset: int, shape: list[int], strides: list[int]) -> int:
        """Another view of a tensor's buffer."""
        padding = [0] * (opcodes.MAX_RANK - len(shape))
        rows = [*map(self.number, shape), *padding, *map(self.number, strides), *padding]
        self.tensors.append([self.tensors[tensor][0], 0, len(shape), self.number(offset), *rows])
        return len(self.tensors) - 1

    def error(self, code: list[int], **changes) -> str:
        """What both verifiers say, which is the same on all builds."""
        self.code = code
        data = self.data(**changes)
        number = refused_by_c(data, [])
        assert bool(number) == bool(refused_by_python(data, []))
        for spec in (backend for backend in BACKENDS if backend != "numpy"):
            if number:
                with pytest.raises(PlanError):
                    PlanProgram(data, load(spec)).run([np.ones(4, np.float32)])
            else:
                PlanProgram(data, load(spec)).run([np.ones(4, np.float32)])
        return opcodes.ERROR_ROWS[number].name


def test_independent_blocks_are_accepted():
    p = _Plan()
    assert p.error(beside(copy(p.x, p.y), copy(p.x, p.z))) == "ok"
    halves = [p.part(p.y, at, [2], [1]) for at in (0, 2)]
    evens = [p.part(p.y, at, [2], [2]) for at in (0, 1)]
    two = p.part(p.x, 0, [2], [1])
    for pair in (halves, evens):
        assert p.error(beside(copy(two, pair[0]), copy(two, pair[1]))) == "ok"


def test_dependent_blocks_are_refused():
    p = _Plan()
    first, middle, odd = p.part(p.y, 0, [2], [1]), p.part(p.y, 1, [2], [1]), p.part(p.y, 1, [2], [2])
    two = p.part(p.x, 0, [2], [1])
    for code in (
        beside(copy(p.x, p.y), copy(p.y, p.z)),  # reads what the other one writes
        beside(copy(p.y, p.z), copy(p.x, p.y)),
        beside(copy(p.x, p.y), copy(p.x, p.y)),  # writes what the other one writes
        beside(copy(p.x, p.slot), copy(p.slot, p.z)),
        beside(copy(two, first), copy(two, middle)),
        beside(copy(two, middle), copy(two, odd)),
    ):
        assert p.error(code) == "bad_operands"


def test_one_slot_for_both_is_refused():
    p = _Plan()
    p.buffers[-1] = (*p.buffers[-1][:3], p.buffers[-2][3])
    assert p.error(beside(copy(p.x, p.slot), copy(p.x, p.other)), slots=1) == "bad_operands"


def loop(p: _Plan, body: list[int], moves: list[int], first: int = 0, steps: int = 2) -> list[int]:
    n = len(moves) // 3
    row = p.number(steps)
    operands = [row, -1, row, -1, -1, -1, -1, first, n, len(body), 0, 0, *moves]
    return [CODES["loop"], len(operands), *operands, *body]


def test_moved_tensors_belong_to_one_block():
    p = _Plan()
    one, two = p.part(p.x, 0, [1], [1]), p.part(p.y, 0, [1], [1])
    other, far, its = p.part(p.x, 0, [1], [1]), p.part(p.y, 2, [1], [1]), p.part(p.z, 0, [1], [1])
    zero, step = p.number(0), p.number(1)
    moving = loop(p, copy(one, two), [one, step, zero, two, step, zero])
    assert p.error(beside(moving, copy(other, its)), moves=2) == "ok"
    assert p.error(beside(moving, copy(other, far)), moves=2) == "ok"  # it reaches from 0 to 1
    assert p.error(beside(moving, copy(one, its)), moves=2) == "bad_operands"  # where it is depends on the other thread
    longer = loop(p, copy(one, two), [one, step, zero, two, step, zero], steps=3)
    assert p.error(beside(longer, copy(other, far)), moves=2) == "bad_operands"
    followed = loop(p, copy(one, two), [two, -1, far])
    assert p.error(beside(followed, copy(other, its)), moves=1) == "ok"
    assert p.error(beside(followed, copy(other, p.part(p.y, 3, [1], [1]))), moves=1) == "ok"
    for place in (0, 2):
        assert p.error(beside(followed, copy(other, p.part(p.y, place, [1], [1]))), moves=1) == "bad_operands"
    both = loop(p, loop(p, copy(one, two), [two, step, zero], first=1), [two, -1, far])
    assert p.error(beside(both, copy(other, its)), moves=2) == "bad_operands"  # it goes beyond what it follows


def test_blocks_have_no_branches_marks_or_blocks_at_the_same_time():
    p = _Plan()
    plain, marked = copy(p.x, p.z), copy(p.x, p.y)
    marked[0] |= opcodes.CHECKED
    flag = p.arena([], 2)
    inner = beside(copy(p.x, p.y), [])
    for block in (marked, [CODES["branch"], 3, flag, 0, 0], inner):
        assert p.error(beside(block, plain)) == "bad_instruction"
        assert p.error(beside(plain, block)) == "bad_instruction"
    both = beside(plain, copy(p.x, p.y))
    assert p.error([both[0] | opcodes.CHECKED, *both[1:]]) == "bad_instruction"
    assert p.error(loop(p, both, [])) == "bad_instruction"
    late = p.late()
    assert p.error(beside(plain, [CODES["let"], 3, late, p.arena([], 1), 0])) == "bad_instruction"
    most = opcodes.MOST_BESIDE_WORDS // 4
    assert p.error(beside(plain, copy(p.x, p.y) * (most - 1))) == "ok"
    assert p.error(beside(plain, copy(p.x, p.y) * most)) == "bad_instruction"


def test_blocks_touch_only_so_many_tensors():
    p = _Plan()
    copies: list[int] = []
    for index in range(opcodes.MOST_BESIDE_TENSORS - 1):
        copies += copy(p.x, p.part(p.y, 0, [4], [1]))
        assert index < 125 or p.error(beside(copy(p.x, p.z), copies)) == "ok"
    copies += copy(p.x, p.part(p.y, 0, [4], [1]))
    assert p.error(beside(copy(p.x, p.z), copies)) == "bad_operands"

"""Arena slots: what is alive together shares one only if an expression overwrites what it reads for the last time."""

from __future__ import annotations

import itertools
import random

import numpy as np
import pytest

from tests.passes.random_graphs import random_graph
from tests.plan.harness import check_graph, graph_of
from webrnn.ir import Symbol, SymbolicDim
from webrnn.passes import run_passes
from webrnn.plan.arena import assign_slots
from webrnn.plan.draft import Draft, ExpressionInstruction, Instruction, LoopInstruction
from webrnn.plan.lower import lower
from webrnn.plan.lowering import NotLowered
from webrnn.plan.views import Storage, View, dense_view


def check(program: Draft) -> dict[Storage, int]:
    """No two storages with one slot are alive at the same time."""
    slots = assign_slots(program)
    lives = _lives(program)
    storages = list(lives)
    for i, one in enumerate(storages):
        for other in storages[i + 1 :]:
            if slots[one] == slots[other]:
                first, then = sorted((one, other), key=lambda storage: lives[storage])
                is_apart = lives[first][1] < lives[then][0]
                touch = lives[first][1] == lives[then][0] + 1
                assert is_apart or (touch and _is_overwritten(program, first, then)), (one.label, other.label)
                assert _names(one.size) == _names(other.size)
    assert set(slots) == set(storages)
    for instruction in program.code:
        if instruction.name == "beside":
            one, two = ({view.storage for each in walk(block) for view in places(each)} for block in instruction.blocks)
            assert not {slots[storage] for storage in one} & {slots[storage] for storage in two - one}
            assert not {slots[storage] for storage in one - two} & {slots[storage] for storage in two}
    return slots


def walk(block: list[Instruction]) -> list[Instruction]:
    return list(Draft([], [], block).walk())


def places(instruction: Instruction) -> list[View]:
    """What it touches in the arena, what states follow too."""
    views = list(instruction.views())
    views += [view.follows for view in views if view.follows is not None]
    return [view for view in views if view.storage.kind == "arena"]


def _is_overwritten(program: Draft, first: Storage, then: Storage) -> bool:
    """Whether an expression reads each element of one where it writes that of the other, and reads no other of it."""
    for instruction in program.walk():
        if isinstance(instruction, ExpressionInstruction):
            read = [view for view in instruction.inputs if view.storage is first]
            written = [view for view, _ in instruction.outputs if view.storage is then]
            places = {(view.shape, view.strides, view.offset) for view in (*read, *written)}
            if read and written:
                return len(places) == 1 and first.dtype == then.dtype and 0 not in read[0].strides
    return False


def _names(size):
    return size.names if isinstance(size, SymbolicDim) else frozenset()


def _lives(program: Draft) -> dict[Storage, tuple[int, int]]:
    """First and last use, where a use inside a loop of what is used outside it, or followed in it, is one of all of
    the loop. Written down without the arena's own code."""
    uses: dict[Storage, list[tuple[int, tuple[int, ...]]]] = {}
    spans: dict[int, tuple[int, int]] = {}
    clock = 0

    def note(view: View, loops: tuple[int, ...]) -> None:
        if view.follows is not None:
            note(view.follows, loops)
            if view.follows.storage.kind == "arena":
                carried.setdefault(view.follows.storage, set()).add(view.follows_in)
        if view.storage.kind == "arena":
            uses.setdefault(view.storage, []).append((clock, loops))

    carried: dict[Storage, set[int]] = {}

    def visit(block: list[Instruction], loops: tuple[int, ...]) -> None:
        nonlocal clock
        for instruction in block:
            clock += 1
            begin = clock
            for view in instruction.views():
                note(view, loops)
            inside = (*loops, instruction.id) if isinstance(instruction, LoopInstruction) else loops
            for inner in instruction.blocks:
                visit(inner, inside)
            clock += 1
            for view in instruction.views():
                note(view, loops)
            if isinstance(instruction, LoopInstruction):
                spans[instruction.id] = (begin, clock)

    visit(program.code, ())
    lives = {}
    for storage, places in uses.items():
        common = set.intersection(*(set(loops) for _, loops in places)) - carried.get(storage, set())
        first, last = min(at for at, _ in places), max(at for at, _ in places)
        for _, loops in places:
            for loop in loops:
                if loop not in common:
                    first, last = min(first, spans[loop][0]), max(last, spans[loop][1])
        lives[storage] = (first, last)
    return lives


def random_program(seed: int) -> Draft:
    rng = random.Random(seed)
    n = Symbol("n")
    pool = [
        Storage("arena", "f32", rng.choice([4, 8, 100, n, 2 * n, n * Symbol("m")]), label=str(i)) for i in range(12)
    ]
    next_loop = iter(range(100))

    def block(depth: int) -> list[Instruction]:
        found: list[Instruction] = []
        for _ in range(rng.randint(1, 5)):
            kind = rng.random()
            if kind < 0.2 and depth < 3:
                loop = LoopInstruction("loop", [], id=next(next_loop))
                loop.blocks = [block(depth + 1), block(depth + 1) if rng.random() < 0.3 else []]
                if rng.random() < 0.5:
                    loop.condition = dense_view(rng.choice(pool), (1,))
                if rng.random() < 0.5:
                    one, other = rng.sample(pool, 2)
                    view = dense_view(one, (1,)).following(dense_view(other, (1,)), loop.id)
                    loop.blocks[0].append(Instruction("copy", [view, dense_view(rng.choice(pool), (1,))]))
                found.append(loop)
            elif kind < 0.25 and not depth:
                found.append(Instruction("beside", [], blocks=[block(1), block(1)]))
            elif kind < 0.3 and depth < 3:
                condition = dense_view(rng.choice(pool), ())
                found.append(Instruction("branch", [condition], blocks=[block(depth + 1), block(depth + 1)]))
            else:
                found.append(Instruction("copy", [dense_view(s, (1,)) for s in rng.sample(pool, 2)]))
        return found

    return Draft([], [], block(0))


@pytest.mark.parametrize("block", range(10))
def test_random_programs(block):
    shared = 0
    for seed in range(100 * block, 100 * block + 100):
        slots = check(random_program(seed))
        shared += len(slots) - len(set(slots.values()))
    assert shared > 0


def test_programs_of_random_graphs():
    shared = 0
    for seed in range(80):
        graph = random_graph(seed).graph
        run_passes(graph)
        try:
            for least_side in (None, 0):
                slots = check(lower(graph, least_side=least_side))
                shared += len(slots) - len(set(slots.values()))
        except NotLowered:
            continue
    assert shared > 0


def test_a_chain_takes_two_slots():
    storages = [Storage("arena", "f32", 10) for _ in range(6)]
    views = [dense_view(storage, (10,)) for storage in storages]
    code = [Instruction("copy", [one, other]) for one, other in itertools.pairwise(views)]
    assert len(set(assign_slots(Draft([], [], code)).values())) == 2


def test_an_expression_overwrites_what_nobody_reads_any_more():
    graph = graph_of(lambda b, x: b.op("Tanh", b.op("MatMul", b.op("Tanh", b.op("MatMul", x, x)), x)), "f 8 8")
    slots = check(lower(graph))
    assert len(set(slots.values())) == 3  # the scratch of the products, and two results by turns


def test_a_neighbour_is_not_overwritten():
    """x[1:] - x[:-1] reads what would be overwritten."""

    def build(b, x):
        y = b.op("MatMul", x, x)
        parts = [b.op("Slice", y, b.ints(at), b.ints(7 + at), b.ints(0)) for at in (0, 1)]
        return b.op("MatMul", b.op("Sub", *parts), x)

    check_graph(graph_of(build, "f 8 8"))


def test_what_a_convolution_reads_is_not_overwritten_along_with_it():
    """A residual block: the sum runs along with the convolution, whose later blocks read what is added."""
    weights = np.random.default_rng(0).standard_normal((16, 16, 3, 3)).astype(np.float32) / 20

    def build(b, x):
        x = b.op("Relu", b.op("Conv", x, b.constant(weights), pads=[1] * 4))
        for _ in range(2):
            x = b.op("Add", b.op("Conv", x, b.constant(weights), pads=[1] * 4), x)
            x = b.op("Add", b.op("Conv", x, b.constant(np.eye(16, dtype=np.float32)[:, :, None, None])), x)
        return b.op("MaxPool", x, kernel_shape=[2, 2])

    graph = graph_of(build, "f n 16 70 t")
    taken = [i for i in lower(graph.copy()).walk() if i.takes_the_next_along]
    assert len(taken) == 5
    check_graph(graph, sizes=[{"n": 1, "t": 60}, {"n": 2, "t": 41}])

"""What the VM counts: every instruction, every step, every part, on every build."""

import numpy as np
import pytest

from tests.counts.executed import DependsOnData, executed
from tests.plan.corpus import samples
from tests.plan.harness import arguments_of, graph_of, plan_of
from tests.plan.test_control import branches
from tests.plan.test_fused_sequences import recurrence
from tests.plan.test_loops import _counting, _nested, scalars
from webrnn.engine.programs.plan_program import ARRAY_TYPES, PlanProgram
from webrnn.plan.decode import decode
from webrnn.plan.file import PlanFile
from webrnn.plan.instructions import ROWS
from webrnn.plan.text import walk
from webrnn.plan.verify import UNSET, bound_sizes
from webrnn.profile.timed_plan import TimedPlan

from .harness import BUILDS, counted, kernels


def random_arguments(file, symbols):
    sizes = file.sizes(symbols)
    rng = np.random.default_rng(0)
    return [
        np.array(rng.integers(0, 2, [sizes[i] for i in port.sizes]), ARRAY_TYPES[port.dtype]) for port in file.inputs
    ]


def arguments_for(sample):
    """Shapes that come with the inputs have to fit them: [2] is that of an input of the sample."""
    found = random_arguments(PlanFile(sample.data), sample.symbols)
    if sample.name.startswith("late sizes"):
        found[1][...] = 2
    return found


def _holds(tables, sizes):
    """Whether the plan is one for these sizes; some need a loop that takes a step."""
    required = [sizes[each.operands[0]] for each in walk(tables.code) if each.name == "require"]
    return all(size == UNSET or size >= 0 for size in required)


@pytest.mark.parametrize("spec", BUILDS)
def test_as_often_as_the_plan_says(spec):
    """For all instructions of the corpus; what depends on data is tested below."""
    seen = set()
    for sample in samples():
        tables = decode(sample.data)
        sizes = bound_sizes(tables, sample.symbols)
        try:
            wanted = executed(tables, sizes)
        except DependsOnData:
            continue
        if not _holds(tables, sizes):
            continue
        counters = counted(sample.data, arguments_for(sample), spec, runs=3)
        for instruction in walk(tables.code):
            assert counters.count(instruction.at) == 3 * wanted[instruction.at], (sample.name, instruction)
            if wanted[instruction.at]:
                seen.add(instruction.name)
        used = {instruction.at for instruction in walk(tables.code)}
        assert not counters.rows[[word not in used for word in range(len(counters.rows))]].any()
    assert seen >= ROWS.keys() - {"branch", "require"}


@pytest.mark.parametrize("spec", BUILDS)
@pytest.mark.parametrize("op", ["RnnCell", "GruCell", "LstmCell"])
def test_a_sequence_is_its_products_and_its_cells(op, spec):
    data = plan_of(recurrence(op, 3))
    file = PlanFile(data)
    arguments = random_arguments(file, [5 if name == "t" else 2 for name in file.symbols])
    counters = counted(data, arguments, spec)
    (sequence,) = [each for each in walk(decode(data).code) if each.name.endswith("_sequence")]
    assert [counters.count(sequence.at, kind) for kind in range(3)] == [1, 5, 5]


@pytest.mark.parametrize("spec", BUILDS)
@pytest.mark.parametrize(("start", "steps"), [(0, 5), (3, 2), (9, 1)])
def test_a_loop_that_ends_early(start, steps, spec):
    data = plan_of(graph_of(lambda b, x, limit: _counting(b, x, limit), "f", "f"))
    counters = counted(data, scalars(start, 5), spec, runs=2)
    (loop,) = [each for each in walk(decode(data).code) if each.name == "loop"]
    assert [counters.count(loop.at, kind) for kind in range(3)] == [2, 2 * steps, 2]
    assert all(counters.count(each.at) == 2 * steps for each in loop.blocks[0])
    assert all(counters.count(each.at) == 2 for each in loop.blocks[1])


@pytest.mark.parametrize("spec", BUILDS)
def test_nested_loops(spec):
    graph = _nested(True, True, True)
    data = plan_of(graph)
    file = PlanFile(data)
    symbols = {"t": 4, "n": 2, "steps": 3}
    arguments = arguments_of(graph, {name: symbols[name] for name in file.symbols})
    counters = counted(data, arguments, spec)
    outer = next(each for each in decode(data).code if each.name == "loop")
    inner = next(each for each in walk(outer.blocks[0]) if each.name == "loop")
    outer_steps = counters.count(outer.at, 1)
    assert counters.count(outer.at) == 1
    assert counters.count(inner.at) == outer_steps > 1
    assert counters.count(inner.at, 1) % outer_steps == 0
    assert counters.count(inner.at, 1) > outer_steps


@pytest.mark.parametrize("spec", BUILDS)
@pytest.mark.parametrize("taken", [True, False])
def test_the_branch_that_is_taken(taken, spec):
    def build(b, p, x):
        return branches(b, p, [x], lambda i, x: [i.op("Tanh", x)], lambda i, x: [i.op("Exp", x)])

    data = plan_of(graph_of(build, "b", "f 3"))
    counters = counted(data, [np.array(taken), np.ones(3, np.float32)], spec)
    branch = next(each for each in walk(decode(data).code) if each.name == "branch")
    assert [counters.count(branch.at, kind) for kind in (1, 2)] == ([1, 0] if taken else [0, 1])
    for block, count in zip(branch.blocks, (taken, not taken), strict=True):
        assert block
        assert all(counters.count(each.at) == count for each in block)


@pytest.mark.parametrize("spec", BUILDS)
def test_batches_of_products(spec):
    """The right-hand side is packed for each batch, or once for all of them."""
    data = plan_of(graph_of(lambda b, x, y: b.op("MatMul", x, y), "f 4 2 3", "f 4 3 5"))
    product = next(each for each in decode(data).code if each.name == "matmul")
    arguments = [np.ones((4, 2, 3), np.float32), np.ones((4, 3, 5), np.float32)]
    counters = counted(data, arguments, spec)
    assert [counters.count(product.at, kind) for kind in range(3)] == [1, 4, 4]


@pytest.mark.parametrize("spec", BUILDS)
def test_profiling_changes_no_result(spec):
    data = plan_of(recurrence("GruCell", 3))
    file = PlanFile(data)
    arguments = random_arguments(file, [5 if name == "t" else 2 for name in file.symbols])
    plain = PlanProgram(data, kernels(spec)).run(arguments)
    profiled = TimedPlan(data, kernels(spec), arguments)
    profiled.profiled(2)
    for mine, theirs in zip(plain, profiled.outputs, strict=True):
        assert (mine == theirs).all()


def test_counting_ends_with_the_profiled_run():
    data = plan_of(graph_of(lambda b, x: b.op("Tanh", x), "f 3"))
    plan = TimedPlan(data, kernels("native"), [np.ones(3, np.float32)])
    _, counters = plan.profiled(1)
    before = counters.rows.copy()
    plan.timed(5)
    plan.run([np.ones(3, np.float32)])
    assert (plan.profiled(1)[1].rows[:, :3] == before[:, :3]).all()


def test_an_error_ends_it():
    data = plan_of(graph_of(lambda b, x, i: b.op("Gather", x, i, axis=0), "f 3", "i 1"))
    plan = TimedPlan(data, kernels("native"), [np.ones(3, np.float32), np.array([7], np.int64)])
    with pytest.raises(Exception, match="out of range"):
        plan.profiled(1)

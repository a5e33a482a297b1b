"""Two parts of a plan that do not depend on each other become the blocks of a `beside`, for two threads at once: the
directions of a recurrent layer, or layers of different branches.

What the blocks touch is known to be apart for all sizes, or they are not made: whoever binds sizes asks again
(independence.py, wasm_kernels/beside.c).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from webrnn.ir import Dim, SymbolicDim
from webrnn.ir.dims import is_late, is_nonnegative, quotient

from .draft import Draft, ExpressionInstruction, Instruction, LoopInstruction
from .instructions import NOT_BESIDE, ROWS
from .opcodes import MOST_BESIDE_TENSORS, MOST_BESIDE_WORDS
from .operations import OPERATION_WORDS
from .views import View, count_of

TYPICAL = 4
"""What named sizes are taken for. A block that turns out to be smaller costs a run that has help some 300 ns."""
MOST_TOGETHER = 64
"""Instructions, those inside of loops not counted, among which independent ones are looked for."""
_NEVER = {*NOT_BESIDE, "ring"}
"""A ring may be written where it is read: what that is depends on the host."""
Sides = tuple[list[int], list[int]]


def run_side_by_side(draft: Draft, least_work: int) -> None:
    """Make blocks of what can run at the same time, where each has at least so many multiply-adds. With 0 all that is
    independent becomes blocks, however small: for tests."""
    tasks = [_Task(instruction) for instruction in draft.code]
    code: list[Instruction] = []
    start = 0
    while start < len(tasks):
        first = tasks[start : start + MOST_TOGETHER]
        may_pay = not least_work or sum(task.has_steps for task in first) > 1
        sides = _Window(first, least_work).best if may_pay and first[0].work >= max(least_work, 1) else None
        if sides is None:
            code.append(first[0].instruction)
            start += 1
            continue
        blocks = [[first[index].instruction for index in sorted(side)] for side in sides]
        code.append(Instruction("beside", [], blocks=blocks, node=blocks[0][0].node))
        start += sum(map(len, blocks))
    draft.code[:] = code


class _Task:
    """An instruction with all that is inside of it."""

    def __init__(self, instruction: Instruction):
        self.instruction = instruction
        inside = list(Draft([], [], [instruction]).walk())
        self.touched = {access for each in inside for access in _accesses(each)}
        views = {view for view, _ in self.touched}
        self.touched |= {(view.follows, True) for view in views if view.follows is not None}
        self.loops = {each.id for each in inside if isinstance(each, LoopInstruction)}
        self.moved_by = {loop for view in views for loop in _loops_of(view)}
        self.has_steps = bool(self.loops) or any(each.name.endswith("_sequence") for each in inside)
        n_moves = sum(len(_loops_of(view)) for view in views)
        self.n_tensors, self.n_words = len(self.touched) + n_moves, 3 * n_moves + sum(map(_n_words, inside))
        self.work = _work(instruction)
        self.at: dict[object, list[tuple[View, bool]]] = {}
        """What it touches, by memory; constants are never written."""
        for view, written in self.touched:
            if view.storage.kind != "constant":
                place = view.storage.external if view.storage.kind == "external" else view.storage
                self.at.setdefault(place, []).append((view, written))
        self._known: dict[_Task, bool] = {}
        self.may_be_beside = not any(each.name in _NEVER or _is_late(each) for each in inside) and not any(
            view.follows is not None and view.motions for view in views
        )

    def depends_on(self, other: _Task) -> bool:
        """Whether one writes, or moves, what the other one touches."""
        if other not in self._known:
            self._known[other] = bool(self.moved_by & other.loops or other.moved_by & self.loops) or any(
                (written or its_written) and not are_apart(view, its)
                for place in self.at.keys() & other.at.keys()
                for view, written in self.at[place]
                for its, its_written in other.at[place]
            )
        return self._known[other]


class _Window:
    """The first instructions in parts that do not depend on each other, as many as there are two of with some work."""

    def __init__(self, tasks: list[_Task], least_work: int):
        self.tasks, self.least_work = tasks, least_work
        self.part_of: list[int] = []
        self.best: Sides | None = None
        n_tensors = n_words = most = 0
        for index, task in enumerate(tasks):
            n_tensors, n_words = n_tensors + task.n_tensors, n_words + task.n_words
            if not task.may_be_beside or n_tensors > MOST_BESIDE_TENSORS or n_words > MOST_BESIDE_WORDS:
                break
            self.part_of.append(index)
            for other in range(index):
                if self.part_of[other] != self.part_of[index] and task.depends_on(tasks[other]):
                    old, new = self.part_of[other], self.part_of[index]
                    self.part_of = [new if part == old else part for part in self.part_of]
            if task.work:
                sides = self._sides()
                works = sorted(map(self._work, sides))
                if works[0] > most and self._pays(sides, works):
                    self.best, most = sides, works[0]

    def _sides(self) -> Sides:
        """The parts in two halves with about as much work; what comes first is in the first one."""
        parts: dict[int, list[int]] = {}
        for index, part in enumerate(self.part_of):
            parts.setdefault(part, []).append(index)
        one: list[int] = []
        two: list[int] = []
        ahead = 0
        for each in sorted(parts.values(), key=self._work, reverse=True):
            (one if ahead <= 0 else two).extend(each)
            ahead += self._work(each) * (1 if ahead <= 0 else -1)
        return (one, two) if 0 in one else (two, one)

    def _work(self, part: Iterable[int]) -> int:
        return sum(self.tasks[index].work for index in part)

    def _pays(self, sides: Sides, works: list[int]) -> bool:
        """Parts of one instruction at a time share work better, but for what is done step by step, and they are better
        if one side has more than twice the work of the other."""
        if not self.least_work:
            return True
        has_steps = all(any(self.tasks[index].has_steps for index in side) for side in sides)
        return has_steps and works[0] >= self.least_work and 2 * works[0] >= works[1]


def are_apart(one: View, two: View) -> bool:
    """Whether no element of one is an element of the other, for all sizes and in all steps, and whether a stride of
    either shows it: the VM looks at those of the first block."""
    return one.dtype == two.dtype and all(
        any(_are_apart(one, two, grain) for grain in (None, *view.strides, *(each.stride for each in view.motions)))
        for view in (one, two)
    )


def _are_apart(one: View, two: View, grain: Dim | None) -> bool:
    """Modulo `grain` they lie side by side on a circle; without one, one ends before the other begins."""
    if grain is not None and not is_nonnegative(grain):
        grain = -grain
    first, second = _span(one, grain), _span(two, grain)
    if first is None or second is None or grain == 0:
        return False
    if grain is None:
        return any(is_nonnegative(b[0] - a[0] - a[1] - 1) for a, b in ((first, second), (second, first)))
    between = _rest(second[0] - first[0], grain)
    return is_nonnegative(between - first[1] - 1) and is_nonnegative(grain - between - second[1] - 1)


def _span(view: View, grain: Dim | None) -> tuple[Dim, Dim] | None:
    """Where it begins and how far it reaches, but for strides that are multiples of `grain`."""
    low: Dim = view.offset
    length: Dim = 0
    for size, stride in zip(view.shape, view.strides, strict=True):
        reach = (size - 1) * stride
        if size == 1 or (grain is not None and quotient(stride, grain) is not None):
            continue
        if is_nonnegative(stride):
            length = length + reach
        elif is_nonnegative(-stride):
            low, length = low + reach, length - reach
        else:
            return None
    is_even = all(grain is not None and quotient(motion.stride, grain) is not None for motion in view.motions)
    return (low, length) if is_even else None


def _rest(dim: Dim, grain: Dim) -> Dim:
    """The same modulo `grain`, of each term as little as possible that is not negative."""
    (names, factor), *more = _terms(grain)
    total: Dim = 0
    for monomial, coefficient in _terms(dim):
        is_reducible = not more and all(monomial.count(name) >= names.count(name) for name in names)
        number = coefficient % factor if is_reducible else coefficient
        total = total + (SymbolicDim({monomial: 1}) * number if monomial else number)
    return total


def _terms(dim: Dim) -> tuple[tuple[tuple[str, ...], int], ...]:
    return dim.terms if isinstance(dim, SymbolicDim) else (((), dim),)


def _loops_of(view: View) -> set[int]:
    """Those that move it."""
    found = {motion.loop for motion in view.motions}
    return found if view.follows is None else found | {view.follows_in} | _loops_of(view.follows)


def _accesses(instruction: Instruction) -> Iterator[tuple[View, bool]]:
    """Views, and whether they are written."""
    if isinstance(instruction, ExpressionInstruction):
        yield from ((view, False) for view in instruction.inputs)
        yield from ((view, True) for view, _ in instruction.outputs)
    elif isinstance(instruction, LoopInstruction):
        written = (instruction.iteration, instruction.taken)
        yield from ((view, view in written) for view in instruction.views())
    else:
        for form, operand in zip(ROWS[instruction.name].operands, instruction.operands, strict=False):
            if isinstance(operand, View):
                yield operand, form.is_written


def _n_words(instruction: Instruction) -> int:
    """Of itself, without what a loop moves."""
    n = 2 + len(ROWS[instruction.name].operands) + len(instruction.rest)
    if isinstance(instruction, ExpressionInstruction):
        n += len(instruction.inputs) + 2 * len(instruction.outputs) + 3 * len(instruction.constants)
        n += OPERATION_WORDS * len(instruction.ops)
    return n


def _is_late(instruction: Instruction) -> bool:
    """Whether it depends on sizes that are known only while running."""
    numbers = [*instruction.operands, *instruction.rest]
    if isinstance(instruction, LoopInstruction):
        numbers += [instruction.n_steps, instruction.most_steps]
    return any(is_late(number) for number in numbers if isinstance(number, SymbolicDim)) or any(
        map(_is_late_view, instruction.views())
    )


def _is_late_view(view: View) -> bool:
    moves = [size for motion in view.motions for size in (motion.stride, motion.after)]
    return any(map(is_late, (view.storage.size, view.offset, *view.shape, *view.strides, *moves))) or (
        view.follows is not None and _is_late_view(view.follows)
    )


def _work(instruction: Instruction) -> int:
    """Multiply-adds, or what takes as long."""
    if isinstance(instruction, LoopInstruction):
        body, epilogue = (sum(map(_work, block)) for block in instruction.blocks)
        steps = _number(instruction.most_steps if instruction.n_steps is None else instruction.n_steps)
        return max(steps, 1) * body + epilogue  # a loop of chunks has some
    if isinstance(instruction, ExpressionInstruction):
        return _number(instruction.outputs[0][0].count) * len(instruction.ops)
    named = dict(zip((form.name for form in ROWS[instruction.name].operands), instruction.operands, strict=False))
    weights, rows = named.get("packed"), named.get("xw", named.get("y"))
    if isinstance(weights, View) and isinstance(rows, View):
        return _number(weights.count) * _number(count_of(rows.shape[:-1]))
    if instruction.name == "matmul" and isinstance(rows, View) and isinstance(named["a"], View):
        return _number(rows.count) * _number(named["a"].shape[-1])
    return max((_number(view.count) for view in instruction.views()), default=0)


def _number(dim: Dim) -> int:
    number = dim.substitute(dict.fromkeys(dim.names, TYPICAL)) if isinstance(dim, SymbolicDim) else dim
    return max(number, 0) if isinstance(number, int) else 0

"""The order of the passes: this is the one place that knows it.

The passes run in rounds until a round changes nothing. `infer_shapes` opens a round, because the others read its facts;
simplifications that expose constants come before the passes that look at whole loops; `remove_dead` closes it. When
nothing changes any more, the last resorts run, then the fusing passes, and the others again if they found something.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module

from webrnn.checks.graphs import check_signatures
from webrnn.errors import Error, ModelError, OptionError
from webrnn.ir import Graph, Scan, Value, is_scan
from webrnn.ir.check import check as check_graph
from webrnn.ir.fused import is_cell
from webrnn.ops.sets import ELEMENTWISE, RESHAPES

from .base import Context, Decline, Pass, PassResult, Semantics, open_graphs


class Step:
    """A pass that is loaded only if a graph has what it `needs`: of each text one of its features."""

    def __init__(self, name: str, *needs: str):
        self.name, self._needs = name, [frozenset(each.split()) for each in needs]

    def __repr__(self) -> str:
        return f"Step({self.name!r})"

    def may_find_something(self, features: frozenset[str]) -> bool:
        return not any(features.isdisjoint(each) for each in self._needs)

    def load(self) -> Pass:
        return _load(self.name)


@cache
def _load(name: str) -> Pass:
    module = import_module(f".{name}", __package__)
    return next(
        item()
        for item in vars(module).values()
        if isinstance(item, type) and issubclass(item, Pass) and item.name == name
    )


_PRODUCTS = "MatMul Gemm Linear"
_SEQUENCES = """
    SequenceEmpty SequenceConstruct SequenceInsert SequenceErase SequenceAt SequenceLength SequenceJoin SplitToSequence
    ConcatFromSequence Optional OptionalHasElement OptionalGetElement
"""
_REARRANGING = {*RESHAPES, "Transpose"}

PASSES: tuple[Step, ...] = (
    Step("infer_shapes"),
    Step("skip_requantizing", "QuantizeLinear"),
    Step("integer_products", "DequantizeLinear"),
    Step("fold_constants"),
    Step(
        "expand_ops",
        "Attention RotaryEmbedding QuantizeLinear DequantizeLinear QLinearMatMul QLinearConv"
        " ConvInteger MatMulInteger Gemm Einsum BatchNormalization Dropout GroupNormalization LpNormalization"
        " MeanVarianceNormalization RMSNormalization NegativeLogLikelihoodLoss SoftmaxCrossEntropyLoss"
        " InstanceNormalization LayerNormalization Softmax LogSoftmax HannWindow HammingWindow BlackmanWindow",
    ),
    Step("prune_branches", "If"),
    Step("inline_if", "If"),
    Step("unbox_sequences", "If Scan", _SEQUENCES),
    Step("sequences_to_traces", "Scan", _SEQUENCES),
    Step("unpack_sequences", _SEQUENCES),
    Step("remove_checks", "ExpectShape"),
    Step("remove_identities"),
    Step("reverse_whole_sequences", "ReverseSequence"),
    Step("merge_layout", "Reshape Expand Squeeze Unsqueeze Flatten Transpose"),
    Step("unrepeat_matrices", "Expand", "MatMul"),
    Step("simplify_algebra", "elementwise"),
    Step("simplify_powers", "Pow"),
    Step("sink_sums", "Scan", "Add", "MatMul ReduceSum"),
    Step("outer_products", "MatMul"),
    Step("fold_batchnorm", "BatchNormalization"),
    Step("convs_to_products", "Conv"),
    Step("fuse_layer_norm", "ReduceMean", "Sqrt", "Div Reciprocal"),
    Step("merge_common"),
    Step("inline_invariant_constants", "constants"),
    Step("repeats_to_invariants", "Scan", "Expand"),
    Step("drop_conditions", "conditional"),
    Step("counters_to_iterations", "Scan", "Add Sub"),
    Step("count_steps", "conditional"),
    Step("freeze_states", "frozen"),
    Step("gather_to_sequence", "counting"),
    Step("grown_states_to_traces", "Scan", "Concat"),
    Step("writes_to_traces", "Scan", "ScatterND ScatterElements"),
    Step("drop_step_counts", "bounded"),
    Step("merge_duplicate_inputs", "twice"),
    Step("remove_unused", "Scan"),
    Step("inline_single_step", "Scan"),
    Step("hoist_invariants", "all"),
    Step("hoist_lookups", "conditional", "Gather", _PRODUCTS),
    Step("selections_to_branches", "conditional", "Where", _PRODUCTS),
    Step("clean_axes", "rearranged"),
    Step("hoist_sequences", "each"),
    Step("trim_trace", "Scan"),
    Step("sink_outputs", "traces"),
    Step("merge_scans", "siblings"),
    Step("remove_dead"),
)
"""A pass by name, and what it looks for (`features_of`): it is not loaded where a graph has nothing of that."""

_MAKE_LOOPS_PLAIN = """
    infer_shapes fold_constants prune_branches inline_if unpack_sequences unbox_sequences sequences_to_traces
    remove_checks remove_identities inline_invariant_constants drop_conditions counters_to_iterations count_steps
    freeze_states gather_to_sequence grown_states_to_traces writes_to_traces drop_step_counts remove_unused remove_dead
"""

PLAIN_LOOPS: tuple[Step, ...] = tuple(step for step in PASSES if step.name in _MAKE_LOOPS_PLAIN.split())
"""After these a loop that walks over a sequence by the number of its step is a Scan over that sequence, and what no
output needs is gone: the analysis along time looks at a model then.
"""

FOR_STREAMS: tuple[Step, ...] = (
    Step("infer_shapes"),
    Step("sums_to_loops", "CumSum CumProd"),
    Step("buffers_to_windows", "Scan", "Slice", "Concat"),
    Step("starts_to_steps", "Scan", "Gather Slice"),
    Step("reads_out_of_branches", "counting", "If"),
    Step("reads_before", "counting", "Gather"),
    Step("reads_ahead", "counting", "Gather"),
    Step("numbers_to_states", "counting"),
    Step("remove_unused", "Scan"),
    Step("remove_dead"),
)
"""These let loops keep what a stream has to carry, behind those that make loops plain: a run has no use for them."""

OUT_OF_LOOPS: tuple[Step, ...] = (*PLAIN_LOOPS, *(step for step in PASSES if step.name == "hoist_sequences"))
"""After these loops are plain, and what depends on their sequences alone stands before them."""

LAST_RESORTS: tuple[Step, ...] = (Step("unroll_loops", "unsteady"), Step("skip_zero_weights", "MatMul", "Conv"))
"""These run only when those above have come to rest: they make larger what others may make smaller."""

FUSIONS: tuple[Step, ...] = (
    Step("fuse_linear", _PRODUCTS),
    Step("reuse_steps", "siblings", _PRODUCTS),
    Step("fuse_cells", _PRODUCTS, "elementwise"),
    Step("fuse_exported_cells", _PRODUCTS, "elementwise"),
    Step("fold_lookups", "Gather", _PRODUCTS),
    Step("fuse_elementwise", "elementwise Clip"),
)
"""These make ops (`ir/fused.py`) that hide from the passes above what they stand for."""

ALL_PASSES = (*PASSES, *LAST_RESORTS, *FUSIONS)

MOST_ROUNDS = 30
"""Each round removes or moves something, so real models need a handful; more is a pass that undoes another's work."""

ALL = "all"
"""The name that switches every pass off."""

SWITCHES = ("fused_sequences", "scan_buffers", "side_by_side")
"""What `disable` can switch off beside passes: ways to run that have a plainer one with the same results."""

DISABLED_BY_ENVIRONMENT = frozenset(name for name in os.environ.get("WEBRNN_DISABLE", "").split(",") if name)
"""Read once, at import."""


@dataclass(slots=True)
class Outcome:
    """What an optimization did."""

    rewrites: Counter[str] = field(default_factory=Counter)
    """By pass."""
    fired: dict[str, list[str]] = field(default_factory=dict)
    """By pass: what each rewrite did, in order."""
    declines: dict[str, list[Decline]] = field(default_factory=dict)
    """By pass, of its last run: what stands in the optimized graph; of fusing passes, of all runs."""
    seconds: dict[str, float] = field(default_factory=dict)
    """By pass; 0 if there was nothing in the graph that it looks for."""
    rounds: int = 0
    reached_fixpoint: bool = False

    def add(self, step: Step | Pass, result: PassResult, seconds: float) -> None:
        self.rewrites[step.name] += result.rewrites
        self.seconds[step.name] = self.seconds.get(step.name, 0.0) + seconds
        if result.fired:
            self.fired.setdefault(step.name, []).extend(result.fired)
        # A fused op hides from the next run what the pass had a reason not to fuse.
        earlier = self.declines.pop(step.name, []) if step in FUSIONS else []
        declines = [*earlier, *(decline for decline in result.declines if decline not in earlier)]
        if declines:
            self.declines[step.name] = declines


Observer = Callable[[Pass, PassResult, Graph], None]
"""Called after each run of a pass."""


def run_passes(
    graph: Graph,
    passes: Iterable[Step | Pass] | None = None,
    *,
    disable: Collection[str] = (),
    semantics: Semantics = "run",
    stop_after: int | None = None,
    check: bool = False,
    most_rounds: int = MOST_ROUNDS,
    observe: Observer | None = None,
) -> Outcome:
    """Run passes on a graph, in place, until nothing changes: these, or PASSES, LAST_RESORTS and then FUSIONS.

    `disable` names passes that are not run; "all" is every one. `stop_after` is the number of rewrites after which the
    graph is left as it is: the smallest one with which a result is wrong names the rewrite that is. `check` checks the
    graph after each pass.

    >>> from webrnn.ir import DType, GraphBuilder
    >>> b = GraphBuilder("g")
    >>> x = b.input("x", DType.FLOAT, (3,))
    >>> b.graph.outputs.append(b.op("Neg", b.op("Neg", b.op("Neg", x))))
    >>> +run_passes(b.graph).rewrites
    Counter({'simplify_algebra': 1, 'merge_common': 1})
    """
    disabled = disabled_passes(disable)
    phases = [list(passes)] if passes is not None else [PASSES, LAST_RESORTS, FUSIONS]
    active = [[step for step in phase if step.name not in disabled] for phase in phases]
    context = Context(graph, semantics, check, disabled, rewrites_left=stop_after)
    outcome = Outcome()
    if any(active):
        check_signatures(graph)
    progress = _Progress(graph)
    while outcome.rounds < most_rounds and not outcome.reached_fixpoint:
        outcome.rounds += 1
        changes = (_changes(phase, graph, context, outcome, progress, observe) for phase in active)
        outcome.reached_fixpoint = not any(changes)
    if "infer_shapes" not in disabled:
        context.facts.annotate(graph)
    return outcome


class _Progress:
    """Which passes have nothing to do: those that found nothing, as long as nothing has changed since, and those that
    look for what is not there."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._version = 0
        self._idle_at: dict[str, int] = {}
        self._features, self._features_at = frozenset[str](), -1

    def is_idle(self, step: Step | Pass) -> bool:
        if self._idle_at.get(step.name) == self._version:
            return True
        if isinstance(step, Pass):
            return False
        if self._features_at != self._version:
            self._features, self._features_at = features_of(self._graph), self._version
        return not step.may_find_something(self._features)

    def add(self, step: Step | Pass, result: PassResult) -> None:
        self._version += bool(result.rewrites or result.learned)
        if not result.rewrites:
            self._idle_at[step.name] = self._version


def _changes(
    phase: Iterable[Step | Pass],
    graph: Graph,
    context: Context,
    outcome: Outcome,
    progress: _Progress,
    observe: Observer | None,
) -> int:
    """Run each of these passes that may find something once; how many rewrites they made."""
    changes = 0
    for step in phase:
        if progress.is_idle(step):
            outcome.seconds.setdefault(step.name, 0.0)
            continue
        started = time.perf_counter()
        loaded = step if isinstance(step, Pass) else step.load()
        result = _run(loaded, graph, context)
        outcome.add(step, result, time.perf_counter() - started)
        progress.add(step, result)
        changes += result.rewrites
        if context.check:
            _check(graph, loaded)
        if observe is not None:
            observe(loaded, result, graph)
    return changes


def disabled_passes(disable: Collection[str] = ()) -> frozenset[str]:
    """The names of the passes that are switched off, by the caller or by the environment."""
    if isinstance(disable, str):
        raise OptionError(f"disable is a list of names, not the text {disable!r}")
    names = frozenset(disable) | DISABLED_BY_ENVIRONMENT
    known = list(dict.fromkeys(step.name for step in (*ALL_PASSES, *FOR_STREAMS)))
    unknown = names - {*known, *SWITCHES, ALL}
    if unknown:
        raise OptionError(f"there is no pass {', '.join(sorted(unknown))}; there are {', '.join(known)}")
    return frozenset(known) if ALL in names else names - {*SWITCHES}


def disabled_switches(disable: Collection[str] = ()) -> frozenset[str]:
    """What else is switched off, by the caller or by the environment."""
    return (frozenset(disable) | DISABLED_BY_ENVIRONMENT) & {*SWITCHES}


def _run(step: Pass, graph: Graph, context: Context) -> PassResult:
    try:
        return step.run(graph, context)
    except Error as error:
        error.add_note(f"in the pass {step.name}")
        raise
    except Exception as error:
        what = f"the pass {step.name} fails on this model, disable={[step.name]} skips it"
        raise ModelError(f"{what}: {type(error).__name__}: {error}") from error


def _check(graph: Graph, step: Pass) -> None:
    try:
        check_graph(graph)
    except Error as error:
        error.add_note(f"after the pass {step.name}")
        raise


def features_of(graph: Graph) -> frozenset[str]:
    """The ops in a graph and in the graphs inside it, and what is said of loops below. All element-wise ops are
    "elementwise", and "siblings" are loops in one graph.
    """
    found: set[str] = set()
    for inner in open_graphs(graph):
        n_scans = 0
        for node in inner.nodes:
            found.add(node.op)
            if is_scan(node):
                n_scans += 1
                found.update(_features_of_loop(inner, Scan.of(node)))
        if n_scans > 1:
            found.add("siblings")
    if not ELEMENTWISE.isdisjoint(found):
        found.add("elementwise")
    return frozenset(found)


def _features_of_loop(graph: Graph, scan: Scan) -> Iterator[str]:
    """It may be "conditional": it can end early; "counting": it reads the number of its step; "bounded": it is told how
    many steps to take; "unsteady": it may have states that change their shape, or sequences. It may have "constants"
    that are handed in, "frozen" states, something "twice", states that are "rearranged", and work for "each" step that
    needs no step before it, for "all" steps, or for "traces" only.
    """
    if scan.body_cond is not None or scan.cond is not None:
        yield from ("conditional", "each")
    if scan.iteration is not None:
        yield "counting"
    if scan.n_steps is not None:
        yield "bounded"
    handed_in = [*(item.outer for item in scan.invariants), *(item.whole for item in scan.sequences)]
    if not graph.constants.keys().isdisjoint(handed_in):
        yield "constants"
    if any(state.body_out in state.body_in for state in scan.states):
        yield "frozen"
    steady = {value for node in scan.body.nodes if is_cell(node) for value in node.outputs}
    inside = (value for node in scan.body.nodes for value in (*node.inputs, *node.outputs) if value is not None)
    if any(state.body_out not in steady for state in scan.states) or any(value.container for value in inside):
        yield "unsteady"
    results = [trace.element for trace in scan.traces]
    nexts = [state.body_out for state in scan.states]
    if any(len({*values}) < len(values) for values in (handed_in, results, nexts)):
        yield "twice"
    changing: set[Value | None] = {scan.iteration, *(value for state in scan.states for value in state.body_in)}
    elements: set[Value | None] = {item.element for item in scan.sequences}
    read = {value for node in scan.body.nodes for value in node.inputs}
    if not elements.isdisjoint(results):
        yield "each"
    for node in scan.body.nodes:
        if not changing.isdisjoint(node.inputs):
            changing.update(node.outputs)
            if node.op in _REARRANGING:
                yield "rearranged"
        elif elements.isdisjoint(node.inputs):
            yield "all"
        else:
            elements.update(node.outputs)
            yield "each"
        if any(value in results and value not in nexts and value not in read for value in node.outputs):
            yield "traces"

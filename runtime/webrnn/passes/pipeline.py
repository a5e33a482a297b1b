"""The order of the passes: this is the one place that knows it.

The passes run in rounds until a round changes nothing. `infer_shapes` opens a round, because the others read its facts;
simplifications that expose constants come before the passes that look at whole loops; `remove_dead` closes it.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

from webrnn.errors import Error
from webrnn.ir import Graph
from webrnn.ir.check import check as check_graph

from .base import Context, Decline, Pass, Semantics
from .drop_conditions import DropConditions
from .fold_batchnorm import FoldBatchNorm
from .fold_constants import FoldConstants
from .freeze_states import FreezeStates
from .hoist_invariants import HoistInvariants
from .hoist_sequences import HoistSequences
from .infer_shapes import InferShapes
from .inline_if import InlineIf
from .inline_invariant_constants import InlineInvariantConstants
from .merge_common import MergeCommon
from .merge_duplicate_inputs import MergeDuplicateInputs
from .merge_layout import MergeLayout
from .prune_branches import PruneBranches
from .remove_checks import RemoveChecks
from .remove_dead import RemoveDead
from .remove_identities import RemoveIdentities
from .remove_unused import RemoveUnused
from .simplify_algebra import SimplifyAlgebra
from .simplify_powers import SimplifyPowers

PASSES: tuple[Pass, ...] = (
    InferShapes(),
    FoldConstants(),
    PruneBranches(),
    InlineIf(),
    RemoveChecks(),
    RemoveIdentities(),
    MergeLayout(),
    SimplifyAlgebra(),
    SimplifyPowers(),
    FoldBatchNorm(),
    MergeCommon(),
    InlineInvariantConstants(),
    DropConditions(),
    FreezeStates(),
    MergeDuplicateInputs(),
    RemoveUnused(),
    HoistInvariants(),
    HoistSequences(),
    RemoveDead(),
)

MOST_ROUNDS = 30
"""Each round removes or moves something, so real models need a handful; more is a pass that undoes another's work."""

DISABLED_BY_ENVIRONMENT = frozenset(name for name in os.environ.get("WEBRNN_DISABLE", "").split(",") if name)
"""Read once, at import."""


@dataclass(slots=True)
class Outcome:
    """What an optimization did."""

    rewrites: Counter[str] = field(default_factory=Counter)
    """By pass."""
    declines: dict[str, list[Decline]] = field(default_factory=dict)
    """By pass, of the last round: what stands in the optimized graph."""
    rounds: int = 0
    reached_fixpoint: bool = False


def run_passes(
    graph: Graph,
    passes: Iterable[Pass] = PASSES,
    *,
    disable: Collection[str] = (),
    semantics: Semantics = "run",
    stop_after: int | None = None,
    check: bool = False,
    most_rounds: int = MOST_ROUNDS,
) -> Outcome:
    """Run passes on a graph, in place, until nothing changes.

    `stop_after` is the number of rewrites after which the graph is left as it is: the smallest one with which a result
    is wrong names the rewrite that is. `check` checks the graph after each pass.
    """
    disabled = frozenset(disable) | DISABLED_BY_ENVIRONMENT
    _reject_unknown(disabled)
    context = Context(graph, semantics, check, disabled, rewrites_left=stop_after)
    active = [step for step in passes if step.name not in disabled]
    outcome = Outcome()
    while outcome.rounds < most_rounds and not outcome.reached_fixpoint:
        outcome.rounds += 1
        outcome.declines = {}
        changes = 0
        for step in active:
            result = step.run(graph, context)
            if context.check:
                _check(graph, step)
            changes += result.rewrites
            outcome.rewrites[step.name] += result.rewrites
            if result.declines:
                outcome.declines[step.name] = result.declines
        outcome.reached_fixpoint = not changes
    if "infer_shapes" not in disabled:
        context.facts.annotate(graph)
    return outcome


def optimize(graph: Graph, disable: Collection[str] = ()) -> dict[str, int]:
    """Run all passes on a graph, in place, and return how often each one fired.

    >>> from webrnn.ir import DType, GraphBuilder
    >>> b = GraphBuilder("g")
    >>> x = b.input("x", DType.FLOAT, (3,))
    >>> b.graph.outputs.append(b.op("Neg", b.op("Neg", b.op("Neg", x))))
    >>> {name: count for name, count in optimize(b.graph).items() if count}
    {'simplify_algebra': 1, 'merge_common': 1}
    >>> [node.op for node in b.graph.nodes]
    ['Neg']
    """
    return dict(run_passes(graph, disable=disable).rewrites)


def _reject_unknown(names: frozenset[str]) -> None:
    unknown = names - {step.name for step in PASSES}
    if unknown:
        known = ", ".join(step.name for step in PASSES)
        raise ValueError(f"there is no pass {', '.join(sorted(unknown))}; there are {known}")


def _check(graph: Graph, step: Pass) -> None:
    try:
        check_graph(graph)
    except Error as error:
        error.add_note(f"after the pass {step.name}")
        raise

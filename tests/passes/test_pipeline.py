import os
import subprocess
import sys

import pytest

from tests.passes.differential import graph_of, ops
from webrnn.errors import ModelError
from webrnn.ir import Value
from webrnn.passes import ALL_PASSES, Pass, run_passes
from webrnn.passes.pipeline import FOR_STREAMS

TEXT = "g (float[3] x) => (float[3] y) { a = Neg(x) b = Neg(a) c = Identity(b) y = Exp(c) }"


def test_names_are_unique_and_documented():
    names = [step.name for step in ALL_PASSES]
    assert len(set(names)) == len(names)
    for step in (each.load() for each in (*ALL_PASSES, *FOR_STREAMS)):
        text = sys.modules[type(step).__module__].__doc__
        assert all(word in text for word in ("Requires:", "Ensures:", "Declines:")), step.name


def test_optimize_counts():
    graph = graph_of(TEXT)
    counts = run_passes(graph).rewrites
    assert ops(graph) == {"Exp": 1}
    assert counts["simplify_algebra"] == counts["remove_identities"] == 1


def test_disable():
    graph = graph_of(TEXT)
    assert "simplify_algebra" not in +run_passes(graph, disable=["simplify_algebra"]).rewrites
    assert ops(graph) == {"Neg": 2, "Exp": 1, "Expression": 1}


def test_an_unknown_name_is_an_error():
    with pytest.raises(ValueError, match="there is no pass no_such_pass; there are infer_shapes, "):
        run_passes(graph_of(TEXT), disable=["no_such_pass"])


def test_disable_by_environment():
    code = "from webrnn.passes import pipeline; print(sorted(pipeline.DISABLED_BY_ENVIRONMENT))"
    environment = {**os.environ, "WEBRNN_DISABLE": "merge_common,hoist_sequences"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "['hoist_sequences', 'merge_common']"


def test_stop_after():
    total = sum(run_passes(graph_of(TEXT)).rewrites.values())
    for count in range(total + 1):
        outcome = run_passes(graph_of(TEXT), stop_after=count)
        assert sum(outcome.rewrites.values()) == count


class _Breaks(Pass):
    name = "breaks"

    def rewrite(self, graph, context, result):
        graph.outputs = [Value("nothing")]


class _NeverEnds(Pass):
    name = "never_ends"

    def rewrite(self, graph, context, result):
        result.fires("nothing")


def test_the_check_names_the_pass():
    with pytest.raises(ModelError) as caught:
        run_passes(graph_of(TEXT), [_Breaks()], check=True)
    assert caught.value.__notes__ == ["after the pass breaks"]


def test_rounds_are_bounded():
    outcome = run_passes(graph_of(TEXT), [_NeverEnds()], most_rounds=4)
    assert (outcome.rounds, outcome.reached_fixpoint) == (4, False)

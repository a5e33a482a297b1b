"""Random stacks of layers over time: what is accepted is the whole run, bit for bit; what is refused names a node.

`make fuzz-streams` does the same with more of them.
"""

from collections import Counter
from itertools import islice

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

import webrnn

from .fuzz import kind_of, reduced, verdict_of
from .judge import judge
from .layer_table import LAYERS
from .stacks import Recipe, build, recipe_of, recipes
from .whole_layers import NEED_ALL

STACKS = 300
BATCHES = 10


def backends_of(seed):
    """Native always, wasm for one in three."""
    return ("native", *(("wasm:relaxed",) if seed % 6 == 0 else ("wasm:simd",) if seed % 6 == 3 else ()))


_CONV = {"stride": 1, "dilation": 1, "some": (1, 0), "groups": "one", "channels": 2, "bias": True}
FOUND = {
    "zeros before frames that are mirrored behind": (
        ("pad", {"before": 0, "behind": 1, "mode": "reflect", "number": 0.0}),
        ("spatial", {"kernel": (2, 3), "pads": "left", "stride": 1, "over": 1, "back": False}),
    ),
    "a window shorter than its stride, behind a delay": (
        ("conv", {**_CONV, "kernel": 2, "pads": "none"}),
        ("conv", {**_CONV, "kernel": 2, "pads": "none", "stride": 3}),
        ("recurrent", {"op": "GRU", "hidden": 3, "squeeze": "Squeeze", "start": "none", "final": False}),
    ),
}
"""What the fuzzer found."""


@pytest.mark.parametrize("name", FOUND)
def test_what_was_wrong_once(name):
    verdict = judge(build(Recipe("TBC", 1, FOUND[name], 10)), ("native", "wasm:relaxed"), with_file=True)
    assert verdict.accepted
    assert not verdict.no_plan


@pytest.mark.parametrize("first", range(0, STACKS, STACKS // BATCHES))
def test_streams_of_stacks_are_the_whole_run(first):
    said = Counter()
    for seed in range(first, first + STACKS // BATCHES):
        backends = backends_of(seed)
        verdict = verdict_of(recipe_of(seed), seed, backends, thorough=False)
        assert not verdict.wrong, f"seed {seed}: {verdict.wrong}\n{recipe_of(seed)}"
        assert verdict.accepted or verdict.node
        said[kind_of(verdict.refused) if verdict.refused else "exact"] += 1
    assert said["exact"] >= 0.6 * STACKS // BATCHES, said


@pytest.mark.parametrize("name", NEED_ALL)
def test_layers_that_need_the_whole_sequence_are_refused(name):
    drawn = (recipe_of(seed, needs_all=True) for seed in range(10_000))
    with_it = (recipe for recipe in drawn if (name, {}) in recipe.layers)
    for recipe in islice(with_it, 3):
        verdict = judge(build(recipe), thorough=False)
        assert verdict.refused, recipe
        assert verdict.node, verdict.refused
        assert not verdict.wrong


@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck), print_blob=True)
@given(recipes())
def test_hypothesis_finds_nothing(recipe):
    verdict = verdict_of(recipe, recipe.seed, ("native",), thorough=False)
    assert not verdict.wrong, f"{verdict.wrong}\n{recipe}"


def test_the_generator_knows_its_models():
    """They run, each layer is used, and outputs have the frames that the layers say."""
    used = Counter()
    for seed in range(150):
        model = build(recipe_of(seed))
        assert model.recipe is not None
        used.update(name for name, _ in model.recipe.layers)
        session = webrnn.InferenceSession(model.proto.SerializeToString(), backend="numpy")
        for frames in (model.shortest, model.shortest + 3 * model.stride):
            results = session.run(None, model.feeds(frames, np.random.default_rng(seed)))
            for value, result in zip(session.get_outputs(), results, strict=True):
                if value.name in model.signals:
                    assert result.shape[model.time_axis] == model.signals[value.name].frames(frames), recipe_of(seed)
    assert used.keys() == LAYERS.keys()


def test_recipes_are_made_smaller():
    recipe = next(r for r in map(recipe_of, range(1000)) if len(r.layers) > 4 and "stft" in {n for n, _ in r.layers})
    small = reduced(recipe, lambda candidate: any(name == "stft" for name, _ in candidate.layers))
    assert [name for name, _ in small.layers] == ["stft"]

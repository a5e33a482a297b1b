"""Plans that would run for ever end within their limits on every build, whatever their loops claim to be."""

from itertools import product

import pytest

from tests.backends import KERNELS
from tests.plan.endless import MANY, endless_sequence, nested_loops
from webrnn import InferenceSession, LimitError, Limits
from webrnn.plan.instructions import CHUNKS, EXACT, LIMITED, UNLIMITED

ANY = 2**62


def limit_of(plan, backend, **limits):
    """What ends a run, at the instruction that the plan says it is; None if it comes to its end."""
    session = InferenceSession(plan, backend, limits=Limits(**limits))
    try:
        (result,) = session.run(None, {})
    except LimitError as error:
        return error.limit if error.node == "endless" else error
    return None if result == [1.0] else result


@pytest.mark.parametrize("backend", KERNELS)
def test_nested_loops_of_any_kind(backend):
    for kinds in product((EXACT, UNLIMITED, LIMITED, CHUNKS, 17), repeat=2):
        plan = nested_loops(*kinds)
        assert limit_of(plan, backend) == "loop_steps"
        assert limit_of(plan, backend, loop_steps=ANY, run_steps=10_000) in ("run_steps", "loop_steps")
        assert limit_of(plan, backend, loop_steps=ANY, run_steps=ANY, seconds=0.01) in ("seconds", "loop_steps")


@pytest.mark.parametrize("backend", KERNELS)
def test_chunks_in_which_nothing_is_charged_are_steps(backend):
    plan = nested_loops(CHUNKS, CHUNKS, CHUNKS, steps=20)
    assert limit_of(plan, backend, run_steps=20 * 20 * 20) is None
    assert limit_of(plan, backend, run_steps=20 * 20 * 20 - 1) == "run_steps"
    assert limit_of(plan, backend, loop_steps=20) is None
    assert limit_of(plan, backend, loop_steps=19) == "loop_steps"


@pytest.mark.parametrize("backend", KERNELS)
def test_loops_as_deep_as_they_may_be(backend):
    plan = nested_loops(*[CHUNKS, EXACT] * 7, steps=1000)
    assert limit_of(plan, backend, run_steps=100_000) == "run_steps"
    assert limit_of(plan, backend, run_steps=ANY, seconds=0.05) == "seconds"


@pytest.mark.parametrize("backend", KERNELS)
@pytest.mark.parametrize("name", ["rnn", "gru", "lstm"])
def test_sequences_in_one_instruction(name, backend):
    plan = endless_sequence(name)
    assert limit_of(plan, backend) == "loop_steps"
    assert limit_of(plan, backend, loop_steps=MANY, run_steps=MANY // 5) == "run_steps"
    assert limit_of(plan, backend, loop_steps=MANY, run_steps=MANY, seconds=0.01) == "seconds"
    short = endless_sequence(name, steps=1000)
    assert limit_of(short, backend, loop_steps=1000, run_steps=1000) is None
    assert limit_of(short, backend, loop_steps=999) == "loop_steps"
    assert limit_of(short, backend, run_steps=999) == "run_steps"

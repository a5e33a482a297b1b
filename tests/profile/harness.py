"""Profiles of small models, and what has to hold for every one."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np
import pytest

from webrnn import InferenceSession
from webrnn.plan.file import PlanFile
from webrnn.profile.clock import Clock
from webrnn.profile.counters import Counters
from webrnn.profile.entry import CATEGORIES, Entry
from webrnn.profile.plan_tree import PlanTree
from webrnn.profile.profiler import Profile
from webrnn.profile.subject import Subject
from webrnn.profile.timed_plan import TimedPlan, profiling_kernels

BUILDS = ("native", "wasm:relaxed", "wasm:simd", "wasm:scalar")
FREE_CLOCK = Clock(1e-9, 0.0)
"""Of which a reading takes no time."""

kernels = cache(profiling_kernels)


def counted(data: bytes, arguments: Sequence[np.ndarray], spec: str = "native", runs: int = 1) -> Counters:
    return TimedPlan(data, kernels(spec), arguments).profiled(runs)[1]


def entries_of(data: bytes, arguments: Sequence[np.ndarray], spec: str = "native", runs: int = 1) -> Entry:
    """A plan with its instructions as a tree."""
    plan = TimedPlan(data, kernels(spec), arguments)
    _, counters = plan.profiled(runs)
    tree = PlanTree(PlanFile(data), plan.symbols, plan.sizes)
    return Entry("plan", "plan", children=tree.entries(counters, FREE_CLOCK, runs))


def profile_of(model: bytes, feeds: dict[str, np.ndarray], backend: str = "native", **options: object) -> Profile:
    """A quick one: what it says about time is not to be trusted."""
    session = InferenceSession(model, backend=backend, **options)
    found = Subject(session).profile(feeds, runs=1)
    check(found)
    return found


def check(profile: Profile) -> None:
    """Nothing is counted twice, and nothing is lost."""
    total = profile.root.total
    assert total >= 0
    assert sum(sums.seconds for sums in profile.categories().values()) == pytest.approx(total)
    assert sum(sums.seconds for sums in profile.nodes().values()) == pytest.approx(total)
    assert set(profile.categories()) <= set(CATEGORIES)
    for what in ("flops", "bytes"):
        whole = sum(getattr(entry, what) for entry in profile.root.walk())
        assert sum(getattr(sums, what) for sums in profile.categories().values()) == pytest.approx(whole)
        assert sum(getattr(sums, what) for sums in profile.nodes().values()) == pytest.approx(whole)
    for entry in profile.root.walk():
        assert min(entry.seconds, entry.calls, entry.flops, entry.bytes) >= 0
        assert sum(child.total for child in entry.children) <= entry.total * (1 + 1e-9) + 1e-15


def find(root: Entry, name: str) -> list[Entry]:
    return [entry for entry in root.walk() if entry.name == name]

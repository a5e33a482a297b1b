"""The net under the way from a graph to a plan.

A lowering that fails on operands that nobody foresaw is a mistake in it. A caller still gets what numpy makes of the
model, results or a webrnn.Error, because what has no plan runs in numpy. Tests want to see the mistake: where `strict`
is set, by WEBRNN_STRICT=1 or by the tests themselves, the exception goes through as it is.
"""

from __future__ import annotations

import os
import traceback
from collections import Counter

strict = os.environ.get("WEBRNN_STRICT", "") not in ("", "0")

caught: Counter[str] = Counter()
"""How often which exception was caught where, in this process; fuzzing prints it."""


def catch(error: Exception) -> str:
    """What to tell instead of an exception that nobody foresaw, which is raised again where `strict` is set."""
    if strict:
        raise error
    last = traceback.extract_tb(error.__traceback__)[-1]
    caught[f"{type(error).__name__} in {os.path.basename(last.filename)}:{last.name}"] += 1
    return f"{type(error).__name__}: {error}"

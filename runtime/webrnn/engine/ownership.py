"""Results that belong to the caller."""

from __future__ import annotations

from typing import Any

import numpy as np


def own(results: list[Any], borrowed: list[Any]) -> list[Any]:
    """The results, copied where their memory is also an input's, a constant's or another result's."""
    taken = {id(item) for item in _arrays(borrowed)}

    def owned(item: Any) -> Any:
        if isinstance(item, list):
            return [owned(element) for element in item]
        if not isinstance(item, np.ndarray):
            return item
        if item.base is not None or not item.flags.writeable or not item.flags.c_contiguous or id(item) in taken:
            item = item.copy()
        taken.add(id(item))
        return item

    return [owned(item) for item in results]


def _arrays(items: list[Any]) -> list[Any]:
    found = []
    for item in items:
        found.extend(_arrays(item) if isinstance(item, list) else [item])
    return found


def read_only(array: Any) -> Any:
    """The same memory, marked as not the caller's: `own` copies it."""
    if not isinstance(array, np.ndarray) or not array.flags.writeable:
        return array
    view = array.view()
    view.flags.writeable = False
    return view

"""Names that a person wrote and that a model does not have."""

from __future__ import annotations

from collections.abc import Iterable

MOST_LISTED = 12


def close_names(name: str, names: Iterable[str]) -> list[str]:
    """Those that may have been meant, the closest first.

    >>> close_names("input_id", ["input_ids", "attention_mask"])
    ['input_ids']
    """
    from difflib import get_close_matches

    by_small = {each.lower(): each for each in names}
    return [by_small[each] for each in get_close_matches(name.lower(), by_small, n=3, cutoff=0.6)]


def unknown_name(kind: str, name: str, names: Iterable[str]) -> str:
    """A message that names what there is.

    >>> unknown_name("size", "frame", ["frames", "batch"])
    "the model has no size 'frame': did you mean 'frames'? It has frames, batch"
    """
    known = list(dict.fromkeys(names))
    if not known:
        return f"the model has no {kind} {name!r}: it has none to be given"
    close = close_names(name, known)
    meant = f": did you mean {close[0]!r}? It" if close else "; it"
    more = f" and {len(known) - MOST_LISTED} more" if len(known) > MOST_LISTED else ""
    return f"the model has no {kind} {name!r}{meant} has {', '.join(known[:MOST_LISTED])}{more}"

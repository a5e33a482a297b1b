"""Which output of a model is which of its inputs in the next step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from webrnn.errors import ModelError
from webrnn.ir import Value

from .states import fits_sizes

Carry = Mapping[str, str] | str
"""{input: output}, "auto" or "internal"."""


def resolve(carry: Mapping[str, str], inputs: Sequence[Value], outputs: Sequence[Value]) -> list[tuple[int, int]]:
    """(input, output) positions of pairs that the caller names."""
    input_names, output_names = [value.name for value in inputs], [value.name for value in outputs]
    pairs = []
    for before, after in carry.items():
        if before not in input_names:
            raise ModelError(f"carry: the model has no input {before!r}; it has {input_names}")
        if after not in output_names:
            raise ModelError(f"carry: the model has no output {after!r}; it has {output_names}")
        first, second = inputs[input_names.index(before)], outputs[output_names.index(after)]
        if first.container or second.container or first.dtype != second.dtype:
            raise ModelError(f"carry: {before!r} and {after!r} are of different types")
        if not fits_sizes(first, second):
            raise ModelError(f"carry: {before!r} is {list(first.shape or ())}, {after!r} is {list(second.shape or ())}")
        pairs.append((input_names.index(before), output_names.index(after)))
    twice = {after for _, after in pairs if [a for _, a in pairs].count(after) > 1}
    if twice:
        raise ModelError(f"carry: output {output_names[min(twice)]!r} feeds two inputs")
    return pairs

"""Which output of a model is which of its inputs in the next step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from webrnn.errors import ModelError
from webrnn.ir import Value

from .states import likely_pairs

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
        if first.shape is not None and second.shape is not None and not _fit(first, second):
            raise ModelError(f"carry: {before!r} is {list(first.shape)}, {after!r} is {list(second.shape)}")
        pairs.append((input_names.index(before), output_names.index(after)))
    twice = {after for _, after in pairs if [a for _, a in pairs].count(after) > 1}
    if twice:
        raise ModelError(f"carry: output {output_names[min(twice)]!r} feeds two inputs")
    return pairs


def guess(inputs: Sequence[Value], outputs: Sequence[Value]) -> dict[str, str]:
    """The pairs, where there is only one way to see it; raises with the candidates otherwise."""
    candidates = likely_pairs(inputs, outputs)
    if not candidates:
        raise ModelError(
            'carry="auto" finds no input that looks like a state with an output of its type and shape; name the pairs, '
            'carry={"input": "output"}, or use carry="internal" if the loops of the model start from constants'
        )
    unclear = {before: found for before, found in candidates.items() if len(found) > 1}
    chosen = [found[0] for found in candidates.values() if len(found) == 1]
    if unclear or len(set(chosen)) < len(chosen):
        texts = "; ".join(f"{before}: {' or '.join(found)}" for before, found in candidates.items())
        raise ModelError(f'carry="auto" is not sure which output becomes which input: {texts}. Name the pairs')
    return {before: found[0] for before, found in candidates.items()}


def _fit(before: Value, after: Value) -> bool:
    assert before.shape is not None
    assert after.shape is not None
    if len(before.shape) != len(after.shape):
        return False
    known = [pair for pair in zip(before.shape, after.shape, strict=True) if all(isinstance(dim, int) for dim in pair)]
    return all(have == give for have, give in known)

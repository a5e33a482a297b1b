"""The rows of the table, read."""

from __future__ import annotations

from typing import NamedTuple

from .table import TABLE


class Row(NamedTuple):
    """What is known of an op. Modules are "" where it has none."""

    domain: str
    op: str
    numpy: str
    shape: str
    check: str
    plan: str
    time: str
    gradient: str
    flops: str
    operands: str
    outputs: int
    """The most that it has."""
    traits: frozenset[str]


MANY = 2**31
"""As a number of outputs: as many as one likes."""


def _read(table: str) -> dict[tuple[str, str], Row]:
    rows: dict[tuple[str, str], Row] = {}
    numpy = ""
    for line in table.splitlines()[2:]:
        if line.startswith("["):
            numpy = line.strip("[].")
        elif line:
            name, *cells = line.split()
            filled = ["" if cell == "." else cell for cell in cells[:7]]
            shape, check, plan, time, gradient, flops, signature = filled
            domain, _, op = name.rpartition(":")
            operands, _, outputs = signature.partition(">")
            most = MANY if outputs == "many" else int(outputs or 1)
            traits = frozenset(cells[7:])
            rows[domain, op] = Row(
                domain, op, numpy, shape, check, plan, time, gradient, flops, operands.strip("."), most, traits
            )
    return rows


ROWS = _read(TABLE)
"""By domain and name."""


def with_trait(*traits: str, domain: str = "") -> frozenset[str]:
    """The ops of a domain that have one of these traits.

    >>> sorted(with_trait("gate"))
    ['HardSigmoid', 'Sigmoid']
    """
    return frozenset(op for (of, op), row in ROWS.items() if of == domain and not row.traits.isdisjoint(traits))

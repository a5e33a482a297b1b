"""Inputs that are made up for a model: which sizes, rates, lengths and indices it takes, and why.

Guesses are made from the graph: what an input is used for, and what the checks ask of its sizes. How inputs and sizes
are called is a last hint. `Guesses` lists what is worth a try, the most plausible first, and `first_that_runs` tries.
"""

from __future__ import annotations

from .guess import Guess, Guesses, Row, bound_sizes
from .sizes import open_sizes, stride_sizes
from .trying import Patience, first_that_runs
from .values import random_input

__all__ = [
    "Guess",
    "Guesses",
    "Patience",
    "Row",
    "bound_sizes",
    "first_that_runs",
    "open_sizes",
    "random_input",
    "stride_sizes",
]

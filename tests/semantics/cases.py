"""All cases: for each rule on which implementations were seen to differ, what is expected, why, and who says so."""

from __future__ import annotations

from . import arithmetic_cases, index_cases, loop_cases, number_cases, resize_cases, shape_cases

CASES = [
    *shape_cases.CASES,
    *index_cases.CASES,
    *arithmetic_cases.CASES,
    *resize_cases.CASES,
    *number_cases.CASES,
    *loop_cases.CASES,
]

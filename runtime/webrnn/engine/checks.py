"""to be filled"""
from __future__ import annotations
from typing import Any
from .limits import Limits


def check_call(op: str, arguments: list[Any], attrs: dict[str, Any], limits: Limits) -> None:
    pass

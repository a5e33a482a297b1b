"""Functions of ops, found through the rows of the table."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any, Generic, TypeVar

from .rows import ROWS

Function = TypeVar("Function", bound=Callable[..., Any])


class Registry(Generic[Function]):
    """One function an op, in the module that a column of the table names; that is imported when the op is first met,
    because in a browser compiling the modules of all ops takes longer than opening a model.

    Called with names of ops, it is the decorator that puts a function in.
    """

    def __init__(self, column: str, module: str):
        """`module` is the full name of a module, with {} for what stands in the column."""
        self.column, self._module = column, module
        self.functions: dict[tuple[str, str], Function] = {}
        """Those that were imported, by domain and op."""

    def __call__(self, *names: str, domain: str = "") -> Callable[[Function], Function]:
        def register(function: Function) -> Function:
            for name in names:
                if function.__module__ != self.module_of(domain, name):
                    where = f"{function.__module__} has the {self.column} of {domain}:{name}"
                    raise ValueError(f"the table of ops does not say that {where}")
                if (domain, name) in self.functions:
                    raise ValueError(f"two functions for the {self.column} of {domain}:{name}")
                self.functions[domain, name] = function
            return function

        return register

    def module_of(self, domain: str, op: str) -> str | None:
        row = ROWS.get((domain, op))
        family = "" if row is None else getattr(row, self.column)
        return self._module.format(family) if family else None

    def get(self, domain: str, op: str) -> Function | None:
        """The function of an op, if it has one."""
        found = self.functions.get((domain, op))
        if found is None and (module := self.module_of(domain, op)) is not None:
            import_module(module)
            found = self.functions[domain, op]
        return found

    def names(self) -> list[tuple[str, str]]:
        """Of all ops that have a function, by domain and op."""
        return [key for key, row in ROWS.items() if getattr(row, self.column)]

"""Who imports whom in runtime/webrnn, read from the sources without running them."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "runtime" / "webrnn"

When = Literal["at once", "when called", "for types"]


@dataclass(frozen=True)
class Import:
    """One module imports another."""

    source: str
    target: str
    line: int
    when: When

    def __str__(self) -> str:
        return f"{self.source}:{self.line} imports {self.target} ({self.when})"


def imports(package: Path = PACKAGE) -> list[Import]:
    """All imports of modules of this package by modules of this package, wherever they stand."""
    modules = dict(_modules(package))
    return [found for name, file in modules.items() for found in _imports_of(name, file, modules)]


def _modules(package: Path) -> Iterator[tuple[str, Path]]:
    for file in sorted(package.rglob("*.py")):
        parts = file.relative_to(package.parent).with_suffix("").parts
        yield ".".join(parts[:-1] if parts[-1] == "__init__" else parts), file


def _imports_of(module: str, file: Path, modules: dict[str, Path]) -> Iterator[Import]:
    home = module if file.name == "__init__.py" else module.rpartition(".")[0]
    for node, when in _statements(ast.parse(file.read_text()), "at once"):
        for name in _named(node, home):
            target = name if name in modules else name.rpartition(".")[0]
            if target in modules and target != module:
                yield Import(module, target, node.lineno, when)


def _statements(tree: ast.AST, when: When) -> Iterator[tuple[ast.Import | ast.ImportFrom, When]]:
    if isinstance(tree, ast.Import | ast.ImportFrom):
        yield tree, when
    elif isinstance(tree, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
        when = "when called"
    elif isinstance(tree, ast.If) and ast.unparse(tree.test) in ("TYPE_CHECKING", "typing.TYPE_CHECKING"):
        for inner in tree.body:
            yield from _statements(inner, "for types")
        for inner in tree.orelse:
            yield from _statements(inner, when)
        return
    for child in ast.iter_child_nodes(tree):
        yield from _statements(child, when)


def _named(node: ast.Import | ast.ImportFrom, home: str) -> Iterator[str]:
    """What an import names, absolute: modules, or what is taken out of them."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
        return
    base = node.module or ""
    if node.level:
        parts = home.split(".")
        above = ".".join(parts[: len(parts) - node.level + 1])
        base = f"{above}.{base}".rstrip(".")
    yield from (f"{base}.{alias.name}" for alias in node.names)


def arrows(found: Iterable[Import], package: str = "webrnn") -> dict[str, dict[str, Import]]:
    """{member: {member that it imports: one import that does}} of a package; its own file is called like it."""
    between: dict[str, dict[str, Import]] = {}
    for one in found:
        source, target = (_member(module, package) for module in (one.source, one.target))
        if source and target and source != target:
            between.setdefault(source, {}).setdefault(target, one)
    return between


def _member(module: str, package: str) -> str | None:
    if module == package:
        return package
    if module.startswith(f"{package}."):
        return module[len(package) + 1 :].split(".")[0]
    return None


def cycle(arrows: Mapping[str, Iterable[str]]) -> list[str]:
    """A way along the arrows that comes back to where it started; empty if there is none."""
    done: set[str] = set()

    def walk(at: str, way: list[str]) -> list[str]:
        if at in way:
            return [*way[way.index(at) :], at]
        if at in done:
            return []
        for target in sorted(arrows.get(at, ())):
            if found := walk(target, [*way, at]):
                return found
        done.add(at)
        return []

    return next((found for start in sorted(arrows) if (found := walk(start, []))), [])

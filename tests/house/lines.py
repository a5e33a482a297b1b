"""`make lines`: how many lines each part has. test_lines.py keeps the budgets."""

from __future__ import annotations

from collections import Counter

from webrnn.tables import table

from .import_graph import ROOT

CORE = ("ir", "onnx", "passes", "plan", "reference", "engine")
"""The way from a model to its results."""

FOLDERS = ("bench", "examples", "pyodide_pkg", "runtime", "tests", "wasm_kernels", "web_demo")
NOT_OURS = {"node_modules", "_kernels"}
KINDS = {".py": "Python", ".c": "C", ".h": "C", ".js": "JavaScript", ".mjs": "JavaScript", ".ts": "JavaScript"}


def lines() -> Counter[tuple[str, str]]:
    """{(part, language): lines}. A part is a folder, below `webrnn` a room."""
    counts: Counter[tuple[str, str]] = Counter()
    for file in (file for folder in FOLDERS for file in (ROOT / folder).rglob("*.*")):
        parts = file.relative_to(ROOT).parts
        if file.suffix in KINDS and not NOT_OURS & {*parts}:
            counts[_part(parts), KINDS[file.suffix]] += file.read_bytes().count(b"\n")
    return counts


def _part(parts: tuple[str, ...]) -> str:
    if parts[0] != "runtime":
        return parts[0]
    return "/".join(parts[1:3]) if len(parts) > 3 else parts[1]


def core(counts: Counter[tuple[str, str]]) -> int:
    """The lines of the core together."""
    return sum(counts[f"webrnn/{room}", "Python"] for room in CORE)


def main() -> None:
    counts = lines()
    kinds = sorted({kind for _, kind in counts}, key=list(KINDS.values()).index)
    rows = [[part, *(counts[part, kind] or "" for kind in kinds)] for part in sorted({part for part, _ in counts})]
    rows.append(["together", *(sum(n for (_, of), n in counts.items() if of == kind) for kind in kinds)])
    print(table("lines", rows, ["part", *kinds]))
    print(f"\n{core(counts)} lines of Python in the core: {', '.join(CORE)}")


if __name__ == "__main__":
    main()

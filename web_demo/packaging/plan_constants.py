"""`python -m web_demo.packaging.plan_constants` writes what plan_file.js knows of the tables of runtime/webrnn/plan."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterable
from pathlib import Path

from webrnn.plan import opcodes
from webrnn.plan.first_versions import CASTS, FIRST_CAST
from webrnn.plan.instructions import CODES

FILE = Path(__file__).parents[1] / "host" / "plan_file.js"
START = "// Written by web_demo/packaging/plan_constants.py:\n"
END = "// and so far.\n"


def constants() -> str:
    rows = list(enumerate(opcodes.ERROR_ROWS))
    own = {number: row.raises for number, row in rows if row.raises not in ("PlanError", "LimitError")}
    limits = {number: json.dumps(_camel(row.limit)) for number, row in rows if row.limit}
    return "\n".join([
        f"export const MAGIC = {opcodes.MAGIC:#x};",
        f"const VERSIONS = {json.dumps(opcodes.VERSIONS)};",
        f"export const STORED_VERSIONS = {json.dumps(opcodes.STORED_VERSIONS)}; // of files with half floats",
        f"export {_array('HEADER', opcodes.HEADER)}",
        f"export const SIZE_WORDS = {opcodes.SIZE_WORDS};",
        _array("SIZE_KINDS", opcodes.SIZE_KINDS),
        f"export const BUFFER_WORDS = {opcodes.BUFFER_WORDS}; // kind, element type, row of the table of sizes, place",
        f"const EXTERNAL = {opcodes.BUFFER_KINDS.index('external')}; // a kind of buffer",
        f"const WRITABLE = 1 << {opcodes.WRITABLE.bit_length() - 1}; // in the place of an external",
        _array("ITEM_BYTES", opcodes.ITEM_BYTES),
        f"const MOST_AXES = {opcodes.MOST_AXES}; // of an input or output",
        "/** What the VM returns, by number; for {} stands a limit. */",
        f"export {_array('ERRORS', opcodes.ERRORS)}",
        f"const RAISED = () => ({_object(own)});",
        f"const LIMITS = {_object(limits)};",
        "/** What the VM returns when a run needs more memory. */",
        f"export const GROW = {next(number for number, row in rows if row.name == 'grow')};",
        "/** And what it returns for a plan with something that only full modules have, or only unfused ones. */",
        f"const NEEDS_FULL = {next(number for number, row in rows if row.name == 'needs_full')};",
        f"const NEEDS_UNFUSED = {next(number for number, row in rows if row.name == 'needs_unfused')};",
        "/** The number of an instruction, the first number of casts in versions 1 and 2, and what these are now. */",
        f"export const EXPRESSION = {CODES['expression']};",
        f"export const FIRST_CAST = {FIRST_CAST};",
        f"export {_array('CASTS', CASTS.values())}",
        "",
    ])  # fmt: skip


def written(source: str) -> str:
    """The source with the constants of now."""
    before, rest = source.split(START)
    return before + START + constants() + END + rest.split(END)[1]


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.title() for word in rest)


def _array(name: str, items: Iterable[str | int]) -> str:
    line = f"const {name} = [{', '.join(map(json.dumps, items))}];"
    if len(line) <= 120:
        return line
    text = ", ".join(json.dumps(item).replace(" ", "\0") for item in items)
    inside = textwrap.fill(text, 118, break_on_hyphens=False).replace("\0", " ")
    return f"const {name} = [\n{textwrap.indent(inside, '  ')},\n];"


def _object(items: dict[int, str]) -> str:
    return "{ " + ", ".join(f"{key}: {value}" for key, value in items.items()) + " }"


if __name__ == "__main__":
    FILE.write_text(written(FILE.read_text()))

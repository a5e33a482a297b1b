"""The reference of webrnn.js, from the .d.ts files of the npm package, as Markdown."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HOST = ROOT / "web_demo" / "host"
PACKAGE = ROOT / "web_demo" / "packaging" / "npm" / "package.json"
STATEMENT = re.compile(
    r"export (?:declare )?(?:abstract )?(?P<kind>class|interface|function|const|type) (?P<name>\w+)", re.M
)


def page() -> str:
    """All entries of the package, each with what it exports."""
    parts = [
        "# webrnn.js\n\nWhat the npm package exports, with its types. [In a page](../docs/web.md) says how to use it."
    ]
    for entry, file in entries().items():
        parts.append(f'## {entry}\n\n```js\nimport {{ … }} from "{entry}";\n```')
        for name, statement, about in declarations(HOST / file):
            parts.append(f"### {name}\n\n{about}\n\n```typescript\n{statement}\n```")
    return "\n\n".join(parts) + "\n"


def entries() -> dict[str, str]:
    """{what is imported: its types}."""
    exports = json.loads(PACKAGE.read_text())["exports"]
    typed = {name: value["types"] for name, value in exports.items() if isinstance(value, dict) and "types" in value}
    return {f"webrnn{name[1:]}": Path(types).name for name, types in typed.items()}


def declarations(file: Path) -> Iterator[tuple[str, str, str]]:
    """(name, the statement, what its comment says) of each export, also of what the file hands on."""
    text = file.read_text()
    for statement in statements(text):
        if handed := re.match(r'export \* from "\./([\w.]+)\.js"', statement):
            yield from declarations(file.with_name(f"{handed[1]}.d.ts"))
        elif found := STATEMENT.search(statement):
            comment, code = statement[: found.start()], statement[found.start() :]
            yield found["name"], code.rstrip(), _prose(comment)


def statements(text: str) -> list[str]:
    """The statements of a file, each with the comment before it."""
    found, start, depth, index = [], 0, 0, 0
    while index < len(text):
        if text.startswith("/*", index):
            index = text.index("*/", index) + 2
            continue
        if text.startswith("//", index):
            index = text.find("\n", index) % (len(text) + 1)
            continue
        letter = text[index]
        depth += (letter in "{([") - (letter in "})]")
        index += 1
        if not depth and (letter == ";" or (letter == "}" and text[index : index + 2] in ("\n", "\n\n", "\ne", "\n/"))):
            found.append(text[start:index].strip())
            start = index
    return found


def _prose(comment: str) -> str:
    """The last comment, as text."""
    blocks = re.findall(r"/\*\*(.*?)\*/", comment, re.S)
    return re.sub(r"^\s*\* ?", "", blocks[-1], flags=re.M).strip() if blocks else ""

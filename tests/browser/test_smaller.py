"""Scripts without what a page does not need."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from web_demo.packaging.npm_package import SOURCES
from web_demo.packaging.smaller import smaller

from .node import node

SCRIPT = r"""// What it is for
/** A number,
 * explained. */
const texts = [
  "https://a.b/c", // an address, it's "quoted"
  'x; // no comment', `y, // ${1 + 1}  ${[`a  ${"}"}`, { b: "  " }.b].join("  ")} \` ${ "}" }`,
];
const expressions = [/^\/\/ [;/"] $/.source, "a  b".replace(/ +/g, "'"), 8 / 2 / 1];
const signs = (a, b) => [a + +b, a - -b, a++ + ++b, a in [b] ? 1 : 2];

class Hidden {
  #value = 3; // a number
  #other = () => this.#value + 1;
  has(x) {
    return #value in x && `#value ${this.#other()}`;
  }
}
const order = [];
for (const a of [1]) order.push(a);
for (const _ in { k: 1 }) order.push(_);
console.log(JSON.stringify([texts, expressions, signs(1, 2), new Hidden().has(new Hidden()), order]));
"""


def test_it_does_the_same(tmp_path: Path) -> None:
    made = smaller(SCRIPT)
    found = []
    for name, text in (("before", SCRIPT), ("after", made)):
        (tmp_path / f"{name}.mjs").write_text(text)
        found.append(node(str(tmp_path / f"{name}.mjs")))
    assert found[0] == found[1]
    assert json.loads(found[1])[3] == "#value 4"
    assert len(made.split("\n")) == len(SCRIPT.split("\n"))
    assert all(gone not in made for gone in ("What it is", "explained", "an address", "a number", "#other"))
    assert "for(const a of[1])order.push(a);" in made


@pytest.mark.parametrize("name", ["stream.js", "plan_file.js", "instance.js", "pool_batch.js"])
def test_our_modules(name: str, tmp_path: Path) -> None:
    text = (SOURCES / name).read_text()
    (tmp_path / "smaller.mjs").write_text(smaller(text))
    node("--check", str(tmp_path / "smaller.mjs"))
    assert smaller(text).count("\n") == text.count("\n")


def test_addresses_keep_their_form() -> None:
    line = 'const f = () => new URL("./a.wasm", import.meta.url);'
    assert smaller(line) == 'const f=()=>new URL("./a.wasm", import.meta.url);'

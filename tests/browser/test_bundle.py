"""Modules joined to one file."""

from __future__ import annotations

from pathlib import Path

import pytest

from web_demo.packaging.bundle import BundleError, bundle

from .node import node


def written(folder: Path, **modules: str) -> Path:
    for name, text in modules.items():
        (folder / f"{name}.js").write_text(text)
    return folder


def test_a_bundle_does_what_its_modules_do(tmp_path: Path) -> None:
    written(
        tmp_path,
        main='import { twice } from "./b.js";\nimport { one } from "./a.js";\nexport { two } from "./b.js";\n'
        "export const three = twice(one) + one;\n",
        b='import { one } from "./a.js";\n\nexport const two = one + one;\n'
        "export function twice(x) {\n  return two * x;\n}\n",
        a="const hidden = 1;\nexport const one = hidden;\n",
    )
    made = bundle(tmp_path, "main.js")
    assert made.modules == ["a.js", "b.js", "main.js"]
    (tmp_path / "all.mjs").write_text(made.text)
    script = "import(process.argv[1]).then((all) => console.log(JSON.stringify(all)));"
    assert node("--eval", script, "--", str(tmp_path / "all.mjs")).strip() == '{"three":3,"two":2}'
    assert "import" not in made.text


def test_modules_that_stay_outside(tmp_path: Path) -> None:
    written(
        tmp_path, main='import { one } from "./a.js";\nexport const two = one + one;\n', a="export const one = 1;\n"
    )
    made = bundle(tmp_path, "main.js", {"a.js": "host.js"})
    assert made.modules == ["main.js"]
    assert made.imported == {"host.js": {"one"}}
    assert made.text.startswith('import { one } from "./host.js";\n')


COMMENTED = """// What it is for
/** A number,
 * explained. */
export const all = [
  "https://a.b/c", // an address
  'x; // no comment', /* nor is this */
  `y, // ${1 + 1}`, /^\\/\\/ [;] $/.source,
];

export function twice(x) {
  // twice
  return 2 * x; // it's doubled
}
"""


def test_comments_go_and_nothing_else(tmp_path: Path) -> None:
    written(tmp_path, main=COMMENTED)
    made = bundle(tmp_path, "main.js").text
    for name, text in (("before", COMMENTED), ("after", made)):
        (tmp_path / f"{name}.mjs").write_text(text)
    script = "import(process.argv[1]).then(({ all, twice }) => console.log(JSON.stringify([all, twice(3)])));"
    before, after = (node("--eval", script, "--", str(tmp_path / f"{name}.mjs")) for name in ("before", "after"))
    assert before == after
    assert all(comment not in made for comment in ("What it is", "explained", "an address", "// twice"))
    assert all(line == line.strip() != "" for line in made.splitlines())


@pytest.mark.parametrize(
    ("main", "message"),
    [
        ('import { one } from "./a.js";\nconst hidden = 2;\n', "several modules declare hidden"),
        ('import * as a from "./a.js";\n', "form that is not known"),
        ("export default 3;\n", "form that is not known"),
        ('import { one as uno } from "./a.js";\n', "another name"),
        ("const text = `over\n  two lines`;\n", "over several lines"),
    ],
)
def test_what_cannot_be_joined_raises(main: str, message: str, tmp_path: Path) -> None:
    written(tmp_path, main=main, a="const hidden = 1;\nexport const one = hidden;\n")
    with pytest.raises(BundleError, match=message):
        bundle(tmp_path, "main.js")

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
    assert made.text.startswith('import{one}from"./host.js";\n')


def test_modules_have_names_for_themselves(tmp_path: Path) -> None:
    written(
        tmp_path,
        main='import { one } from "./a.js";\nimport { two } from "./b.js";\n'
        'const hidden = [one, two()];\nexport { one } from "./a.js";\nexport const all = () => hidden.join();\n',
        b="function hidden() {\n  return 2;\n}\nexport const two = () => hidden();\nglobalThis.loaded = true;\n",
        a="const hidden = 1;\nexport const one = hidden;\n",
    )
    (tmp_path / "all.mjs").write_text(bundle(tmp_path, "main.js").text)
    script = "import(process.argv[1]).then(({ all, one }) => console.log(all(), one, loaded));"
    assert node("--eval", script, "--", str(tmp_path / "all.mjs")).strip() == "1,2 1 true"


def test_a_source_map_names_the_lines_of_modules(tmp_path: Path) -> None:
    written(
        tmp_path,
        main='import { fail } from "./a.js";\n\nconst hidden = 2;\n// why\nexport const run = () =>\n  fail(hidden);\n',
        a="/** Raises,\n * always */\nconst hidden = 1;\nexport function fail(x) {\n\n  throw Error(x + hidden);\n}\n",
    )
    made = bundle(tmp_path, "main.js")
    (tmp_path / "src").mkdir()
    for name in made.modules:
        (tmp_path / name).rename(tmp_path / "src" / name)
    (tmp_path / "all.mjs").write_text(f"{made.text}//# sourceMappingURL=all.mjs.map\n")
    (tmp_path / "all.mjs.map").write_text(made.source_map("all.mjs", "src"))
    script = "import(process.argv[1]).then(({ run }) => run()).catch(({ stack }) => console.log(stack));"
    stack = node("--enable-source-maps", "--eval", script, "--", str(tmp_path / "all.mjs"))
    assert "src/a.js:6:" in stack
    assert "src/main.js:6:" in stack


def test_names_that_are_declared_together(tmp_path: Path) -> None:
    written(
        tmp_path,
        main='import { one } from "./a.js";\nconst [hidden, two] = [2, 3];\nconsole.log(one + hidden + two);\n',
        a="const hidden = 1;\nexport const one = hidden;\n",
    )
    (tmp_path / "all.mjs").write_text(bundle(tmp_path, "main.js").text)
    assert node(str(tmp_path / "all.mjs")).strip() == "6"


@pytest.mark.parametrize(
    ("main", "message"),
    [
        ('import { one } from "./a.js";\nexport const one = 2;\n', "several modules export one"),
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

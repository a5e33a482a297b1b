"""The recipes of CONTRIBUTING.md, followed step by step on a copy of the tree.

A block of code with `file=` behind its language is put into that file: at its end, or below the line that `after=` is
part of, indented as that line is, or instead of the line that begins with the word of `instead=`. A block of `sh` is
run.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from .import_graph import ROOT

PAGE = (ROOT / "CONTRIBUTING.md").read_text()
COPIED = ("bench", "docs", "runtime", "tests", "wasm_kernels")
PRODUCT = ("runtime/", "wasm_kernels/")
BLOCK = re.compile(
    r"^ *```(\w+)(?: file=(\S+))?(?: after=([^\n]+)| instead=(\w+))?\n(.*?)^ *```$", re.MULTILINE | re.DOTALL
)

MOST_FILES = {
    "A pass": 2,
    "An op in numpy": 2,
    "A kernel of a known kind": 3,
    "A unary op with a kernel": 4,
    "An activation": 5,
    "An op with an instruction of its own": 6,
}
"""Of the product, that a recipe may touch."""


@dataclass(frozen=True)
class Block:
    language: str
    file: str
    after: str
    instead: str
    text: str


@dataclass(frozen=True)
class Recipe:
    steps: tuple[str, ...]

    @property
    def blocks(self) -> Iterator[Block]:
        for step in self.steps:
            for *head, text in BLOCK.findall(step):
                yield Block(*head, textwrap.dedent(text))

    @property
    def files(self) -> set[str]:
        return {block.file for block in self.blocks if block.file}


def recipes() -> dict[str, Recipe]:
    sections = re.findall(r"^### ([^\n]+)\n(.*?)(?=^##|\Z)", PAGE, re.M | re.S)
    return {title: Recipe(tuple(re.split(r"^\d+\. ", text, flags=re.MULTILINE)[1:])) for title, text in sections}


RECIPES = recipes()


def copy_tree(target: Path) -> None:
    shutil.copytree(ROOT / "runtime" / "webrnn" / "_kernels", target / "runtime" / "webrnn" / "_kernels")
    for folder in COPIED:
        ignored = shutil.ignore_patterns("__pycache__", "_kernels", "*.png", "*.svg")
        shutil.copytree(ROOT / folder, target / folder, ignore=ignored, dirs_exist_ok=True)
    shutil.copy(ROOT / "pyproject.toml", target)


def put(block: Block, tree: Path) -> None:
    file = tree / block.file
    lines = file.read_text().splitlines() if file.exists() else []
    text = block.text.splitlines()
    if block.after:
        place = next(index for index, line in enumerate(lines) if block.after in line)
        indent = lines[place][: len(lines[place]) - len(lines[place].lstrip())]
        lines[place + 1 : place + 1] = [f"{indent}{line}" if line else "" for line in text]
    elif block.instead:
        place = next(index for index, line in enumerate(lines) if line.split()[:1] == [block.instead])
        lines[place : place + 1] = text
    else:
        lines += (["", "", *text]) if lines else text
    file.write_text("\n".join(lines) + "\n")


def run(command: str, tree: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": f"{tree / 'runtime'}{os.pathsep}{tree}"}
    words = shlex.split(command)
    words = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *words[1:]] if words[0] == "pytest" else words
    words = [sys.executable if word == "python" else word for word in words]
    done = subprocess.run(words, cwd=tree, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"


def follow(recipes: Sequence[Recipe], tree: Path) -> None:
    blocks = [block for recipe in recipes for block in recipe.blocks]
    for block in blocks:
        if block.file:
            put(block, tree)
    commands = [line for block in blocks if not block.file for line in block.text.splitlines()]
    for command in dict.fromkeys(commands):
        run(command, tree)


@pytest.mark.parametrize("title", MOST_FILES)
def test_a_recipe_touches_few_files_and_names_them(title: str) -> None:
    recipe = RECIPES[title]
    for step in recipe.steps:
        for _, file, *_ in BLOCK.findall(step):
            assert not file or step.startswith(f"`{file}`"), file
    assert 0 < len([file for file in recipe.files if file.startswith(PRODUCT)]) <= MOST_FILES[title]


def test_every_recipe_is_followed() -> None:
    assert list(RECIPES) == list(MOST_FILES)


IN_C = [title for title, recipe in RECIPES.items() if any(file.endswith(".c") for file in recipe.files)]


@pytest.mark.parametrize("title", [title for title in RECIPES if title not in IN_C])
def test_a_recipe_works(tmp_path: Path, title: str) -> None:
    copy_tree(tmp_path)
    follow([RECIPES[title]], tmp_path)


def test_recipes_in_c_work(tmp_path: Path) -> None:
    """Together, so that the kernels are built once."""
    copy_tree(tmp_path)
    follow([RECIPES[title] for title in IN_C], tmp_path)

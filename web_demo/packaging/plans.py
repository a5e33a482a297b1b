"""The plans in the npm package: which ones, what they are made of, and what their licences ask for."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from webrnn import models
from webrnn.audio import plans
from webrnn.audio.plans import AudioModel

FOLDER = "plans"
NOTICE = "NOTICE"
ROOT = Path(__file__).resolve().parents[2]
CACHE = ROOT / ".cache" / "models"
SHIPPED = ROOT / "tests" / "models" / "files"
"""Models that no package of a registry has."""

MIT = """\
Permission is hereby granted, free of charge, to any person obtaining a copy of this software and associated
documentation files (the "Software"), to deal in the Software without restriction, including without limitation the
rights to use, copy, modify, merge, publish, distribute, sublicense, and/or sell copies of the Software, and to permit
persons to whom the Software is furnished to do so, subject to the following conditions:

The above copyright notice and this permission notice shall be included in all copies or substantial portions of the
Software.

THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED, INCLUDING BUT NOT LIMITED TO THE
WARRANTIES OF MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE AUTHORS OR
COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR
OTHERWISE, ARISING FROM, OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE SOFTWARE."""


@dataclass(frozen=True)
class Row:
    """A model, and the forms of its weights that the package has."""

    name: str
    make: Callable[..., AudioModel]
    sources: tuple[str, ...]
    """Names in `webrnn.models` or of shipped files, in the order in which the maker takes them."""
    weights: tuple[str, ...]
    licence: str
    credit: str
    """Whose it is, as the licence wants it to be said."""

    @property
    def files(self) -> dict[str, str]:
        """The form of the weights by the name of the plan file."""
        return {f"{self.name}{'' if form == 'f32' else f'_{form}'}.rnn": form for form in self.weights}


ROWS = (
    Row(
        "dtln",
        plans.dtln,
        ("dtln_1", "dtln_2"),
        ("int8", "int16"),
        "MIT",
        "DTLN, the dual-signal transformation LSTM network, a denoiser.\n"
        "Copyright (c) 2020 breizhn (Nils L. Westhausen)\nCopyright (c) 2024 Aloware, Inc.",
    ),
    Row(
        "gtcrn",
        plans.gtcrn,
        ("gtcrn_simple",),
        ("f32",),
        "MIT",
        "GTCRN, a denoiser that needs little.\nCopyright (c) 2024 Xiaobin Rong",
    ),
    Row(
        "nsnet2",
        plans.nsnet2,
        ("nsnet2_16k",),
        ("int8",),
        "CC-BY-4.0",
        "NSNet2, a denoiser: the baseline of the Deep Noise Suppression Challenge,\n"
        "by Sebastian Braun and Ivan Tashev.\n"
        "Copyright (c) Microsoft Corporation",
    ),
    Row(
        "silero",
        plans.silero,
        ("silero_v6",),
        ("int8", "int16", "f32"),
        "MIT",
        "Silero VAD, a detector of speech.\nCopyright (c) 2020-present Silero Team",
    ),
    Row(
        "wake_word_front",
        plans.wake_word_front,
        ("oww_melspec", "oww_embedding"),
        ("int8", "int16"),
        "Apache-2.0",
        "speech_embedding by Google, and the mel spectrum before it, as openWakeWord by David Scripka has them.",
    ),
)
FILES = tuple(name for row in ROWS for name in row.files)


def write(folder: Path, cache: Path = CACHE) -> None:
    """All plan files into a folder that is made for them."""
    folder.mkdir()
    for row in ROWS:
        made = row.make(*(_source(name, cache) for name in row.sources))
        for name, weights in row.files.items():
            made.export(folder / name, weights)


def _source(name: str, cache: Path) -> Path:
    shipped = SHIPPED / f"{name}.onnx"
    return shipped if shipped.exists() else models.fetch(name, cache)


def origins(row: Row, cache: Path = CACHE) -> list[tuple[str, str, str]]:
    """(file, sha256, package, if a registry has it) of each model that plans are made of."""
    known = {**models.MODELS, **models.PARTS}
    found = []
    for name in row.sources:
        source = known.get(name)
        digest = source.sha256 if source else hashlib.sha256(_source(name, cache).read_bytes()).hexdigest()
        found.append((source.member if source else f"{name}.onnx", digest, source.spec if source else ""))
    return found


def notice() -> str:
    """What the package has to say of the models in it."""
    return "\n\n".join([
        "webrnn\nLicensed under the Apache License, Version 2.0: see the file LICENSE.",
        f"The files in {FOLDER}/ are models of others, translated to plans by webrnn; those with int8 or int16 in\n"
        "their names have their weights rounded. Each keeps the licence of its model.",
        *map(_paragraph, ROWS),
        f"The MIT licence:\n\n{MIT}",
        "Apache-2.0: see the file LICENSE. CC-BY-4.0: https://creativecommons.org/licenses/by/4.0/legalcode",
    ]) + "\n"  # fmt: skip


def _paragraph(row: Row) -> str:
    known = {**models.MODELS, **models.PARTS}
    packages = sorted({known[name].spec for name in row.sources if name in known})
    taken = f" Taken from {', '.join(packages)}." if packages else ""
    names = ", ".join(f"{FOLDER}/{name}" for name in row.files)
    return f"{names}\n{row.credit}\nLicence: {row.licence}.{taken}"

"""The models that the page offers to try."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from webrnn import models
from webrnn.bench.models import BUILT_IN
from webrnn.errors import Error


@dataclass(frozen=True)
class Bundled:
    """A model, and what the page fills in for it."""

    name: str
    title: str
    what: str
    fixed: dict[str, int] = field(default_factory=dict)
    shapes: dict[str, list[int]] = field(default_factory=dict)


OWN = [
    Bundled("gru_256", "GRU 256", "a plain GRU over 100 steps"),
    Bundled("scan_wlstm_128", "Custom cell", "a layer-normalized LSTM with peepholes, as an ONNX Scan"),
]
REAL = [
    Bundled(
        "silero_v6",
        "Silero VAD",
        "says whether somebody speaks",
        fixed={"sr": 16000},
        shapes={"input": [1, 576], "state": [2, 1, 128]},
    ),
    Bundled("dtln_1", "DTLN, stage 1", "a mask for the noise in a spectrum"),
    Bundled("dtln_2", "DTLN, stage 2", "refines the samples"),
    Bundled("riann", "RIANN", "orientation from motion sensors", shapes={"input": [1, 50, 7]}),
]


def write(folder: Path, say: Callable[[str], None] = print) -> list[dict[str, Any]]:
    """The models as `<name>.onnx`; returns their descriptions. What cannot be fetched here is left out."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for model in OWN:
        (folder / f"{model.name}.onnx").write_bytes(BUILT_IN[model.name]())
        written.append(model)
    for model in REAL:
        try:
            shutil.copyfile(models.fetch(model.name), folder / f"{model.name}.onnx")
            written.append(model)
        except Error as error:
            say(f"the page goes without {model.title}: {error}")
    return [
        {**asdict(model), "file": f"bundled/{model.name}.onnx", "bytes": (folder / f"{model.name}.onnx").stat().st_size}
        for model in written
    ]

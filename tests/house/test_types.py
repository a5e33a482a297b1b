"""What a type checker sees of webrnn in somebody's own code, where webrnn is installed."""

from __future__ import annotations

import re
import subprocess
import sys
import venv
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
TYPES = {
    "session.run(None, {'x': x})": "list[Any]",
    "session.get_inputs()[0].name": "str",
    "session.stream": "def (carry: Mapping[str, str] | str =, check_finite: bool =, "
    "time: Mapping[str, int] | None =, running: bool =, lookback: int | None =, "
    "starts: Mapping[str, Any] | None =) -> Stream",
    "session.stream().step({'x': x})": "list[Any]",
    "session.stream().state": "dict[str, ndarray]",
    "session.pool(max_streams=4)": "StreamPool",
    "session.pool().open()": "int",
    "webrnn.Limits(seconds=1.0)": "Limits",
    "webrnn.Limits().seconds": "float | None",
    "webrnn.optimize('model.onnx')": "Report",
    "webrnn.trainer('model.onnx', 'mse').step({'x': x})": "float",
    "webrnn.trainer('model.onnx', 'mse').parameters()": "dict[str, ndarray]",
}


def test_a_checker_sees_types(tmp_path: Path) -> None:
    reveals = "\n".join(f"reveal_type({expression})" for expression in TYPES)
    wrong = "webrnn.Limits(seconds='long')\nsession.run(None)"
    start = "import numpy as np\nimport webrnn\nx = np.ones(3)\nsession = webrnn.InferenceSession('model.onnx')"
    (tmp_path / "script.py").write_text(f"{start}\n{reveals}\n{wrong}\n")
    home = tmp_path / "venv"
    venv.create(home, symlinks=True)
    (packages,) = home.glob("lib/python*/site-packages")
    (packages / "installed.pth").write_text(f"{ROOT / 'runtime'}\n{Path(np.__file__).parents[1]}\n")
    command = [sys.executable, "-m", "mypy", "--python-executable", str(home / "bin" / "python"), "script.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    said = done.stdout.splitlines()
    found = [_short(line) for line in said if "Revealed type" in line]
    assert dict(zip(TYPES, found, strict=True)) == TYPES, done.stdout + done.stderr
    errors = [line.rpartition(" ")[2] for line in said if " error: " in line]
    assert errors == ["[arg-type]", "[call-overload]"], done.stdout


def _short(line: str) -> str:
    """The type that a line of mypy's reveals, without the modules and parameters of numpy."""
    text = re.sub(r"\b(?:\w+\.)+(\w+)", r"\1", line.split('Revealed type is "')[1].rstrip('"'))
    return re.sub(r"ndarray\[.*\]\]\]", "ndarray]", text)

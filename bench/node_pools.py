"""`python -m bench.node_pools`: a tick of a pool in Node, beside onnxruntime-web batched by hand.

GRU-128, GRU-256 and riann, 64 and 256 streams of one frame each. `make peers` installs onnxruntime-web.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import tempfile
from pathlib import Path

import onnx

import webrnn
from pyodide_pkg.core import node
from tests.models.fetch import model_path
from webrnn.bench.models import streaming_gru
from webrnn.web.folders import write_host

PEERS = Path(__file__).resolve().parents[1] / "build" / "peers"


def models() -> dict[str, bytes]:
    """Models of one frame whose number of streams is open."""
    riann = onnx.load_from_string(model_path("riann").read_bytes())
    for value, axis in zip([*riann.graph.input, *riann.graph.output], (0, 2, 0, 2), strict=True):
        value.type.tensor_type.shape.dim[axis].dim_param = "streams"
    return {
        "GRU-128": streaming_gru(128, 128),
        "GRU-256": streaming_gru(256, 256),
        "riann": riann.SerializeToString(),
    }


def write(folder: Path) -> None:
    """What the script reads: the host, models, their plans and what they take."""
    write_host(folder)
    (folder / "package.json").write_text('{"type": "module"}')
    entries = []
    for name, data in models().items():
        session = webrnn.InferenceSession(data)
        session.export(folder / f"{name}.rnn", carry="auto", pool=True)
        (folder / f"{name}.onnx").write_bytes(data)
        plan = webrnn.InferenceSession(folder / f"{name}.rnn")
        carry = plan.stream().carry
        shapes = {
            item.name: [1 if size in ("steps", "sequence") else size for size in item.shape]
            for item in plan.get_inputs()
        }
        (fed,) = (item for item in shapes if item not in carry)
        states = [{"input": before, "output": after, "shape": shapes[before]} for before, after in carry.items()]
        output = next(item.name for item in plan.get_outputs() if item.name not in carry.values())
        entries.append(
            {
                "name": name, "plan": f"{name}.rnn", "onnx": f"{name}.onnx", "output": output,
                "input": {"name": fed, "shape": shapes[fed]}, "states": states,
            }
        )  # fmt: skip
    (folder / "models.json").write_text(json.dumps(entries))


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.node_pools", description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--streams", default="64,256", help="how many streams, as 64,256")
    arguments = parser.parse_args()
    if not PEERS.exists():
        parser.error("onnxruntime-web is missing: make peers")
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder))
        script = Path(__file__).with_suffix(".mjs")
        command = [node(), str(script), folder, str(PEERS), str(arguments.rounds), arguments.streams]
        subprocess.run(command, check=True)


if __name__ == "__main__":
    main()

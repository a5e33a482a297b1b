"""What a user tries first, with nothing but an installed webrnn: `python smoke.py MODEL`.

A GRU is run, streamed and exported on every build that runs there. What each gives is printed as digests, to be
compared with those of other machines.
"""

from __future__ import annotations

import hashlib
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

import webrnn
from webrnn.engine.kernels import loading

CARRY = {"h_in": "h_out"}


def results(model: str) -> dict[str, Any]:
    """By build: whether multiply-adds are fused, and a digest of results; then the digest of the plan."""
    found: dict[str, Any] = {"builds": {}, "home": str(Path(webrnn.__file__).parent), "version": webrnn.__version__}
    plans = set()
    x = np.random.default_rng(1).random((7, 1, 64), np.float32) - np.float32(0.5)
    for spec in loading.available():
        session = webrnn.InferenceSession(Path(model).read_bytes(), backend=spec)
        whole = session.run(["y"], {"x": x, "h_in": np.zeros((1, 1, 128), np.float32)})[0]
        stream = session.stream(carry=CARRY)
        steps = np.concatenate([stream.step({"x": frame[None]})[0] for frame in x])
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "gru.rnn"
            session.export(file, carry=CARRY)
            plans.add(hashlib.sha256(file.read_bytes()).hexdigest())
            again = webrnn.InferenceSession(file, backend=spec).stream()
        plan = np.concatenate([again.step({"x": frame[None]})[0] for frame in x])
        assert whole.tobytes() == steps.tobytes() == plan.tobytes(), f"{spec}: run, stream and plan differ"
        found["builds"][spec] = [loading.load(spec).fused, hashlib.sha256(whole.tobytes()).hexdigest()]
    (found["plan"],) = plans
    return found


if __name__ == "__main__":
    print(json.dumps(results(sys.argv[1])))

"""Runs inside Pyodide, on the installed wheel: a model on the variant that is chosen, or on the one that is asked for.

argv: the model, its feeds, where the results go, the backends; "env:scalar" stands for WEBRNN_VARIANT=scalar.
"""

import json
import os
import sys

import numpy as np

import webrnn
from webrnn.engine.kernels import loading as kernels

model, feeds, results, *backends = sys.argv[1:]
inputs = dict(np.load(feeds))
found = {"available": kernels.available(), "runs": {}}
arrays = {}
for backend in backends:
    if backend.startswith("env:"):
        os.environ["WEBRNN_VARIANT"] = backend.removeprefix("env:")
    try:
        session = webrnn.InferenceSession(model, backend="auto" if backend.startswith("env:") else backend)
        found["runs"][backend] = kernels.load("pyodide" if ":" not in session.backend else session.backend).spec
        for number, array in enumerate(session.run(None, inputs)):
            arrays[f"{backend} {number}"] = array
    except webrnn.Error as error:
        found["runs"][backend] = f"{type(error).__name__}: {error}"
np.savez(results, **arrays)
print(json.dumps(found))

"""Whoever follows a GRU from its bytes to its result enters few files."""

from __future__ import annotations

import json
import subprocess
import sys

from webrnn.bench.models import BUILT_IN

from .import_graph import PACKAGE

MOST_FILES = 75

PROGRAM = """
import json, sys
import numpy as np

data, package = sys.stdin.buffer.read(), sys.argv[1]
entered = set()


def enter(frame, event, argument):
    code = frame.f_code
    is_function = code.co_flags & 1 and not (code.co_name[0] == "<" and frame.f_back.f_code.co_name == "<module>")
    if event == "call" and is_function and code.co_filename.startswith(package):
        entered.add(code.co_filename[len(package) + 1 :])


sys.setprofile(enter)
import webrnn

session = webrnn.InferenceSession(data, backend="native")
feeds = {each.name: np.ones(each.shape, np.float32) for each in session.get_inputs()}
session.run(None, feeds)
sys.setprofile(None)
print(json.dumps(sorted(entered)))
"""


def test_files_with_a_function_that_runs() -> None:
    command = [sys.executable, "-c", PROGRAM, str(PACKAGE)]
    done = subprocess.run(command, input=BUILT_IN["gru_128"](), capture_output=True, check=True)
    entered = json.loads(done.stdout)
    assert {"onnx/reader.py", "engine/session.py", "plan/encode.py"} <= {*entered}
    assert len(entered) <= MOST_FILES, entered

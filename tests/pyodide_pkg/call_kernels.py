"""Runs inside Pyodide, on the standard library alone: calls kernels of a side module on the cases in a JSON file.

argv: the side module, the cases, the file for the results. Arrays are base64.
"""

import base64
import ctypes
import json
import sys

module, cases, results = sys.argv[1:]
library = ctypes.CDLL(module)
SCALARS = {"i32": ctypes.c_int32, "f32": ctypes.c_float}
answers = []
with open(cases) as file:
    for case in json.load(file):
        function = library[case["symbol"]]
        function.argtypes = [SCALARS.get(kind, ctypes.c_void_p) for kind in case["types"]]
        function.restype = None
        buffers, values = [], []
        for argument in case["arguments"]:
            if isinstance(argument, dict):
                data = base64.b64decode(argument["data"])
                buffers.append(ctypes.create_string_buffer(data, len(data) + 16))
                argument = ctypes.addressof(buffers[-1])
            values.append(argument)
        function(*values)
        answers.append([base64.b64encode(b.raw[:-16]).decode() for b in buffers])
with open(results, "w") as file:
    json.dump(answers, file)

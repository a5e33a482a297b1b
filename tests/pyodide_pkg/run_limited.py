"""Runs inside Pyodide, on the standard library alone: a plan that does not end, with limits of each kind.

argv: the side module, the plan, the file for what the runs return.
"""

import ctypes
import json
import sys

module, plan_file, results = sys.argv[1:]
library = ctypes.CDLL(module)
variant = module.removesuffix(".wasm").rpartition("_")[2]
with open(plan_file, "rb") as file:
    data = file.read()


def place(n_bytes):
    """The address of 64-byte aligned memory, and what keeps it."""
    memory = ctypes.create_string_buffer(n_bytes + 64)
    return -(-ctypes.addressof(memory) // 64) * 64, memory


def call(name, *arguments):
    return library[f"wr_{name}_{variant}"](*arguments)


plan, kept_plan = place(len(data))
ctypes.memmove(plan, data, len(data))
assert call("plan_check", plan, len(data)) == 0
tables, kept_tables = place(call("plan_table_bytes", plan))
assert call("plan_bind", plan, 0, tables) == 0
arena, kept_arena = place(call("plan_arena_bytes", tables))
output, kept_output = place(call("plan_external_bytes", tables, 0))
externals = (ctypes.c_void_p * 1)(output)
returned = []
for limits in ((1000, -1, -1), (-1, 1000, -1), (-1, -1, 50_000)):
    call("plan_limit", tables, (ctypes.c_int64 * 3)(*limits))
    returned.append(call("plan_run", tables, arena, externals))
with open(results, "w") as file:
    json.dump(returned, file)

"""The table, the C sources and the references stay in step."""

from __future__ import annotations

import re
from pathlib import Path

from wasm_kernels import build, naive, table
from wasm_kernels.cases import GRIDS


def test_every_row_has_a_reference_and_a_grid() -> None:
    for kernel in table.KERNELS:
        assert callable(naive.of(kernel)), kernel.name
        assert kernel.kind in GRIDS, kernel.kind


def test_names_are_unique() -> None:
    names = [kernel.name for kernel in table.KERNELS]
    assert len(names) == len(set(names))


def test_parameters_of_a_row() -> None:
    gather = table.BY_NAME["gather"]
    assert gather.parameters[1] == ("const i64 *", "index")
    assert gather.returns == "i32"
    assert table.BY_NAME["exp"].returns is None


def test_sources_contain_no_call_to_the_c_library() -> None:
    allowed = {"stddef.h", "stdint.h", "immintrin.h", "emmintrin.h", "arm_neon.h", "cpuid.h"}
    here = Path(build.HERE)
    for file in (*here.glob("*.c"), *here.glob("*.h")):
        clock = {"time.h"} if file.name == "clock.h" else set()  # of native builds
        assert set(re.findall(r"#include <([^>]+)>", file.read_text())) <= allowed | clock, file.name


def test_window_fields_match_the_c_struct() -> None:
    struct = re.search(r"typedef struct \{(.*?)\} Window;", (build.HERE / "window.c").read_text(), re.S)
    assert struct
    declarations = re.sub(r"/\*.*?\*/", "", struct[1])
    fields = re.findall(r"\w+", declarations.replace("int32_t", ""))
    assert tuple(fields) == table.WINDOW_FIELDS

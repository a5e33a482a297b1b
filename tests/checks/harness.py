"""One node as a model: its verdict on each backend, with sizes that are numbers and with sizes that have only names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from onnx import helper, numpy_helper

import webrnn
from tests.backends import BACKENDS

NODE = "checked"
OPSET = 22


@dataclass(frozen=True)
class Const:
    """An operand that is an initializer; others are fed."""

    array: np.ndarray


@dataclass
class Case:
    op: str
    operands: list[Any]
    attrs: dict[str, Any] = field(default_factory=dict)
    outputs: int = 1
    opset: int = OPSET

    def __str__(self) -> str:
        def spell(operand: Any) -> str:
            if operand is None:
                return "-"
            array = operand.array if isinstance(operand, Const) else operand
            text = f"{array.dtype}{list(array.shape)}".replace(" ", "")
            small = isinstance(operand, Const) and array.size <= 4
            return text + (f"={array.tolist()}".replace(" ", "") if small else "")

        attrs = ",".join(f"{name}={value}".replace(" ", "") for name, value in self.attrs.items())
        return f"{self.op}({','.join(map(spell, self.operands))};{attrs})" + f"x{self.outputs}" * (self.outputs > 1)


def case(op: str, *operands: Any, outputs: int = 1, opset: int = OPSET, **attrs: Any) -> Case:
    return Case(op, list(operands), attrs, outputs, opset)


def f(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).normal(size=shape).astype(np.float32)


def c(*numbers: int) -> Const:
    return Const(np.array(numbers, np.int64))


def model_bytes(case: Case, symbolic: bool) -> tuple[bytes, dict[str, np.ndarray]]:
    names, inputs, initializers, feeds = [], [], [], {}
    for index, operand in enumerate(case.operands):
        name = f"x{index}" if operand is not None else ""
        names.append(name)
        if isinstance(operand, Const):
            initializers.append(numpy_helper.from_array(operand.array, name))
        elif operand is not None:
            shape = [f"{name}_{axis}" if symbolic else size for axis, size in enumerate(operand.shape)]
            kind = helper.np_dtype_to_tensor_dtype(operand.dtype)
            inputs.append(helper.make_tensor_value_info(name, kind, shape))
            feeds[name] = operand
    outputs = [f"y{index}" for index in range(case.outputs)]
    node = helper.make_node(case.op, names, outputs, name=NODE, **case.attrs)
    results = [helper.make_empty_tensor_value_info(name) for name in outputs]
    graph = helper.make_graph([node], "g", inputs, results, initializers)
    imports = [helper.make_opsetid("", case.opset)]
    return helper.make_model(graph, opset_imports=imports, ir_version=9).SerializeToString(), feeds


def verdict(case: Case, backend: str, symbolic: bool) -> webrnn.Error | list[np.ndarray]:
    """The results, or the error that opening or running the model raised."""
    data, feeds = model_bytes(case, symbolic)
    try:
        return webrnn.InferenceSession(data, backend=backend).run(None, feeds)
    except webrnn.Error as error:
        return error


def verdicts(case: Case, backends: Sequence[str] = BACKENDS) -> dict[str, webrnn.Error | list[np.ndarray]]:
    """By backend and kind of sizes."""
    ways = [(backend, symbolic) for symbolic in (False, True) for backend in backends]
    return {f"{backend}{' named' * symbolic}": verdict(case, backend, symbolic) for backend, symbolic in ways}


def summary(found: webrnn.Error | list[np.ndarray]) -> str:
    if isinstance(found, webrnn.Error):
        return f"{type(found).__name__}: {found}"
    return ", ".join(f"{array.dtype}{list(array.shape)}" for array in found)


def refused_alike(found: dict[str, Any]) -> str:
    """Empty if all are errors of one class that name the node; otherwise what they are."""
    classes = {type(each) for each in found.values()}
    named = all(isinstance(each, webrnn.Error) and each.node == NODE for each in found.values())
    if len(classes) == 1 and named:
        return ""
    return "\n".join(f"{way}: {summary(each)}" for way, each in found.items())


def same_results(found: dict[str, Any]) -> str:
    """Empty if all are equal results, up to rounding; otherwise what they are."""
    first = next(iter(found.values()))
    for each in found.values():
        if isinstance(each, webrnn.Error) or len(each) != len(first):
            break
        if any(a.dtype != b.dtype or a.shape != b.shape for a, b in zip(each, first, strict=True)):
            break
        if not all(np.allclose(a, b, 1e-4, 1e-5, equal_nan=True) for a, b in zip(each, first, strict=True)):
            break
    else:
        return ""
    return "\n".join(f"{way}: {summary(each)}" for way, each in found.items())

"""The table of numpy ops: `@op("Name")` puts a function in it, `lookup` and `call` take it out.

The module of an op is imported when the op is first looked up (its row in ops/table.py says which one).

The inputs of an op are positional (None where the node leaves one out), its attributes are keyword-only and carry
ONNX's defaults. A function that declares the keyword `n_outputs` is told how many outputs the node has.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, TypeVar

import numpy as np

from webrnn.errors import Error, ModelError, ShapeError, UnsupportedOp
from webrnn.ops.registry import Registry
from webrnn.ops.sets import ELEMENTWISE

from .arrays import Array, widen
from .sizes import check_broadcast

_BFLOAT16_FIELDS = ("bfloat16",)
"""Of arrays that carry it (see `narrow`)."""
Function = TypeVar("Function", bound=Callable[..., Any])

FUNCTIONS: Registry[Callable[..., Any]] = Registry("numpy", f"{__package__}.{{}}")
_attributes: dict[Callable[..., Any], frozenset[str]] = {}
_any_type: set[Callable[..., Any]] = set()
_widens: set[Callable[..., Any]] = set()
_may_be_none: dict[Callable[..., Any], tuple[int, ...]] = {}


def op(
    *names: str, domain: str = "", any_type: bool = False, widens: bool = False, may_be_none: tuple[int, ...] = ()
) -> Callable[[Function], Function]:
    """Register a function as the implementation of the ops called `names`.

    `any_type` says that it also takes tensors of the types that numpy cannot calculate with (see `narrow`), and
    complex ones. `widens`: it takes half floats as float32, since its attributes and what comes in between need not be
    half floats; its result is rounded to them. `may_be_none` are the inputs that a node may leave out although required
    ones follow them.
    """

    def register(function: Function) -> Function:
        code = function.__code__
        keywords = code.co_varnames[code.co_argcount : code.co_argcount + code.co_kwonlyargcount]
        _attributes[function] = frozenset(keywords)
        if any_type:
            _any_type.add(function)
        if widens:
            _widens.add(function)
        _may_be_none[function] = may_be_none
        FUNCTIONS(*names, domain=domain)(function)
        return function

    return register


def unary(module: str, functions: Mapping[str, Callable[[Any], Any]]) -> None:
    """Register functions of a module that take one tensor, by the names of their ops."""
    for name, function in functions.items():
        made = _of_one(function)
        made.__module__ = module
        op(name)(made)


def binary(module: str, functions: Mapping[str, Callable[[Any, Any], Any]]) -> None:
    """Register functions of a module that take two tensors, by the names of their ops."""
    for name, function in functions.items():
        made = _of_two(function)
        made.__module__ = module
        op(name)(made)


def _of_one(function: Callable[[Any], Any]) -> Callable[..., Any]:
    return lambda x: function(x)


def _of_two(function: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    return lambda a, b: function(a, b)


def lookup(domain: str, op_type: str) -> Callable[..., Any] | None:
    """The function that implements an op, or None.

    >>> lookup("", "Add") is not None, lookup("", "NoSuchOp")
    (True, None)
    """
    return FUNCTIONS.get("" if domain == "ai.onnx" else domain, op_type)


def registered() -> list[tuple[str, str]]:
    """All (domain, op) pairs, sorted."""
    return sorted(FUNCTIONS.names())


def call(
    op_type: str,
    domain: str,
    inputs: Sequence[Any],
    attrs: Mapping[str, Any],
    n_outputs: int = 1,
) -> list[Any]:
    """Run one op and return the list of its outputs. Its rule has been asked; `webrnn.checks.arrays.call` does both.

    >>> call("Add", "", [np.float32([1, 2]), np.float32(3)], {})
    [array([4., 5.], dtype=float32)]
    """
    function = lookup(domain, op_type)
    if function is None:
        name = f"{domain}:{op_type}" if domain else op_type
        raise UnsupportedOp("there is no implementation of this op", op=name)
    _check_signature(function, op_type, inputs, attrs)
    _check_types(function, op_type, inputs)
    keywords = dict(attrs)
    if "n_outputs" in _attributes[function]:
        keywords["n_outputs"] = n_outputs
    try:
        if len(inputs) > 1 and op_type in ELEMENTWISE:
            check_broadcast(inputs)
        with np.errstate(all="ignore"):
            result = _in_float32(function, op_type, inputs, keywords)
    except Error as error:
        raise type(error)(error.message, node=error.node, op=op_type, attribute=error.attribute) from error
    except (ValueError, IndexError, ArithmeticError, MemoryError) as error:
        raise ShapeError(f"{error} (input shapes: {_shapes(inputs)})", op=op_type) from error
    except (TypeError, AttributeError) as error:
        raise ModelError(f"{error} (input types: {_types(inputs)})", op=op_type) from error
    outputs = list(result) if isinstance(result, tuple) else [result]
    if len(outputs) < n_outputs:
        raise UnsupportedOp(f"the node asks for {n_outputs} outputs, this op has {len(outputs)}", op=op_type)
    return [_as_array(value) for value in outputs[:n_outputs]]


def _in_float32(function: Callable[..., Any], op_type: str, inputs: Sequence[Any], keywords: Mapping[str, Any]) -> Any:
    """The function; numpy computes bfloat16 in float32, and results are rounded to it."""
    narrow = [isinstance(value, np.ndarray) and value.dtype.names == _BFLOAT16_FIELDS for value in inputs]
    if function in _widens and inputs[0].dtype == np.float16:
        return function(*map(widen, inputs), **keywords).astype(np.float16, copy=False)
    if function in _any_type or not any(narrow):
        return function(*inputs, **keywords)
    from .narrow import BFLOAT16, decode, encode  # few models have it

    result = function(*(decode(value) if is_ else value for value, is_ in zip(inputs, narrow, strict=True)), **keywords)
    if not (narrow[0] or op_type == "OneHot"):
        return result
    outputs = result if isinstance(result, tuple) else (result,)
    stashed = 1 if op_type == "LayerNormalization" else len(outputs)
    rounded = tuple(
        encode(np.asarray(value), BFLOAT16) if index < stashed and np.asarray(value).dtype == np.float32 else value
        for index, value in enumerate(outputs)
    )
    return rounded if isinstance(result, tuple) else rounded[0]


def check_signature(op_type: str, domain: str, inputs: Sequence[Any], attrs: Mapping[str, Any]) -> None:
    """Raise unless an op takes so many inputs, None for those left out, these attributes and arrays of these types.
    Of an op that is not there nothing is known.
    """
    function = lookup(domain, op_type)
    if function is not None:
        _check_signature(function, op_type, inputs, attrs)
        _check_types(function, op_type, inputs)


def _check_signature(
    function: Callable[..., Any], op_type: str, inputs: Sequence[Any], attrs: Mapping[str, Any]
) -> None:
    known = _attributes[function]
    for name in attrs:
        if name not in known or name == "n_outputs":
            raise UnsupportedOp("this attribute is not supported", op=op_type, attribute=name)
    code = function.__code__
    required = code.co_argcount - len(function.__defaults__ or ())
    variadic = bool(code.co_flags & inspect.CO_VARARGS)
    if len(inputs) < required or (len(inputs) > code.co_argcount and not variadic):
        most = "any number" if variadic else str(code.co_argcount)
        raise ModelError(f"{len(inputs)} inputs given, it takes {required} to {most}", op=op_type)
    for position, value in enumerate(inputs):
        is_optional = required <= position < code.co_argcount or position in _may_be_none[function]
        if value is None and not is_optional:
            raise ModelError(f"input {position} is required", op=op_type)
    for name, value in attrs.items():
        if not _is_of_kind(value, function.__annotations__.get(name, "Any")):
            raise ModelError(f"{value!r} is of another type", op=op_type, attribute=name)
    missing = known - attrs.keys() - (function.__kwdefaults__ or {}).keys() - {"n_outputs"}
    if missing:
        raise ModelError("this attribute is required", op=op_type, attribute=min(missing))


_KINDS: dict[str, tuple[type, ...]] = {
    "int": (int, np.integer),
    "float": (int, float, np.integer, np.floating),
    "str": (str,),
    "Array": (np.ndarray,),
}


@cache
def _kinds(annotation: str) -> tuple[tuple[type, ...] | None, tuple[type, ...] | None, bool]:
    """Of an attribute that is declared so: the types it may have, those of its elements, and whether None is one."""
    names = annotation.split(" | ")
    listed = next((name[5:-1] for name in names if name.startswith("list[")), None)
    single = next((_KINDS[name] for name in names if name in _KINDS), None)
    return single, None if listed is None else _KINDS[listed], "None" in names


def _is_of_kind(value: Any, annotation: str) -> bool:
    single, listed, may_be_none = _kinds(annotation)
    if single is None and listed is None:
        return True
    if value is None:
        return may_be_none
    if single is not None and isinstance(value, single):
        return True
    return listed is not None and isinstance(value, list | tuple) and all(isinstance(item, listed) for item in value)


def _check_types(function: Callable[..., Any], op_type: str, inputs: Sequence[Any]) -> None:
    for value in inputs:
        foreign = isinstance(value, np.ndarray) and value.dtype.kind in "Vc" and value.dtype.names != _BFLOAT16_FIELDS
        if foreign and function not in _any_type:
            raise UnsupportedOp(
                f"tensors of {(value.dtype.names or [value.dtype])[0]} are not supported here", op=op_type
            )


def _shapes(inputs: Sequence[Any]) -> str:
    return ", ".join(str(list(x.shape)) if isinstance(x, np.ndarray) else type(x).__name__ for x in inputs)


def _types(inputs: Sequence[Any]) -> str:
    return ", ".join(str(x.dtype) if isinstance(x, np.ndarray) else type(x).__name__ for x in inputs)


def _as_array(value: Any) -> Array | list[Any] | None:
    """Numpy turns 0-d results into scalars; a tensor stays an array."""
    if isinstance(value, str):
        return np.array(value, object)
    return np.asarray(value) if isinstance(value, np.generic) else value

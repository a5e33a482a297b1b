"""Files of `torch.save`: a zip of a pickle and of the bytes of each storage. The pickle is read, never executed.

A tensor is a view of a storage: an offset, sizes and strides, counted in elements. Several may share one storage.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from webrnn.errors import ModelError, OptionError, UnsupportedOp

from .archives import Archive
from .elements import BFLOAT16, MOST_AXES, TYPES_OF_TORCH, Element, count_of, widened
from .pickles import Maker, Name, PickleReader, plain_key

_STORAGES = {
    "DoubleStorage": "float64", "FloatStorage": "float32", "HalfStorage": "float16", "BFloat16Storage": "bfloat16",
    "LongStorage": "int64", "IntStorage": "int32", "ShortStorage": "int16", "CharStorage": "int8",
    "ByteStorage": "uint8", "BoolStorage": "bool", "UntypedStorage": "uint8",
}  # fmt: skip

_LEGACY_MAGIC = bytes.fromhex("8a0a6cfc9c46f9206aa850192e")
"""With which a file starts that torch wrote before 1.6, behind the number of the protocol."""

_SAVE_STATE_DICT = "torch.save(model) stores code: save model.state_dict() instead, or write a safetensors file"


def looks_like_torch(data: bytes) -> bool:
    return data.startswith(b"\x80") and data[2:].startswith(_LEGACY_MAGIC)


def read_torch(data: bytes, key: str | None = None) -> dict[str, np.ndarray]:
    """The tensors of a file by name. A checkpoint that has the state_dict below a key ("state_dict", "model") says so
    by the error that names the keys there are."""
    if looks_like_torch(data):
        raise UnsupportedOp(
            "this file is of the form that torch wrote before 1.6: load it with torch.load and save it again"
        )
    return state_dict_of(_TorchArchive(data).read(), key)


class _TorchArchive:
    """The entries of the zip, below the folder that torch puts them in."""

    def __init__(self, data: bytes):
        self.archive = Archive(data)
        names = self.archive.names
        pickles = [name for name in names if name == "data.pkl" or name.endswith("/data.pkl")]
        if len(pickles) != 1:
            raise ModelError(f"a file of torch.save has one data.pkl, this zip file has {len(pickles)}")
        self.folder = pickles[0][: -len("data.pkl")]
        if any(name.startswith(f"{self.folder}code/") or name == f"{self.folder}constants.pkl" for name in names):
            raise UnsupportedOp(f"this is a TorchScript archive. {_SAVE_STATE_DICT}")
        if f"{self.folder}byteorder" in names and self._entry("byteorder").strip() != b"little":
            raise UnsupportedOp("the numbers of this file are big-endian: save it again on a little-endian machine")
        self.storages: dict[str, bytes] = {}

    def read(self) -> Any:
        return PickleReader(self._entry("data.pkl"), _maker, self._storage).read()

    def _entry(self, name: str) -> bytes:
        return self.archive.read(self.folder + name, only_stored=True)

    def _storage(self, persistent: Any) -> _Storage:
        if not (isinstance(persistent, tuple) and len(persistent) == 5 and persistent[0] == "storage"):
            raise ModelError("a persistent id of the pickle is no storage")
        _, kind, key, _, count = persistent
        if isinstance(kind, Name):
            kind = kind.make
        if not isinstance(kind, _StorageKind) or not isinstance(key, str) or type(count) is not int or count < 0:
            raise ModelError("a storage of the pickle is damaged")
        if key not in self.storages:
            self.storages[key] = self._entry(f"data/{key}")
        found = self.storages[key]
        if count * kind.element.stored.itemsize > len(found):
            raise ModelError(f"storage {key!r} has {len(found)} bytes, too few for {count} elements of {kind.name}")
        return _Storage(found[: count * kind.element.stored.itemsize], kind.element)


class _StorageKind:
    def __init__(self, name: str):
        self.name, self.element = name, TYPES_OF_TORCH[name]

    def __call__(self, *_: Any) -> Any:
        raise ModelError("a storage is made inside the pickle")


class _Storage:
    def __init__(self, data: bytes, element: Element):
        self.data, self.element = data, element

    def view(self, offset: Any, sizes: Any, strides: Any) -> np.ndarray:
        """The tensor, copied: its strides are counted in elements."""
        if not (_are_sizes((offset,)) and _are_sizes(sizes) and _are_sizes(strides) and len(sizes) == len(strides)):
            raise ModelError("offset, sizes or strides of a tensor are damaged")
        if len(sizes) > MOST_AXES:
            raise ModelError(f"a tensor has {len(sizes)} axes")
        flat = np.frombuffer(self.data, self.element.stored)
        last = offset + sum((size - 1) * stride for size, stride in zip(sizes, strides, strict=True))
        if count_of(sizes) and last >= len(flat):
            raise ModelError(f"a tensor of sizes {list(sizes)} ends at element {last}, its storage has {len(flat)}")
        if not count_of(sizes):
            return widened(np.zeros(sizes, self.element.stored), self.element)
        if count_of(sizes) > 2 * len(flat) + 1024:  # expanded tensors repeat their elements
            raise ModelError(f"a tensor of sizes {list(sizes)} repeats the {len(flat)} elements of its storage")
        width = self.element.stored.itemsize
        seen = np.lib.stride_tricks.as_strided(flat[offset:], sizes, [stride * width for stride in strides])
        return widened(np.ascontiguousarray(seen).reshape(sizes), self.element)


def _are_sizes(given: Any) -> bool:
    return isinstance(given, tuple) and all(type(size) is int and 0 <= size < 2**48 for size in given)


def _rebuild_tensor(storage: Any, offset: Any, sizes: Any, strides: Any, *_: Any) -> np.ndarray:
    if not isinstance(storage, _Storage):
        raise ModelError("a tensor has no storage")
    return storage.view(offset, sizes, strides)


def _rebuild_with_type(
    storage: Any, offset: Any, sizes: Any, strides: Any, grad: Any, hooks: Any, dtype: Any, *_: Any
) -> np.ndarray:
    """torch._utils._rebuild_tensor_v3: the storage is untyped, the type is said beside it."""
    element = dtype.make if isinstance(dtype, Name) else None
    if not isinstance(storage, _Storage) or not isinstance(element, _Type):
        raise ModelError("a tensor has no storage or no type")
    return _Storage(storage.data, element.element).view(offset, sizes, strides)


def _rebuild_parameter(tensor: Any, *_: Any) -> np.ndarray:
    if not isinstance(tensor, np.ndarray):
        raise ModelError("a parameter has no tensor")
    return tensor


def _mapping(items: Any = (), *_: Any) -> dict[Any, Any]:
    if isinstance(items, Name):  # defaultdict(list)
        return {}
    pairs = items.items() if isinstance(items, dict) else items
    return {plain_key(key): value for key, value in pairs}


class _Type:
    """torch.float32 and the like, where a checkpoint holds them as data."""

    def __init__(self, name: str):
        self.name, self.element = name, TYPES_OF_TORCH.get(name, BFLOAT16)

    def __call__(self, *_: Any) -> Any:
        raise ModelError(f"torch.{self.name} is called")


def _items(items: Any = ()) -> list[Any]:
    """A list or a set: nobody asks for its elements."""
    return list(items)


_MAKERS: dict[str, Maker] = {
    "torch._utils._rebuild_tensor": _rebuild_tensor,
    "torch._utils._rebuild_tensor_v2": _rebuild_tensor,
    "torch._utils._rebuild_tensor_v3": _rebuild_with_type,
    "torch._utils._rebuild_parameter": _rebuild_parameter,
    "torch._utils._rebuild_parameter_with_state": _rebuild_parameter,
    "torch.nn.parameter.Parameter": _rebuild_parameter,
    "torch.Size": lambda items=(): tuple(items),
    "torch.device": lambda *_: "device",
    "collections.OrderedDict": _mapping,
    "collections.defaultdict": _mapping,
    "collections.Counter": _mapping,
    "builtins.dict": _mapping,
    "builtins.list": _items,
    "builtins.set": _items,
    "__builtin__.set": _items,
    "__builtin__.list": _items,
    "__builtin__.dict": _mapping,
    **{f"torch.{name}": _StorageKind(element) for name, element in _STORAGES.items()},
    "torch.storage.UntypedStorage": _StorageKind("uint8"),
    **{f"torch.{name}": _Type(name) for name in TYPES_OF_TORCH},
}
"""Everything that a state_dict may name."""


def _maker(name: str) -> Maker:
    found = _MAKERS.get(name)
    if found is None:
        raise UnsupportedOp(f"the file names {name!r}, which no state_dict needs; it is not loaded. {_SAVE_STATE_DICT}")
    return found


def state_dict_of(found: Any, key: str | None) -> dict[str, np.ndarray]:
    """The tensors of what a file holds, below `key` if it is given; nested dicts have dots between their keys."""
    if isinstance(found, np.ndarray):
        raise ModelError("the file holds one tensor, not a state_dict")
    if not isinstance(found, dict):
        raise ModelError(f"the file holds a {type(found).__name__}, not a state_dict")
    if key is not None:
        if not isinstance(found.get(key), dict):
            raise OptionError(f"there is no state_dict {key!r}; the file has {_spelled(found)}")
        found = found[key]
    tensors = {name: item for name, item in found.items() if isinstance(item, np.ndarray) and isinstance(name, str)}
    nested = [str(name) for name, item in found.items() if isinstance(item, dict) and _has_tensors(item)]
    if not tensors and nested:
        raise OptionError(f"the file is a checkpoint, not a state_dict: say which part, key={nested[0]!r}; {nested}")
    if not tensors:
        raise ModelError(f"the file has no tensors; it has {_spelled(found)}")
    return tensors


def _has_tensors(item: Any, depth: int = 0) -> bool:
    if isinstance(item, dict) and depth < 4:
        return any(_has_tensors(inner, depth + 1) for inner in item.values())
    return isinstance(item, np.ndarray)


def _spelled(found: dict[Any, Any]) -> str:
    return ", ".join(repr(name) for name in list(found)[:20]) or "nothing"

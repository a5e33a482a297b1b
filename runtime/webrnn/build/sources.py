"""Files of weights, whatever their form: `torch`, `keras` and `load`."""

from __future__ import annotations

import io
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from webrnn.errors import ModelError, OptionError

from .archives import Archive
from .elements import count_of, shaped
from .hdf5 import SIGNATURE
from .safetensors import looks_like_safetensors, read_safetensors
from .torch_files import looks_like_torch, read_torch

Source = str | os.PathLike[str] | bytes | Mapping[str, Any]


def bytes_of(source: Source) -> tuple[bytes, str]:
    """The bytes of a file, and what messages call it."""
    if isinstance(source, bytes | bytearray | memoryview):
        return bytes(source), "the file"
    if not isinstance(source, str | os.PathLike):
        raise OptionError(f"weights are a path, bytes or a dict of arrays, not a {type(source).__name__}")
    path = Path(source)
    try:
        return path.read_bytes(), repr(path.name)
    except (OSError, ValueError) as error:
        raise ModelError(f"cannot read the weights: {error}") from None


def form_of(data: bytes) -> str:
    """What kind of file it is, by its first bytes: "safetensors", "torch", "keras", "hdf5" or "npz"."""
    if data.startswith(SIGNATURE):
        return "hdf5"
    if looks_like_torch(data):
        return "torch"
    if data.startswith(b"PK"):
        return _form_of_zip(Archive(data).names)
    if looks_like_safetensors(data):
        return "safetensors"
    raise ModelError(
        "this is no file of weights: neither safetensors nor torch.save, HDF5, .keras or .npz; it begins with "
        f"{data[:8]!r}"
    )


def _form_of_zip(names: list[str]) -> str:
    if any(name == "data.pkl" or name.endswith("/data.pkl") for name in names):
        return "torch"
    if "model.weights.h5" in names:
        return "keras"
    if names and all(name.endswith(".npy") for name in names):
        return "npz"
    raise ModelError("the zip file is neither of torch.save nor of Keras nor an .npz")


def read_npz(data: bytes) -> dict[str, np.ndarray]:
    """The arrays of an .npz; none of them may need pickle."""
    archive = Archive(data)
    return {name.removesuffix(".npy"): _read_npy(name, archive.read(name)) for name in archive.names}


def _read_npy(name: str, data: bytes) -> np.ndarray:
    form, file = np.lib.format, io.BytesIO(data)
    try:
        version = form.read_magic(file)
        read_header = {(1, 0): form.read_array_header_1_0, (2, 0): form.read_array_header_2_0}[version]
        shape, is_fortran, dtype = read_header(file)
    except (ValueError, LookupError, TypeError, EOFError, SyntaxError, RecursionError, MemoryError) as error:
        raise ModelError(f"{name!r} of the .npz file is damaged: {error}") from None
    if dtype.kind not in "fiub":
        raise ModelError(f"{name!r} holds {dtype}, not numbers")
    needed, raw = count_of(shape) * dtype.itemsize, data[file.tell() :]
    if min(shape, default=0) < 0 or needed > len(raw):
        raise ModelError(f"{name!r} of shape {list(shape)} needs {needed} bytes, it has {len(raw)}")
    array = np.frombuffer(raw, dtype, count_of(shape)).astype(dtype.newbyteorder("="))
    return shaped(array, shape[::-1], name).T if is_fortran else shaped(array, shape, name)


def arrays_of(given: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """A dict of arrays, or of tensors of a framework that is installed."""
    found = {}
    for name, item in given.items():
        if not isinstance(name, str):
            raise OptionError(f"the name of a tensor is a text, not {name!r}")
        found[name] = _array(name, item)
    return found


def _array(name: str, item: Any) -> np.ndarray:
    if hasattr(item, "detach"):  # a tensor of PyTorch's
        item = item.detach().cpu()
        if str(item.dtype) == "torch.bfloat16":
            item = item.float()
    try:
        array = np.array(item)
    except (TypeError, ValueError, RuntimeError) as error:
        raise OptionError(f"{name!r} is no array: {error}") from None
    if array.dtype.kind not in "fiub":
        raise OptionError(f"{name!r} is an array of {array.dtype}, not of numbers")
    return array


def torch_arrays(source: Source, key: str | None = None) -> tuple[dict[str, np.ndarray], str]:
    """The tensors of a state_dict, and what messages call the file."""
    if isinstance(source, Mapping):
        if key is not None:
            raise OptionError("a dict has no key: hand in the part that has the tensors")
        return arrays_of(source), "the dict"
    data, origin = bytes_of(source)
    form = form_of(data)
    if form == "torch":
        return read_torch(data, key), origin
    if key is not None:
        raise OptionError(f"key= is for checkpoints of torch.save; {origin} is of the form {form}")
    if form == "safetensors":
        return read_safetensors(data), origin
    if form == "npz":
        return read_npz(data), origin
    raise OptionError(f"{origin} has weights of Keras: webrnn.build.keras reads them")


def is_of_keras(source: Source) -> bool:
    """Whether the weights are in a form that only Keras writes."""
    form = "dict" if isinstance(source, Mapping) else form_of(bytes_of(source)[0])
    if form in ("dict", "npz"):
        raise OptionError(f"arrays of a {form} may be of any framework: use webrnn.build.torch or webrnn.build.keras")
    return form in ("hdf5", "keras")

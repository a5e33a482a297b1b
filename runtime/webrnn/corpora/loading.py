"""Items as arrays."""

from __future__ import annotations

import io
import os
import stat
from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Any, BinaryIO

import numpy as np

from webrnn.audio import mono, resample
from webrnn.audio.wav import WavReader
from webrnn.errors import OptionError
from webrnn.ir import Value

from .errors import ItemError
from .items import SUFFIXES, Item, Row, Unreadable
from .options import Options

Feeds = dict[str, np.ndarray]


class Loader:
    """Makes the feeds of items: arrays by the names of inputs, of their types and ranks."""

    def __init__(self, options: Options, fed: Sequence[Value], rate: int | str | None, folder: str | None = None):
        """`fed` are the inputs that items have to give, `rate` is that of wav files, `folder` where paths begin."""
        self._options, self._rate, self._folder = options, rate, folder
        self._fed = {value.name: value for value in fed}
        for what, names in (("input", [options.input]), ("columns", options.columns or ())):
            for name in names:
                if name is not None and name not in self._fed:
                    raise OptionError(f"{what}=: the model takes {list(self._fed)} of an item, not {name!r}")

    def feeds(self, item: Item) -> tuple[Feeds, list[str]]:
        """The feeds, and for which inputs the item has an array of one axis.

        Raises an ItemError, or what readers of files raise, if the item is bad; an OptionError if options are.
        """
        arrays = self._arrays(item)
        feeds = {name: self._fitting(self._fed[name], array) for name, array in arrays.items()}
        missing = [name for name, value in self._fed.items() if name not in feeds and "optional" not in value.container]
        if missing:
            raise ItemError(f"it has nothing for the input {missing[0]!r}; the model takes {list(self._fed)}")
        return feeds, [name for name, array in arrays.items() if np.ndim(array) == 1]

    def _arrays(self, item: Item) -> dict[str, Any]:
        source = item.source
        if isinstance(source, Unreadable):
            raise ItemError(source.reason)
        if isinstance(source, Row):
            from .parquet import row_arrays

            path = self._place(source.path)
            row = row_arrays(path, source.group, source.row, self._options.columns, list(self._fed))
            return {name: self._decoded(part) if isinstance(part, bytes) else part for name, part in row.items()}
        if isinstance(source, Mapping):
            return self._named({name: np.asarray(array) for name, array in source.items()})
        if isinstance(source, np.ndarray):
            return {self._only(): source}
        return self._of_file(item.name if source is None else str(source))

    def _of_file(self, name: str) -> dict[str, Any]:
        path = self._place(name)
        if not stat.S_ISREG(os.stat(path).st_mode):  # a pipe would wait for ever
            raise ItemError("it is not a file")
        match PurePath(name).suffix.lower():
            case ".npy":
                return {self._only(): self._of_numpy(path)}
            case ".npz":
                with np.load(path, allow_pickle=False) as archive:
                    wanted = self._options.columns
                    names = archive.files if wanted is None else [one for one in wanted.values() if one in archive]
                    return self._named({one: archive[one] for one in names})
            case ".wav":
                return {self._only(): self._of_wav(path)}
        raise ItemError(f"its name does not end with {', '.join(SUFFIXES)}")

    def _named(self, arrays: Mapping[str, Any]) -> dict[str, Any]:
        columns = self._options.columns
        if columns is not None:
            absent = [column for column in columns.values() if column not in arrays]
            if absent:
                raise ItemError(f"it has no array {absent[0]!r}")
            return {name: arrays[column] for name, column in columns.items()}
        unknown = [name for name in arrays if name not in self._fed]
        if unknown:
            hint = "say columns={input: array} to take only some arrays"
            raise ItemError(f"the model has no input {unknown[0]!r}; it takes {list(self._fed)}; {hint}")
        return dict(arrays)

    def _only(self) -> str:
        """The input that takes an array without a name."""
        if self._options.input is not None:
            return self._options.input
        needed = [name for name, value in self._fed.items() if "optional" not in value.container]
        if len(needed) != 1:
            raise OptionError(
                f"the model takes {list(self._fed)}: say input= (--input) for arrays without a name, and fix the "
                "others (--fixed), or carry them as states (--stream)"
            )
        return needed[0]

    def _decoded(self, data: bytes) -> Any:
        """Of a file that stands in a column."""
        if data[:4] == b"RIFF":
            return self._of_wav(io.BytesIO(data))
        if data[:6] == b"\x93NUMPY":
            return self._of_numpy(io.BytesIO(data))
        raise ItemError("its bytes are neither a wav file nor a .npy file")

    @staticmethod
    def _of_numpy(file: str | BinaryIO) -> Any:
        return np.load(file, allow_pickle=False)

    def _of_wav(self, file: str | BinaryIO) -> np.ndarray:
        rate = self._rate
        if rate is None:
            raise OptionError("say rate= (--rate): the sample rate that the model expects of wav files, or 'any'")
        with WavReader(file) as wav:
            if rate not in ("any", wav.rate) and not self._options.resample:
                raise ItemError(
                    f"its sample rate is {wav.rate}, not {rate}; resample=True (--resample) would change it"
                )
            samples = wav.read()
            samples = mono(samples) if self._options.mono else samples
            return samples if rate in ("any", wav.rate) else resample(samples, wav.rate, float(rate))

    def _place(self, name: str) -> str:
        return name if self._folder is None else os.path.join(self._folder, name)

    def _fitting(self, value: Value, array: Any) -> np.ndarray:
        """With axes of length 1 in front, as many as the input has more; of the type of the input, if that is asked."""
        array = np.asarray(array)
        if value.shape is not None and array.ndim < len(value.shape):
            array = array.reshape((1,) * (len(value.shape) - array.ndim) + array.shape)
        if value.dtype is not None and array.dtype != value.dtype.array_type and self._options.cast:
            if array.dtype.kind not in "biuf" or value.dtype.array_type.kind not in "biuf":
                raise ItemError(f"{array.dtype} cannot be converted to {value.dtype.array_type}")
            array = array.astype(value.dtype.array_type)
        if self._options.finite and array.dtype.kind == "f" and not np.isfinite(array).all():
            raise ItemError(f"what it has for {value.name!r} is not finite")
        return array

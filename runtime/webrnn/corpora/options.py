"""What decides about the results of a map. How it is spread over processes does not."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from webrnn.errors import OptionError

REMAINDERS = ("pad", "keep", "drop")
OF_STREAMS = ("carry", "time", "running", "lookback", "frame", "hop", "remainder", "join")


@dataclass(frozen=True, kw_only=True)
class Options:
    """How each item is run.

    The session: `backend`, `disable`, `fixed`, `weights` and `keep`, as InferenceSession takes them.

    Streams, with `stream`: `carry`, `time`, `running` and `lookback` as `session.stream` takes them (`time` also says
    along which axis frames are cut if the states have names). `frame` is how much a step takes, `hop` how far it goes
    on; a frame that is longer begins with what was before, at first zeros. What is left at the end is padded with zeros
    ("pad"), or a shorter step ("keep"), or dropped ("drop"). `join` is the axis along which results are put together,
    or "overlap"; without it they are stacked.

    Items: `input` takes an array that has no name, `columns` says which array or column is which input, `rate` is the
    sample rate of wav files, or "any"; `resample` changes others, `mono` takes the mean of channels, `cast` converts
    numbers to the type of the input. Items whose arrays or results are not finite are bad if `finite`. `outputs` are
    those that are kept.
    """

    backend: str = "auto"
    disable: tuple[str, ...] = ()
    fixed: Mapping[str, Any] | None = None
    weights: str | Mapping[str, str] = "f32"
    keep: tuple[str, ...] = ()
    stream: bool = False
    carry: Mapping[str, str] | str | None = None
    time: Mapping[str, int] | None = None
    running: bool = False
    lookback: int | None = None
    frame: int | None = None
    hop: int | None = None
    remainder: str | None = None
    join: int | str | None = None
    input: str | None = None
    columns: Mapping[str, str] | None = None
    rate: int | str | None = None
    resample: bool = False
    mono: bool = False
    cast: bool = False
    finite: bool = False
    outputs: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        for name in ("disable", "keep", "outputs"):
            value = getattr(self, name)
            if isinstance(value, str):
                object.__setattr__(self, name, (value,))
            elif isinstance(value, Iterable):
                object.__setattr__(self, name, tuple(value))
        unused = [name for name in OF_STREAMS if getattr(self, name) not in (None, False) and not self.stream]
        if unused:
            raise OptionError(f"{unused[0]}= is for streams: stream=True (--stream) asks for them")
        for name in ("frame", "hop"):
            value = getattr(self, name)
            if value is not None and (not isinstance(value, int) or value < 1):
                raise OptionError(f"{name}={value!r}: it is a number of at least 1")
        if self.hop is not None and self.frame is not None and self.hop > self.frame:
            raise OptionError(f"hop={self.hop} is longer than frame={self.frame}: what is between would be lost")
        if self.remainder not in (None, *REMAINDERS):
            raise OptionError(f"remainder={self.remainder!r}; there are {', '.join(REMAINDERS)}")
        if not (self.join is None or isinstance(self.join, int) or self.join == "overlap"):
            raise OptionError(f"join={self.join!r}; it is an axis or 'overlap'")
        if not (self.rate in (None, "any") or (isinstance(self.rate, int) and self.rate > 0)):
            raise OptionError(f"rate={self.rate!r}; it is a sample rate, such as 16000, or 'any'")
        if self.resample and self.rate == "any":
            raise OptionError("resample= needs the rate that the model expects, not 'any'")

    def described(self) -> dict[str, Any]:
        """All that is not as by default, as JSON has it; arrays by their sha256.

        >>> Options(stream=True, frame=512, fixed={"sr": 16000}).described()
        {'fixed': {'sr': 16000}, 'stream': True, 'frame': 512}
        """
        found = {}
        for field in fields(self):
            value = getattr(self, field.name)
            if value != field.default:
                found[field.name] = _plain(value)
        return found


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(name): _plain(item) for name, item in sorted(value.items())}
    if isinstance(value, np.ndarray | np.generic):
        array = np.ascontiguousarray(value)
        return f"{array.dtype}{list(array.shape)} {hashlib.sha256(array.tobytes()).hexdigest()}"
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    try:
        json.dumps(value)
    except TypeError:
        raise OptionError(f"{value!r} is no option that can be written down") from None
    return value

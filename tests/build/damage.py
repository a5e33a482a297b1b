"""Damaged files of weights: bytes flipped, cut, repeated, numbers made huge.

    python -m tests.build.damage --files 100000

Whatever is in a file, reading it gives arrays or raises one of webrnn's errors, soon and in little memory.
"""

from __future__ import annotations

import argparse
import io
import random
import struct
import sys
import time
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator

import webrnn
from webrnn.build.keras_files import read_keras
from webrnn.build.sources import read_npz
from webrnn.build.torch_files import read_torch

from . import replay
from .cases import RECORDED

Reader = Callable[[bytes], object]
HUGE = (0, 1, 0x7F, 0xFF, 0x7FFF, 0xFFFF, 2**31 - 1, 2**32 - 1, 2**62, 2**63 - 1, 2**64 - 1)


def files() -> dict[str, tuple[bytes, Reader]]:
    """Small files of all forms, and what reads them."""
    from webrnn.build.safetensors import read_safetensors

    return {
        "safetensors": ((RECORDED / "types.safetensors").read_bytes(), read_safetensors),
        "torch": ((RECORDED / "views.pt").read_bytes(), read_torch),
        "torch_4": ((RECORDED / "views_4.pt").read_bytes(), read_torch),
        "checkpoint": ((RECORDED / "checkpoint.pt").read_bytes(), lambda data: read_torch(data, "state_dict")),
        "pickle": (pickle_of("views.pt"), lambda data: read_torch(with_pickle("views.pt", data))),
        "pickle_4": (pickle_of("views_4.pt"), lambda data: read_torch(with_pickle("views_4.pt", data))),
        "keras": (replay.keras_file("model.keras"), read_keras),
        "hdf5": (replay.keras_file("model.h5"), read_keras),
        "npz": ((RECORDED / "keras.npz").read_bytes(), read_npz),
    }


def pickle_of(name: str) -> bytes:
    with zipfile.ZipFile(RECORDED / name) as archive:
        return next(archive.read(entry) for entry in archive.namelist() if entry.endswith("data.pkl"))


def with_pickle(name: str, data: bytes) -> bytes:
    """A file of torch.save with another pickle: the zip's own checksums are right."""
    made = io.BytesIO()
    with zipfile.ZipFile(RECORDED / name) as archive, zipfile.ZipFile(made, "w") as other:
        for entry in archive.namelist():
            other.writestr(entry, data if entry.endswith("data.pkl") else archive.read(entry))
    return made.getvalue()


def damaged(data: bytes, draw: random.Random) -> bytes:
    """The file with one to four mistakes in it."""
    found = bytearray(data)
    for _ in range(draw.randint(1, 4)):
        at = draw.randrange(len(found)) if found else 0
        kind = draw.randrange(7)
        if kind == 0 and found:
            found[at] ^= 1 << draw.randrange(8)
        elif kind == 1 and found:
            found[at] = draw.randrange(256)
        elif kind == 2:
            del found[at : at + draw.choice((1, 4, 8, 100))]
        elif kind == 3:
            found = found[: draw.randrange(len(found) + 1)] if draw.random() < 0.3 else found
        elif kind == 4:
            found[at:at] = found[max(at - draw.choice((4, 40)), 0) : at]
        else:
            width, form = draw.choice(((1, "B"), (2, "H"), (4, "I"), (8, "Q")))
            at = min(at, max(len(found) - width, 0)) // width * width
            found[at : at + width] = struct.pack(f"<{form}", draw.choice(HUGE) % 256**width)
    return bytes(found)


def inside(data: bytes, draw: random.Random) -> bytes:
    """Damage where the form of a file is: at its beginning, or around a signature."""
    marks = [place for mark in MARKS for place in _places(data, mark)] or [0]
    start = max(draw.choice(marks) - 8, 0)
    end = min(start + draw.choice((16, 64, 512)), len(data))
    return data[:start] + damaged(data[start:end], draw) + data[end:]


MARKS = (b"TREE", b"SNOD", b"HEAP", b"GCOL", b"\x89HDF", b"ctorch", b"PK", b"{", b"shape", b"storage", b"NUMPY")


def _places(data: bytes, mark: bytes) -> Iterator[int]:
    at = data.find(mark)
    while at >= 0:
        yield at
        at = data.find(mark, at + 1)


def try_one(name: str, seed: int, sources: dict[str, tuple[bytes, Reader]]) -> str:
    data, read = sources[name]
    draw = random.Random(f"{name} {seed}")
    made = (damaged if seed % 2 else inside)(data, draw)
    try:
        read(made)
    except webrnn.Error as error:
        return type(error).__name__
    return "read"


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--files", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    sources, verdicts, longest = files(), Counter[str](), 0.0
    for index in range(arguments.files):
        name = list(sources)[index % len(sources)]
        start = time.process_time()
        try:
            verdicts[f"{name}: {try_one(name, arguments.seed + index, sources)}"] += 1
        except Exception as error:
            print(f"{name}, seed {arguments.seed + index}: {type(error).__name__}: {error}", file=sys.stderr)
            raise
        longest = max(longest, time.process_time() - start)
    print("\n".join(f"{count:8} {verdict}" for verdict, count in sorted(verdicts.items())))
    print(f"the longest took {longest:.2f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())

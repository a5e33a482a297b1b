"""Files that are no ONNX models, known by how they begin: each is said in one line, with what to do."""

from __future__ import annotations

import os
from pathlib import Path

from webrnn.errors import ModelError

_LOOKED_AT = 1024

_STARTS = (
    (b"version https://git-lfs", "it is a pointer of Git LFS, not the model: `git lfs pull` fetches that"),
    (b"WRNN", "it is a plan (.rnn), where a model is needed: give the model that the plan was made from"),
    (b"PK\x03\x04", "it is a zip archive, such as a PyTorch or Keras file, not an ONNX model: export it as ONNX"),
    (b"\x89HDF", "it is an HDF5 file, such as weights of Keras, not an ONNX model"),
    (b"\x1f\x8b", "it is compressed by gzip: unpack it first"),
    (b"\x80\x02", "it is a Python pickle, not an ONNX model"),
    (b"\x93NUMPY", "it is an array of numpy, not a model"),
    (b"RIFF", "it is a RIFF file, such as a wav, not a model"),
    (b"%PDF", "it is a PDF, not a model"),
    (b"\x89PNG", "it is a picture, not a model"),
)  # fmt: skip
_HTML = (b"<!doctype html", b"<html", b"<head", b"<?xml")
_SPACES = b"\xef\xbb\xbf \t\r\n"


def require_model(data: bytes) -> None:
    """Raise if these bytes are something else than a model."""
    if not data:
        raise ModelError("the file is empty")
    head = data[:_LOOKED_AT]
    for start, message in _STARTS:
        if head.startswith(start):
            raise ModelError(message)
    if head[4:8] == b"TFL3":
        raise ModelError("it is a model of TensorFlow Lite, not of ONNX")
    if head.lstrip(_SPACES).lower().startswith(_HTML):
        raise ModelError("it is an HTML page, not a model: what was to be downloaded may be behind a link on it")
    if is_text(head):
        raise ModelError(f"it is a text file, not an ONNX model; it begins with {_first_words(head)!r}")


def is_text(head: bytes) -> bool:
    """Whether the start of a file is text; a model begins with a control character, and has more of them."""
    try:
        text = head.decode("utf-8", "strict" if len(head) < _LOOKED_AT else "ignore")
    except UnicodeDecodeError:
        return False
    return all(letter.isprintable() or letter in "\t\r\n\ufeff" for letter in text)


def _first_words(head: bytes) -> str:
    lines = head.decode("utf-8", "ignore").strip("\ufeff \t\r\n").splitlines()
    return lines[0][:40] if lines else ""


def not_read(path: str | os.PathLike[str], error: OSError | ValueError) -> ModelError:
    """Why a file could not be read."""
    place = Path(path)
    if isinstance(error, IsADirectoryError) or (isinstance(error, PermissionError) and place.is_dir()):
        inside = sorted(file.name for file in place.glob("*.onnx"))[:3]
        such = f", such as {', '.join(inside)}" if inside else ""
        return ModelError(f"cannot read {str(path)!r}: it is a folder; give a file{such}")
    if isinstance(error, FileNotFoundError):
        return ModelError(f"cannot read {str(path)!r}: there is no file of this name")
    why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return ModelError(f"cannot read {str(path)!r}: {why}")

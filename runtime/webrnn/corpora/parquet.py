"""Rows of parquet files as arrays, by the library pyarrow (`pip install webrnn[parquet]`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from webrnn.errors import BackendError

from .errors import ItemError


def _pyarrow() -> Any:
    try:
        import pyarrow.parquet
    except ImportError as error:
        raise BackendError("parquet files are read by pyarrow: pip install 'webrnn[parquet]'") from error
    return pyarrow


def row_counts(path: str) -> list[int]:
    """How many rows each group of rows has."""
    with _pyarrow().parquet.ParquetFile(path) as file:
        metadata = file.metadata
        return [metadata.row_group(group).num_rows for group in range(metadata.num_row_groups)]


@lru_cache(maxsize=2)
def _column_names(path: str) -> list[str]:
    with _pyarrow().parquet.ParquetFile(path) as file:
        return list(file.schema_arrow.names)


@lru_cache(maxsize=1)
def _group(path: str, group: int, columns: tuple[str, ...]) -> Any:
    with _pyarrow().parquet.ParquetFile(path) as file:
        return file.read_row_group(group, columns=list(columns), use_threads=False)


def row_arrays(
    path: str, group: int, row: int, columns: Mapping[str, str] | None, inputs: Sequence[str]
) -> dict[str, Any]:
    """What a row has for the inputs of a model: {input: array, or the bytes of a file}.

    Without `columns`, {input: column}, they are the columns with the names of inputs; or the only column, if there is
    one and one input.
    """
    if columns is None:
        there = _column_names(path)
        columns = {name: name for name in inputs if name in there}
        if not columns and len(there) == len(inputs) == 1:
            columns = {inputs[0]: there[0]}
        if not columns:
            raise ItemError(f"no column has the name of an input: there are {there}; say columns={{input: column}}")
    absent = set(columns.values()) - set(_column_names(path))
    if absent:
        raise ItemError(f"the file has no column {min(absent)!r}; it has {_column_names(path)}")
    table = _group(path, group, tuple(sorted(set(columns.values()))))
    return {name: _array(table.column(column)[row], column) for name, column in columns.items()}


def _array(scalar: Any, column: str) -> Any:
    types = _pyarrow().types
    if not scalar.is_valid:
        raise ItemError(f"column {column!r} has nothing in this row")
    if types.is_binary(scalar.type) or types.is_large_binary(scalar.type):
        return scalar.as_py()
    if types.is_struct(scalar.type) and "bytes" in {field.name for field in scalar.type}:
        return _array(scalar["bytes"], column)
    values = getattr(scalar, "values", None)
    if values is None:
        array = np.asarray(scalar.as_py())
    elif types.is_nested(values.type):
        parts = [_array(part, column) for part in values]
        if len({np.shape(part) for part in parts}) > 1:
            raise ItemError(f"the lists in column {column!r} are of different lengths")
        array = np.stack(parts) if parts else np.empty((0, 0))
    else:
        if values.null_count:
            raise ItemError(f"column {column!r} has {values.null_count} numbers that are missing")
        array = values.to_numpy(zero_copy_only=False)
    if array.dtype.kind not in "biuf":
        raise ItemError(f"column {column!r} is of type {scalar.type}; lists of numbers or bytes of files are taken")
    return array

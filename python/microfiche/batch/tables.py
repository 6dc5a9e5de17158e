"""Rows as PyArrow tables (the extra ``arrow``)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from microfiche.errors import MicroficheError

from . import rows

if TYPE_CHECKING:
    import pyarrow

_BATCH = 256
"""Rows that are held as objects at a time."""


def arrow() -> Any:
    """PyArrow, or the error that says how it is had."""
    try:
        import pyarrow
    except ImportError as error:
        raise MicroficheError("PyArrow is not installed", cure="pip install 'microfiche[arrow]'") from error
    return pyarrow


def schema(png: bool = True, more: Iterable[str] = ()) -> pyarrow.Schema:
    """The columns of rows of pages; with ``more`` texts by name behind them."""
    pa = arrow()
    columns = {
        "session": pa.string(),
        "model": pa.string(),
        "page": pa.int64(),
        "turns": pa.list_(pa.int64()),
        "width": pa.int64(),
        "height": pa.int64(),
        "tokens": pa.int64(),
        "bytes": pa.int64(),
        "digest": pa.string(),
    }
    if png:
        columns |= {"png": pa.large_binary(), "error": pa.string()}
    return pa.schema([*columns.items(), *((name, pa.string()) for name in more)])


def rerender(sessions: pyarrow.Table | pyarrow.RecordBatch, **options: Any) -> pyarrow.Table:
    """:func:`microfiche.batch.rows.rerender` of a table: the columns of ``SessionRow`` in, those of ``PageRow`` out.

    Pure, so an engine can map it over the batches of a data set. :class:`~microfiche.errors.MicroficheError` where
    PyArrow is not installed.
    """
    pa = arrow()
    found = schema()
    pages = rows.rerender(_rows(sessions), **options)
    parts = [pa.RecordBatch.from_pylist(part, schema=found) for part in _chunked(pages)]
    return pa.Table.from_batches(parts, schema=found)


def _rows(table: Any) -> Iterator[Any]:
    for at in range(0, table.num_rows, _BATCH):
        yield from table.slice(at, _BATCH).to_pylist()


def _chunked(pages: Iterable[Mapping[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    waiting = map(_valid, pages)
    while part := list(islice(waiting, _BATCH)):
        yield part


def _valid(row: Mapping[str, Any]) -> dict[str, Any]:
    """The row with lone surrogates (of file names that are no UTF-8) as escapes, for a column of text is UTF-8."""
    return {
        name: value.encode("utf-8", "backslashreplace").decode() if isinstance(value, str) else value
        for name, value in row.items()
    }


def write(path: Path, pages: Iterable[Mapping[str, Any]]) -> None:
    """A manifest as a Parquet file, a bounded number of rows at a time."""
    pa = arrow()
    from pyarrow import parquet

    found = schema(png=False, more=("file", "source"))
    with parquet.ParquetWriter(path, found) as file:
        for part in _chunked(pages):
            file.write_batch(pa.RecordBatch.from_pylist(part, schema=found))

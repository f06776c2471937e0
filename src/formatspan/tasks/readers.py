"""Rows of a JSONL, CSV or Parquet file, one at a time, each with its line.

Values keep the file's own types and are typed afterwards, by the task; nothing is guessed
from a column's first rows.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from formatspan.counting import counted
from formatspan.errors import DataError
from formatspan.tasks.task import Row

MAX_VALUE = 100_000_000
"""Characters of one value in a CSV file."""


class Numbered(NamedTuple):
    """A row and where it stands."""

    line: int
    """1-based line at which the row starts; for Parquet its 1-based row."""
    row: Row


def read(path: Path) -> Iterator[Numbered]:
    """Rows of ``path`` in order, by the format its suffix names.

    Raises:
        DataError: The file is absent, unreadable, of another format, or one of its lines is
            broken.
    """
    reader = READERS.get(path.suffix.lower())
    if reader is None:
        known = ", ".join(sorted(READERS))
        raise DataError(f"expected a file ending in {known}", source=str(path))
    try:
        if not path.is_file():
            what = "is a folder; expected a file" if path.is_dir() else "no such file"
            raise DataError(what, source=str(path))
        yield from reader(path)
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror}", source=str(path)) from error


def read_jsonl(path: Path) -> Iterator[Numbered]:
    r"""One JSON object a line; blank lines are skipped.

    Lines end at ``\n`` alone: U+2028 and its like may stand inside a JSON string.
    """
    for line, text in _lines(path):
        if not text.strip():
            continue
        try:
            row = json.loads(
                text, object_pairs_hook=_unique, parse_constant=_not_json, parse_int=_integer
            )
        except RecursionError:
            raise DataError("nested too deeply", source=str(path), line=line) from None
        except ValueError as error:
            raise DataError(f"not valid JSON: {error}", source=str(path), line=line) from error
        if not isinstance(row, dict):
            what = type(row).__name__
            raise DataError(
                f"expected one JSON object a line, got {what}", source=str(path), line=line
            )
        yield Numbered(line, row)


def read_csv(path: Path) -> Iterator[Numbered]:
    """A header, then one row a record; a quoted value may hold line breaks."""
    csv.field_size_limit(MAX_VALUE)  # the module's own limit is less than a long passage
    reader = csv.reader((text for _, text in _lines(path)), strict=True)
    header: list[str] | None = None
    start = 1
    for record in _records(reader, path):
        if record and header is None:
            header = _header(record, path)
        elif record and header is not None:
            if len(record) != len(header):
                raise DataError(
                    f"expected {counted(len(header), 'value')}, got {len(record)}",
                    source=str(path),
                    line=start,
                )
            yield Numbered(start, dict(zip(header, record, strict=True)))
        start = reader.line_num + 1


def read_parquet(path: Path) -> Iterator[Numbered]:
    """Rows of a Parquet file; structs become dicts, lists become lists."""
    import polars as pl  # slow to start, and only Parquet needs it

    try:
        # An open file, since a path may hold characters that Polars takes for a pattern.
        with path.open("rb") as file:
            frame = pl.read_parquet(file)
    except pl.exceptions.PolarsError as error:
        reason = str(error).partition("\n")[0]
        raise DataError(f"not readable as Parquet: {reason}", source=str(path)) from error
    for line, row in enumerate(frame.iter_rows(named=True), start=1):
        yield Numbered(line, row)


READERS: dict[str, Callable[[Path], Iterator[Numbered]]] = {
    ".jsonl": read_jsonl,
    ".ndjson": read_jsonl,
    ".csv": read_csv,
    ".parquet": read_parquet,
}
"""Reader by file suffix."""


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    """Lines with their numbers, line ends kept, a byte-order mark at the start dropped."""
    with path.open("rb") as file:
        for line, raw in enumerate(file, start=1):
            try:
                yield line, raw.decode("utf-8-sig" if line == 1 else "utf-8")
            except UnicodeDecodeError as error:
                raise DataError(
                    f"not UTF-8 (byte {error.start + 1} of the line): save the file as UTF-8",
                    source=str(path),
                    line=line,
                ) from error


def _records(reader: Any, path: Path) -> Iterator[list[str]]:  # noqa: ANN401 - csv has no type
    try:
        yield from reader
    except csv.Error as error:
        raise DataError(
            f"not valid CSV: {error}", source=str(path), line=reader.line_num
        ) from error


def _header(record: list[str], path: Path) -> list[str]:
    other = next((mark for mark in ";\t|" if len(record) == 1 and mark in record[0]), None)
    if other is not None:
        raise DataError(
            f"expected commas between the columns, found {other!r}", source=str(path), line=1
        )
    seen: set[str] = set()
    for name in record:
        if not name.strip() or name in seen:
            fault = f"column {name!r} occurs twice" if name in seen else "a column has no name"
            raise DataError(f"{fault} in the header", source=str(path), line=1)
        seen.add(name)
    return record


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    row = dict(pairs)
    if len(row) < len(pairs):
        twice = next(key for i, (key, _) in enumerate(pairs) if key in dict(pairs[:i]))
        raise ValueError(f"key {twice!r} occurs twice")
    return row


def _integer(digits: str) -> int:
    try:
        return int(digits)
    except ValueError:
        raise ValueError(f"a number of {len(digits):,} digits") from None


def _not_json(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")

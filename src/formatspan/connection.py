"""SQLite connections whose errors are this package's: what happened to which file."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

from formatspan.errors import RunError, StorageError

BUSY_TIMEOUT_S = 30.0


def connect(path: Path, *, read_only: bool = False) -> sqlite3.Connection:
    """A connection to the database at ``path``, on which every error names the file.

    Raises:
        RunError: The file is not a database.
        StorageError: It cannot be opened.
    """

    class Named(_Connection):
        file = path

    with reported(path):
        target = f"{path.resolve().as_uri()}?mode=ro" if read_only else str(path)
        # In a notebook the loop runs in a thread of its own; never two at a time.
        return sqlite3.connect(
            target,
            uri=read_only,
            timeout=BUSY_TIMEOUT_S,
            isolation_level=None,
            check_same_thread=False,
            factory=Named,
        )


@contextmanager
def reported(path: Path) -> Iterator[None]:
    """SQLite's errors as ours: what happened to which file, and what to do.

    Raises:
        RunError: The file is not a database, or is damaged.
        StorageError: The disk is full, or the file is locked or unwritable.
    """
    try:
        yield
    except sqlite3.DatabaseError as error:
        raise _named(path, error) from None


def _named(path: Path, error: sqlite3.DatabaseError) -> RunError | StorageError:
    text = str(error)
    if "not a database" in text:
        return RunError(f"{path}: not a store of formatspan ({text})")
    if "decode to UTF-8" in text:
        text = "a text is no UTF-8"  # SQLite's own words repeat all of it
    damaged = any(sign in text for sign in ("no such", "no column", "malformed", "no UTF-8"))
    if isinstance(error, sqlite3.OperationalError) and not damaged:
        return StorageError(f"{path}: {text}: {_hint(text)}; what was stored is kept")
    return RunError(f"{path}: the store is damaged ({text}): restore a copy, or use --fresh")


def _hint(text: str) -> str:
    if "full" in text:
        return "free some space, then run the same command again"
    if "locked" in text:
        return "another program holds it: wait for it, or close it"
    return "check the folder and its permissions"


class _Cursor(sqlite3.Cursor):
    """A cursor whose errors name the file; rows are read lazily, so reading may fail as well."""

    connection: _Connection

    def execute(self, *args: Any) -> Self:  # noqa: ANN401 - passed on as they are
        with reported(self.connection.file):
            return super().execute(*args)

    def executemany(self, *args: Any) -> Self:  # noqa: ANN401 - passed on as they are
        with reported(self.connection.file):
            return super().executemany(*args)

    def executescript(self, *args: Any) -> sqlite3.Cursor:  # noqa: ANN401 - passed on as they are
        with reported(self.connection.file):
            return super().executescript(*args)

    def fetchone(self) -> Any:  # noqa: ANN401 - a row is of any types
        with reported(self.connection.file):
            return super().fetchone()

    def fetchmany(self, size: int | None = 1) -> list[Any]:
        with reported(self.connection.file):
            return super().fetchmany(size)

    def fetchall(self) -> list[Any]:
        with reported(self.connection.file):
            return super().fetchall()

    def __next__(self) -> Any:  # noqa: ANN401 - a row is of any types
        try:  # no context: this runs for every row
            return super().__next__()
        except sqlite3.DatabaseError as error:
            raise _named(self.connection.file, error) from None


class _Connection(sqlite3.Connection):
    file: Path
    """What errors name."""

    def cursor(self, factory: Any = _Cursor) -> Any:  # noqa: ANN401 - as sqlite3 has it
        """A cursor whose errors name the file."""
        return super().cursor(factory)

    # sqlite3's own short cuts make plain cursors.

    def execute(self, *args: Any) -> sqlite3.Cursor:  # noqa: ANN401 - passed on as they are
        """As of a cursor."""
        cursor: sqlite3.Cursor = self.cursor().execute(*args)
        return cursor

    def executemany(self, *args: Any) -> sqlite3.Cursor:  # noqa: ANN401 - passed on as they are
        """As of a cursor."""
        cursor: sqlite3.Cursor = self.cursor().executemany(*args)
        return cursor

    def executescript(self, *args: Any) -> sqlite3.Cursor:  # noqa: ANN401 - passed on
        """As of a cursor."""
        cursor: sqlite3.Cursor = self.cursor().executescript(*args)
        return cursor

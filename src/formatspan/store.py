"""The store of a run: one SQLite file in WAL mode.

It holds raw replies and what they answer, never scores. A reply is committed before it counts
as done, and a reader may look while a run writes.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, Self

import msgspec
from msgspec import Struct

from formatspan.connection import connect
from formatspan.contracts import Answers
from formatspan.errors import FormatspanError, RunError
from formatspan.locking import Held, locked
from formatspan.paths import writable_file
from formatspan.records import Example, Failure, Generation, Point, Prompt
from formatspan.schema import (
    APPLICATION_ID,
    MIGRATIONS,
    SHARED,
    migrate,
    refuse_foreign,
)
from formatspan.stored import (
    FIELDS,
    Row,
    generation_of_row,
    json_text,
    messages_text,
    row_of,
    sound,
)

_BEHIND = ", ".join(FIELDS[1:])
_COLUMNS = f"request, {_BEHIND}"
NUMBER = "(SELECT number FROM requests WHERE id = ?)"
"""The number of a request in SQL; its id is a hash of what it asks."""
_ROWS_AT_ONCE = 40
"""Replies inserted by one statement: their values stay below what any SQLite binds (999)."""


class Pending(Struct, frozen=True, array_like=True, gc=False):
    """A point that has no reply yet, with its prompt."""

    id: int
    """Grows in the order of asking."""
    number: int
    """Of its request in this store."""
    point: Point
    prompt: Prompt


class Counts(NamedTuple):
    """How far a model's part of a run has come, in points of the grid that are not copies."""

    points: int
    done: int


class Store:
    """A run's store. Open it with ``Store.create`` or ``Store.read``; use it as a context."""

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        self.connection, self.path = connection, path

    @classmethod
    def create(cls, path: Path) -> Self:
        """Open for writing; a new file gets the tables, an older one is brought up to date.

        Raises:
            RunError: The file is not a store.
            StorageError: The file cannot be written.
        """
        connection = connect(path)
        try:
            refuse_foreign(connection, path)  # whose journal is left as it is
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = FULL")
            # 16 MB: requests are planned under hashes, so that each goes to another page.
            connection.execute("PRAGMA cache_size = -16000")
            migrate(connection, path)
        except BaseException:
            connection.close()
            raise
        return cls(connection, path)

    @classmethod
    def read(cls, path: Path | str) -> Self:
        """Open for reading only, also while a run writes; an older one is brought up to date.

        Raises:
            RunError: The file is missing or not a store, or is an older one that another process
                writes to, or that cannot be written.
        """
        path = Path(path)
        _check_is_there(path)
        connection = connect(path, read_only=True)
        try:
            older = _checked_version(connection, path) < len(MIGRATIONS)
        except BaseException:
            connection.close()
            raise
        if older:
            connection.close()
            _bring_up_to_date(path)
            connection = connect(path, read_only=True)
        return cls(connection, path)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close; a store that was written to is folded back into one file."""
        self.connection.close()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All or nothing; committed when the block ends.

        Raises:
            StorageError: The disk is full or unwritable. What was committed before stays.
        """
        self.connection.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self.connection.rollback()
            raise
        self.connection.execute("COMMIT")

    # --- what the run is -------------------------------------------------------------------

    def meta(self, key: str) -> str | None:
        """A fact about the run as a whole, or None."""
        row = self.connection.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
        return None if row is None else str(row[0])

    def put_meta(self, key: str, value: str) -> None:
        """Set a fact about the run; inside a transaction."""
        self.connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (key, value))

    def records(self, table: str) -> dict[str, dict[str, Any]]:
        """Every record of ``tasks`` or ``models`` by name."""
        rows = self.connection.execute(f"SELECT name, record FROM {table}")
        return {name: self._loaded(record) for name, record in rows}

    def answers(self) -> dict[str, Answers]:
        """How each task's answers are written."""
        return {
            name: Answers(r["kind"], r["form"], tuple(r["words"]) if r["words"] else None)
            for name, r in self.records("tasks").items()
        }

    def _loaded(self, record: str) -> dict[str, Any]:
        try:
            data: dict[str, Any] = json.loads(record)
        except ValueError:
            raise RunError(
                f"{self.path}: the store is damaged: a record is not JSON: restore a copy"
            ) from None
        return data

    def put_record(self, table: str, name: str, record: object) -> None:
        """Set a record of ``tasks`` or ``models``; inside a transaction."""
        self.connection.execute(
            f"INSERT OR REPLACE INTO {table} VALUES (?, ?)", (name, json_text(record))
        )

    def put_examples(self, examples: Iterable[Example]) -> None:
        """Add examples in the order of the sample; inside a transaction."""
        self.connection.executemany(
            "INSERT OR IGNORE INTO examples VALUES (?, ?, ?, ?)",
            ((e.task, e.id, rank, json_text(e)) for rank, e in enumerate(examples)),
        )

    def examples(self) -> Iterator[Example]:
        """Every example of the run, by task and rank in the sample."""
        rows = self.connection.execute("SELECT record FROM examples ORDER BY task, rank, id")
        for (record,) in rows:
            data = self._loaded(record)
            yield Example(**{**data, "options": tuple(data["options"])})

    def budgets(self) -> dict[tuple[str, str, str], int]:
        """Padding budgets in force by (tokenizer, task, example id or empty)."""
        rows = self.connection.execute("SELECT tokenizer, task, example_id, size FROM budgets")
        return {(tokenizer, task, example): size for tokenizer, task, example, size in rows}

    def put_budgets(self, budgets: dict[tuple[str, str, str], int]) -> None:
        """Fix budgets; one that exists is kept. Inside a transaction."""
        self.connection.executemany(
            "INSERT OR IGNORE INTO budgets VALUES (?, ?, ?, ?)",
            ((*key, size) for key, size in budgets.items()),
        )

    def put_prompts(self, prompts: Iterable[tuple[str, Prompt]]) -> None:
        """Add (tokenizer, prompt) pairs; inside a transaction."""
        self.connection.executemany(
            "INSERT OR IGNORE INTO prompts VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            (
                (
                    t,
                    p.task,
                    p.example_id,
                    p.wrapper,
                    messages_text(p.messages),
                    p.chars,
                    p.pad_chars,
                    p.tokens,
                )
                for t, p in prompts
            ),
        )

    def put_requests(self, ids: Iterable[str]) -> None:
        """Give requests their numbers, which grow in this order; inside a transaction."""
        self.connection.executemany(
            "INSERT OR IGNORE INTO requests (id) VALUES (?)", ((id_,) for id_ in ids)
        )

    def put_points(self, points: Iterable[tuple[str, Point]]) -> None:
        """Add (tokenizer, point) pairs in the order of asking; inside a transaction."""
        points = list(points)
        self.put_requests(p.request_id for _, p in points)
        self.connection.executemany(
            "INSERT OR IGNORE INTO points (tokenizer, model, task, example_id, wrapper, mode, "
            f"seed, request, copy_of) VALUES (?, ?, ?, ?, ?, ?, ?, {NUMBER}, {NUMBER})",
            (
                (
                    t,
                    p.model,
                    p.task,
                    p.example_id,
                    p.wrapper,
                    p.mode,
                    p.seed,
                    p.request_id,
                    p.copy_of,
                )
                for t, p in points
            ),
        )

    # --- what is asked and answered --------------------------------------------------------

    def pending(self, model: str, after: int, limit: int) -> list[Pending]:
        """Up to ``limit`` points of ``model`` without a reply, ids above ``after``.

        Of points that share a request only the first is given: a request is asked once.
        """
        # A page is one row of JSON, from which records are read: every row that is stepped to
        # costs a turn at the lock of the interpreter, which the loop of requests holds most of
        # the time. The plus keeps SQLite from walking the model's index and sorting all of it.
        (page,) = self.connection.execute(
            """
            SELECT json_group_array(json_array(id, request,
                json_array(model, task, example_id, wrapper, mode, seed, request_id),
                json_array(task, example_id, wrapper, json(messages), chars, pad_chars, tokens)))
            FROM (
                SELECT p.id, p.request, p.model, p.task, p.example_id, p.wrapper, p.mode, p.seed,
                       r.id AS request_id, q.messages, q.chars, q.pad_chars, q.tokens
                FROM points p
                JOIN requests r ON r.number = p.request
                JOIN prompts q USING (tokenizer, task, example_id, wrapper)
                LEFT JOIN generations g USING (request)
                WHERE p.id > ? AND +p.model = ? AND p.copy_of IS NULL AND g.request IS NULL
                  AND p.id = (SELECT min(id) FROM points WHERE request = p.request)
                ORDER BY p.id LIMIT ?
            )
            """,
            (after, model, limit),
        ).fetchone()
        return _pending_of(page)

    def commit(self, generations: Sequence[Generation], failures: Sequence[Failure]) -> None:
        """Write replies and failures durably; they count as done when this returns.

        Raises:
            StorageError: The disk is full or unwritable.
        """
        with self.transaction():
            self.put_requests([g.request_id for g in generations])
            self.put_requests([f.request_id for f in failures])
            self._write(
                [row_of(self._number(g.request_id), g) for g in generations],
                [(self._number(f.request_id), f) for f in failures],
            )

    def write(self, replies: Sequence[Row], failures: Sequence[tuple[int, Failure]]) -> None:
        """The same with replies as `row_of` makes them, and the numbers of failures' requests."""
        with self.transaction():
            self._write(replies, failures)

    def _write(self, replies: Sequence[Row], failures: Sequence[tuple[int, Failure]]) -> None:
        for i in range(0, len(replies), _ROWS_AT_ONCE):
            self._insert(replies[i : i + _ROWS_AT_ONCE])
        self.connection.executemany(
            "INSERT INTO failures (request, kind, message, attempts, at) VALUES (?, ?, ?, ?, ?)",
            ((n, f.kind.value, sound(f.message), f.attempts, f.at) for n, f in failures),
        )

    def _insert(self, rows: Sequence[Row]) -> None:
        # In one statement, for the same reason that a page of pending points is one row.
        each = f"({', '.join('?' * len(FIELDS))})"
        self.connection.execute(
            f"INSERT OR IGNORE INTO generations ({_COLUMNS}) "
            f"VALUES {', '.join([each] * len(rows))}",
            [value for row in rows for value in row],
        )

    def _number(self, request_id: str) -> int:
        row = self.connection.execute(f"SELECT {NUMBER}", (request_id,)).fetchone()
        return int(row[0])

    def counts(self) -> dict[str, Counts]:
        """Progress by model."""
        # All of it is read, which the order of an index would double.
        rows = self.connection.execute(
            """
            SELECT p.model, count(*), count(g.request) FROM points p NOT INDEXED
            LEFT JOIN generations g USING (request) WHERE p.copy_of IS NULL GROUP BY p.model
            """
        )
        return {model: Counts(points, done) for model, points, done in rows}

    def generation(self, request_id: str) -> Generation | None:
        """The reply to a request, or None."""
        row = self.connection.execute(
            f"SELECT {_COLUMNS} FROM generations WHERE request = {NUMBER}", (request_id,)
        ).fetchone()
        return None if row is None else generation_of_row(request_id, row)

    # --- sharing replies between runs ------------------------------------------------------

    def take_from(self, cache: Path) -> int:
        """Copy replies to this run's requests from a cache file; returns how many."""
        with self._attached(cache), self.transaction():
            source, id_ = "shared.generations", "request_id"
            if self._shares_a_run():
                source += " JOIN shared.requests theirs ON theirs.number = request"
                id_ = "theirs.id"
            return self.connection.execute(
                f"INSERT OR IGNORE INTO main.generations ({_COLUMNS}) "
                f"SELECT ours.number, {_BEHIND} "
                f"FROM {source} JOIN main.requests ours ON ours.id = {id_} "
                "WHERE ours.number IN (SELECT request FROM main.points WHERE copy_of IS NULL)"
            ).rowcount

    def give_to(self, cache: Path) -> None:
        """Copy this run's replies into a cache file, made if it is missing."""
        with self._attached(cache), self.transaction():
            replies = "main.generations JOIN main.requests ours ON ours.number = request"
            name, id_ = "request_id", "ours.id"
            if self._shares_a_run():
                self.connection.execute(
                    f"INSERT OR IGNORE INTO shared.requests (id) SELECT ours.id FROM {replies}"
                )
                replies += " JOIN shared.requests theirs ON theirs.id = ours.id"
                name, id_ = "request", "theirs.number"
            self.connection.execute(
                f"INSERT OR IGNORE INTO shared.generations ({name}, {_BEHIND}) "
                f"SELECT {id_}, {_BEHIND} FROM {replies}"
            )

    def _shares_a_run(self) -> bool:
        """Whether the attached file is another run's store, whose requests have numbers."""
        found = self.connection.execute(
            "SELECT 1 FROM shared.sqlite_master WHERE name = 'requests'"
        )
        return found.fetchone() is not None

    @contextmanager
    def _attached(self, cache: Path) -> Iterator[None]:
        made = connect(cache)
        try:
            made.execute("PRAGMA journal_mode = WAL")
            made.executescript(SHARED)
        finally:
            made.close()
        self.connection.execute("ATTACH DATABASE ? AS shared", (str(cache),))
        try:
            yield
        finally:
            self.connection.execute("DETACH DATABASE shared")


def check_cache(cache: Path, store: Path) -> None:
    """Refuse a file that cannot share the replies of the run whose store is ``store``.

    Raises:
        RunError: It is that store itself, no cache, or cannot be written.
    """
    writable_file(cache, "--cache")
    if cache.resolve() == store.resolve():
        raise RunError(f"{cache}: is the run's own store: --cache names a file beside the runs")
    if not cache.exists() or not cache.stat().st_size:
        return
    connection = connect(cache, read_only=True)
    try:
        tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
    finally:
        connection.close()
    if tables and "generations" not in tables:
        raise RunError(f"{cache}: a database, but not a cache of formatspan")


def check_store(path: Path) -> None:
    """Refuse a file that stands where a run's store would be; nothing is written.

    Raises:
        RunError: It is there, and no store.
    """
    if path.exists():
        writable_file(path, "the store")
        connection = connect(path, read_only=True)
        try:
            refuse_foreign(connection, path)
        finally:
            connection.close()


def _check_is_there(path: Path) -> None:
    if path.parent.is_file():
        raise RunError(f"{path.parent}: a file; expected the folder of a run")
    if not path.parent.is_dir():
        raise RunError(f"{path.parent}: not a run folder: no such folder")
    if not path.is_file():
        raise RunError(f"{path.parent}: not a run folder: it holds no {path.name}")


def holds_plan(path: Path) -> bool:
    """Whether there is a run in this store; one that cannot be judged may hold one."""
    if not path.exists():
        return False
    try:
        connection = connect(path, read_only=True)
    except FormatspanError:
        return True
    try:
        tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
        planned = "SELECT 1 FROM meta WHERE key = 'study'"
        return "meta" in tables and connection.execute(planned).fetchone() is not None
    except FormatspanError:
        return True
    finally:
        connection.close()


def _bring_up_to_date(path: Path) -> None:
    try:
        with locked(path.parent):
            Store.create(path).close()
    except Held:
        raise RunError(
            f"{path}: was written by an earlier version, and another process is running in its "
            "folder: wait for it"
        ) from None
    except FormatspanError as error:
        raise RunError(
            f"{path}: was written by an earlier version, and is to be brought up to date before it "
            f"is read, which failed ({error}): a copy of the folder that can be written to will do"
        ) from None


def _checked_version(connection: sqlite3.Connection, path: Path) -> int:
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    application = connection.execute("PRAGMA application_id").fetchone()[0]
    if version == 0 or application != APPLICATION_ID:
        raise RunError(f"{path}: not a store of formatspan, or one without content")
    if version > len(MIGRATIONS):
        raise RunError(f"{path}: has schema {version}: upgrade formatspan to read it")
    return int(version)


_read_pending = msgspec.json.Decoder(list[Pending]).decode


def _pending_of(page: str) -> list[Pending]:
    try:
        return _read_pending(page)
    except msgspec.DecodeError:  # half a surrogate pair
        return msgspec.convert(json.loads(page), list[Pending])

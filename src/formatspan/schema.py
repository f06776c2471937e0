"""The tables of a run's store, and the numbered steps that bring an older store up to date."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

from formatspan.errors import RunError

APPLICATION_ID = 0x46535041
"""``FSPA``, in the file's header: tells a run's store from any other SQLite file."""

_FIRST = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE tasks (name TEXT PRIMARY KEY, record TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE models (name TEXT PRIMARY KEY, record TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE examples (
    task TEXT NOT NULL, id TEXT NOT NULL, rank INTEGER NOT NULL, record TEXT NOT NULL,
    PRIMARY KEY (task, id)
) WITHOUT ROWID;
CREATE TABLE budgets (
    tokenizer TEXT NOT NULL, task TEXT NOT NULL, example_id TEXT NOT NULL, size INTEGER NOT NULL,
    PRIMARY KEY (tokenizer, task, example_id)
) WITHOUT ROWID;
CREATE TABLE prompts (
    tokenizer TEXT NOT NULL, task TEXT NOT NULL, example_id TEXT NOT NULL, wrapper TEXT NOT NULL,
    messages TEXT NOT NULL, chars INTEGER NOT NULL, pad_chars INTEGER NOT NULL, tokens INTEGER,
    PRIMARY KEY (tokenizer, task, example_id, wrapper)
);
CREATE TABLE points (
    id INTEGER PRIMARY KEY,
    model TEXT NOT NULL, task TEXT NOT NULL, example_id TEXT NOT NULL, wrapper TEXT NOT NULL,
    mode TEXT NOT NULL, seed INTEGER NOT NULL,
    tokenizer TEXT NOT NULL, request_id TEXT NOT NULL, copy_of TEXT,
    UNIQUE (model, task, example_id, wrapper, mode, seed)
);
CREATE INDEX points_by_request ON points (request_id);
CREATE TABLE failures (
    id INTEGER PRIMARY KEY, request_id TEXT NOT NULL, kind TEXT NOT NULL, message TEXT NOT NULL,
    attempts INTEGER NOT NULL, at TEXT NOT NULL
);
CREATE INDEX failures_by_request ON failures (request_id);
"""

SHARED = """
CREATE TABLE IF NOT EXISTS generations (
    request_id TEXT PRIMARY KEY, text TEXT NOT NULL, finish_reason TEXT, finish_reason_raw TEXT,
    reasoning TEXT, token_ids TEXT, logprobs TEXT, prompt_tokens INTEGER,
    completion_tokens INTEGER, cached_tokens INTEGER, reasoning_tokens INTEGER,
    served_model TEXT, provider TEXT, fingerprint TEXT, response_id TEXT,
    attempts INTEGER NOT NULL, adaptations TEXT NOT NULL, started_at TEXT NOT NULL,
    first_token_s REAL, latency_s REAL, cost REAL, cost_source TEXT, body BLOB
);
"""
"""Raw replies by the hash of what they answer, as a shared cache file holds them."""

_FURTHER = """
CREATE TABLE further (
    id INTEGER PRIMARY KEY, what TEXT NOT NULL,
    model TEXT NOT NULL, task TEXT NOT NULL, example_id TEXT NOT NULL, wrapper TEXT NOT NULL,
    seed INTEGER NOT NULL, item TEXT NOT NULL,
    tokenizer TEXT NOT NULL, request_id TEXT NOT NULL, parent TEXT,
    UNIQUE (what, model, task, example_id, wrapper, seed, item)
);
CREATE INDEX further_by_request ON further (request_id);
"""
"""Requests beside the grid: likelihoods of options, questions asked again."""

_TEXT_BODIES = "-- The body of a generation may be text; until then all were compressed."

_NUMBERS = """
CREATE TABLE requests (number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE);
INSERT OR IGNORE INTO requests (id) SELECT request_id FROM points ORDER BY id;
INSERT OR IGNORE INTO requests (id) SELECT request_id FROM further ORDER BY id;
INSERT OR IGNORE INTO requests (id) SELECT copy_of FROM points WHERE copy_of NOT NULL;
INSERT OR IGNORE INTO requests (id) SELECT parent FROM further WHERE parent NOT NULL;
INSERT OR IGNORE INTO requests (id) SELECT request_id FROM generations;
INSERT OR IGNORE INTO requests (id) SELECT request_id FROM failures;

CREATE TABLE new_points (
    id INTEGER PRIMARY KEY,
    model TEXT NOT NULL, task TEXT NOT NULL, example_id TEXT NOT NULL, wrapper TEXT NOT NULL,
    mode TEXT NOT NULL, seed INTEGER NOT NULL,
    tokenizer TEXT NOT NULL, request INTEGER NOT NULL, copy_of INTEGER,
    UNIQUE (model, task, example_id, wrapper, mode, seed)
);
INSERT INTO new_points
SELECT p.id, model, task, example_id, wrapper, mode, seed, tokenizer, r.number, c.number
FROM points p JOIN requests r ON r.id = request_id LEFT JOIN requests c ON c.id = copy_of
ORDER BY p.id;
DROP TABLE points;
ALTER TABLE new_points RENAME TO points;
CREATE INDEX points_by_request ON points (request);

CREATE TABLE new_further (
    id INTEGER PRIMARY KEY, what TEXT NOT NULL,
    model TEXT NOT NULL, task TEXT NOT NULL, example_id TEXT NOT NULL, wrapper TEXT NOT NULL,
    seed INTEGER NOT NULL, item TEXT NOT NULL,
    tokenizer TEXT NOT NULL, request INTEGER NOT NULL, parent INTEGER,
    UNIQUE (what, model, task, example_id, wrapper, seed, item)
);
INSERT INTO new_further
SELECT f.id, what, model, task, example_id, wrapper, seed, item, tokenizer, r.number, c.number
FROM further f JOIN requests r ON r.id = request_id LEFT JOIN requests c ON c.id = parent
ORDER BY f.id;
DROP TABLE further;
ALTER TABLE new_further RENAME TO further;
CREATE INDEX further_by_request ON further (request);

CREATE TABLE new_failures (
    id INTEGER PRIMARY KEY, request INTEGER NOT NULL, kind TEXT NOT NULL, message TEXT NOT NULL,
    attempts INTEGER NOT NULL, at TEXT NOT NULL
);
INSERT INTO new_failures SELECT f.id, r.number, kind, message, attempts, at
FROM failures f JOIN requests r ON r.id = request_id ORDER BY f.id;
DROP TABLE failures;
ALTER TABLE new_failures RENAME TO failures;
CREATE INDEX failures_by_request ON failures (request);

CREATE TABLE new_generations (
    request INTEGER PRIMARY KEY, text TEXT NOT NULL, finish_reason TEXT, finish_reason_raw TEXT,
    reasoning TEXT, token_ids TEXT, logprobs TEXT, prompt_tokens INTEGER,
    completion_tokens INTEGER, cached_tokens INTEGER, reasoning_tokens INTEGER,
    served_model TEXT, provider TEXT, fingerprint TEXT, response_id TEXT,
    attempts INTEGER NOT NULL, adaptations TEXT NOT NULL, started_at TEXT NOT NULL,
    first_token_s REAL, latency_s REAL, cost REAL, cost_source TEXT, body BLOB
);
INSERT INTO new_generations
SELECT r.number, text, finish_reason, finish_reason_raw, reasoning, token_ids, logprobs,
    prompt_tokens, completion_tokens, cached_tokens, reasoning_tokens, served_model, provider,
    fingerprint, response_id, attempts, adaptations, started_at, first_token_s, latency_s, cost,
    cost_source, body
FROM generations g JOIN requests r ON r.id = request_id ORDER BY r.number;
DROP TABLE generations;
ALTER TABLE new_generations RENAME TO generations;
"""
"""Requests by numbers in the order of asking, so that replies are appended in about that order:
under the hash of what it answers each went to another page, a tenth of what a run costs."""

MIGRATIONS: tuple[str, ...] = (_FIRST + SHARED, _FURTHER, _TEXT_BODIES, _NUMBERS)
"""Step ``i`` brings schema version ``i`` to ``i + 1``; never edited once released."""


def refuse_foreign(connection: sqlite3.Connection, path: Path) -> int:
    """The version of a store, 0 for an empty file; nothing is written.

    Raises:
        RunError: The file is no store of this program, or was written by a newer version.
    """
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    application = connection.execute("PRAGMA application_id").fetchone()[0]
    if application != APPLICATION_ID and (version > 0 or _has_tables(connection)):
        raise RunError(f"{path}: a database, but not one that formatspan wrote")
    if version > len(MIGRATIONS):
        raise RunError(
            f"{path}: the store has schema {version}, this version of formatspan reads up to "
            f"{len(MIGRATIONS)}: upgrade formatspan"
        )
    return int(version)


def migrate(connection: sqlite3.Connection, path: Path) -> None:
    """Bring the store to the current schema at once, or say why it cannot be.

    Raises:
        RunError: The file is no store of this program, or was written by a newer version.
    """
    if refuse_foreign(connection, path) == len(MIGRATIONS):
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        # Asked again, since another process may have been faster.
        for step in MIGRATIONS[refuse_foreign(connection, path) :]:
            for statement in _statements(step):
                connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {len(MIGRATIONS)}")
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    except BaseException:
        connection.rollback()
        raise
    connection.execute("COMMIT")


def _statements(step: str) -> Iterator[str]:
    """The statements of a step; `sqlite3.Connection.executescript` would commit what is open."""
    statement = ""
    for line in step.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""


def _has_tables(connection: sqlite3.Connection) -> bool:
    return connection.execute("SELECT 1 FROM sqlite_master").fetchone() is not None

"""From a store to a frame: one row a point of the grid, its reply scored at one level.

Columns: ``model task example cluster wrapper mode seed copy`` (where it stands; ``copy`` marks
the repeat of a deterministic reply), ``status value parsed correct`` (null without a reply),
``failure`` (kind of the last failure of a point without a reply), ``finish_reason
prompt_tokens completion_tokens latency_s cost`` (the reply's), ``chars pad_chars`` (the
prompt's).
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from formatspan.contracts import AnswerSpace, Contract
from formatspan.records import Example, Level
from formatspan.scoring import score
from formatspan.store import Store
from formatspan.study import Study

if TYPE_CHECKING:
    import polars as pl

_ROWS = """
SELECT p.model, p.task, p.example_id, p.wrapper, p.mode, p.seed, p.copy_of IS NOT NULL,
       g.text, g.finish_reason, g.prompt_tokens, g.completion_tokens, g.latency_s, g.cost,
       q.chars, q.pad_chars,
       CASE WHEN g.request_id IS NULL THEN
         (SELECT kind FROM failures f WHERE f.request_id = coalesce(p.copy_of, p.request_id)
          ORDER BY f.id DESC LIMIT 1)
       END
FROM points p
JOIN prompts q USING (tokenizer, task, example_id, wrapper)
LEFT JOIN generations g ON g.request_id = coalesce(p.copy_of, p.request_id)
"""
_RAW = """
SELECT p.model, p.task, p.example_id, p.wrapper, p.copy_of IS NOT NULL, g.text, g.finish_reason,
       g.token_ids, g.completion_tokens, g.reasoning_tokens
FROM points p
LEFT JOIN generations g ON g.request_id = coalesce(p.copy_of, p.request_id)
"""
_ORDER = "ORDER BY p.model, p.task, p.example_id, p.wrapper, p.mode, p.seed"
"""Of both, so that the raw replies stand in the order of the table's rows."""
_CHUNK = 20_000
"""Rows held as Python objects at a time."""


class Asked(NamedTuple):
    """What a reply to one example under one wrapper is scored against."""

    contract: Contract
    space: AnswerSpace
    example: Example


class RawReply(NamedTuple):
    """What stands behind a row of the table."""

    model: str
    task: str
    example_id: str
    wrapper: str
    copy: bool
    text: str | None
    """None without a reply."""
    finish_reason: str | None
    token_ids: str | None
    """As JSON, where the backend gave them."""
    completion_tokens: int | None
    reasoning_tokens: int | None


def scored(store: Store, study: Study, level: Level) -> pl.DataFrame:
    """The table of a run at one extraction level; see the module for its columns."""
    import polars as pl

    schema = _schema()
    chunks = [
        pl.DataFrame(rows, schema=schema, orient="row") for rows in _chunks(store, study, level)
    ]
    return pl.concat(chunks) if chunks else pl.DataFrame(schema=schema)


def raw_replies(store: Store) -> Iterator[RawReply]:
    """The raw reply of every row of the table, in the table's order."""
    for row in store.connection.execute(_RAW + _ORDER):
        yield RawReply(*row)


def asked_of(store: Store, study: Study) -> Callable[[str, str, str], Asked]:
    """A look-up of what (task, example id, wrapper) asked for."""
    examples = {(e.task, e.id): e for e in store.examples()}
    answers = store.answers()
    contracts = {
        (task, entry.name): entry.build().contract.asking(written)
        for task, written in answers.items()
        for entry in study.wrappers
    }
    spaces = {
        key: AnswerSpace.of_options(answers[e.task].kind, e.options) for key, e in examples.items()
    }

    def look_up(task: str, example_id: str, wrapper: str) -> Asked:
        key = (task, example_id)
        return Asked(contracts[task, wrapper], spaces[key], examples[key])

    return look_up


def _chunks(store: Store, study: Study, level: Level) -> Iterator[list[tuple[Any, ...]]]:
    look_up = asked_of(store, study)
    cursor: sqlite3.Cursor = store.connection.execute(_ROWS + _ORDER)
    while rows := cursor.fetchmany(_CHUNK):
        yield [_row(row, look_up(row[1], row[2], row[3]), level) for row in rows]


def _row(row: tuple[Any, ...], asked: Asked, level: Level) -> tuple[Any, ...]:
    model, task, example_id, wrapper, mode, seed, copy, text, finish, *measured, failure = row
    where = (model, task, example_id, asked.example.cluster, wrapper, mode, seed, bool(copy))
    if text is None:
        return (*where, None, None, None, None, failure, finish, *measured)
    contract, space, example = asked
    result = score(text, finish, contract, space, example.gold, level, example.question)
    value = None if result.value is None else str(result.value)
    verdict = (result.status.value, value, result.parsed, result.correct)
    return (*where, *verdict, failure, finish, *measured)


def _schema() -> dict[str, Any]:
    import polars as pl

    names = pl.Categorical
    return {
        "model": names,
        "task": names,
        "example": pl.String,
        "cluster": pl.String,
        "wrapper": names,
        "mode": names,
        "seed": pl.Int32,
        "copy": pl.Boolean,
        "status": names,
        "value": pl.String,
        "parsed": pl.Boolean,
        "correct": pl.Boolean,
        "failure": names,
        "finish_reason": names,
        "prompt_tokens": pl.Int32,
        "completion_tokens": pl.Int32,
        "latency_s": pl.Float64,
        "cost": pl.Float64,
        "chars": pl.Int32,
        "pad_chars": pl.Int32,
    }

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
from formatspan.errors import StudyError
from formatspan.records import LEVELS, Example, Level
from formatspan.scoring import score
from formatspan.store import Store
from formatspan.study import Study

if TYPE_CHECKING:
    import polars as pl

ALL_LEVELS: tuple[Level, ...] = (*LEVELS, "paper")
"""Every rule by which replies can be read, the nested ones first."""
_ROWS = """
SELECT p.model, p.task, p.example_id, p.wrapper, p.mode, p.seed, p.copy_of IS NOT NULL,
       g.text, g.finish_reason, g.prompt_tokens, g.completion_tokens, g.latency_s, g.cost,
       q.chars, q.pad_chars,
       CASE WHEN g.request IS NULL THEN
         (SELECT kind FROM failures f WHERE f.request = coalesce(p.copy_of, p.request)
          ORDER BY f.id DESC LIMIT 1)
       END
FROM points p
CROSS JOIN prompts q USING (tokenizer, task, example_id, wrapper)
LEFT JOIN generations g ON g.request = coalesce(p.copy_of, p.request)
ORDER BY p.id
"""
"""In the order of asking, in which replies to one prompt stand near each other. SQLite takes the
tables of a cross join as they are written; the other way round it would have to sort."""
_RAW = """
SELECT p.model, p.task, p.example_id, p.wrapper, p.copy_of IS NOT NULL, g.text, g.finish_reason,
       g.token_ids, g.completion_tokens, g.reasoning_tokens
FROM points p
LEFT JOIN generations g ON g.request = coalesce(p.copy_of, p.request)
ORDER BY p.model, p.task, p.example_id, p.wrapper, p.mode, p.seed
"""
_CACHE_KIB = 65_536
"""Of the store's pages kept: prompts are looked up by their names."""
_SELECTED = (
    *("model", "task", "example", "wrapper", "mode", "seed", "copy", "text", "finish_reason"),
    *("prompt_tokens", "completion_tokens", "latency_s", "cost", "chars", "pad_chars", "failure"),
)
_SCORED = ("cluster", "status", "value", "parsed", "correct")
_REMEMBERED = 50_000
"""Verdicts kept: more than there are different replies to the prompts that are asked together."""
_CHUNK = 20_000
"""Rows held as Python objects at a time."""
_ORDER = ("model", "task", "example", "wrapper", "mode", "seed")
"""Of the rows: the same however a run grew."""


Verdict = tuple[str, str | None, str | None, bool | None, bool | None]
"""Cluster of the example, then status, value, parsed, correct: None without a reply."""


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


def study_of(store: Store) -> Study:
    """The study that a run's grid was planned from.

    Raises:
        RunError: It was never planned, or its study is not one that this version reads.
    """
    return Study.stored(store.meta("study"), store.path.parent)


def checked_level(level: Level | None) -> None:
    """Refuse a level that there is not; None stands for the study's own.

    Raises:
        StudyError: There is no such level.
    """
    if level is not None and level not in ALL_LEVELS:
        raise StudyError(f"level {level!r}: expected {', '.join(ALL_LEVELS)}")


def scored(store: Store, study: Study, level: Level) -> pl.DataFrame:
    """The table of a run at one extraction level; see the module for its columns."""
    import polars as pl

    chunks = list(_chunks(store, study, level))
    if not chunks:
        return pl.DataFrame(schema=schema())
    # The categories of text columns sort as their names do.
    return pl.concat(chunks, rechunk=True).sort(_ORDER)


def raw_replies(store: Store) -> Iterator[RawReply]:
    """The raw reply of every row of the table, in the table's order."""
    for row in store.connection.execute(_RAW):
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


def _chunks(store: Store, study: Study, level: Level) -> Iterator[pl.DataFrame]:
    import polars as pl

    wanted = schema()
    scorer = _Scorer(asked_of(store, study), level)
    store.connection.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")
    cursor: sqlite3.Cursor = store.connection.execute(_ROWS)
    while rows := cursor.fetchmany(_CHUNK):
        columns = dict(zip(_SELECTED, zip(*rows, strict=True), strict=True))
        places = (columns[name] for name in ("task", "example", "wrapper"))
        verdicts = map(scorer, *places, columns.pop("text"), columns["finish_reason"])
        columns["copy"] = tuple(map(bool, columns["copy"]))
        columns |= zip(_SCORED, zip(*verdicts, strict=True), strict=True)
        yield pl.DataFrame({name: columns[name] for name in wanted}, schema=wanted)


class _Scorer:
    """Scores equal replies to a prompt once, as long as they stand not too far apart."""

    def __init__(self, look_up: Callable[[str, str, str], Asked], level: Level) -> None:
        self._look_up, self._level = look_up, level
        self._known: dict[tuple[str, str, str, str | None, str | None], Verdict] = {}

    def __call__(
        self, task: str, example_id: str, wrapper: str, text: str | None, finish: str | None
    ) -> Verdict:
        reply = (task, example_id, wrapper, text, finish)
        found = self._known.get(reply)
        if found is None:
            if len(self._known) >= _REMEMBERED:
                self._known.clear()
            asked = self._look_up(task, example_id, wrapper)
            found = self._known[reply] = self._score(asked, text, finish)
        return found

    def _score(self, asked: Asked, text: str | None, finish: str | None) -> Verdict:
        contract, space, example = asked
        if text is None:
            return example.cluster, None, None, None, None
        found = score(text, finish, contract, space, example.gold, self._level, example.question)
        value = None if found.value is None else str(found.value)
        return example.cluster, found.status.value, value, found.parsed, found.correct


def schema() -> dict[str, Any]:
    """Columns of a scored table and their types."""
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

"""Requests beside the grid: likelihoods of options, and questions asked again.

They are queued in the run's store like the grid's points, so that the one generation loop asks
them, and their replies stand among the others. A score's reply has no text: its
log-probabilities are those of the answer's tokens.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Literal, NamedTuple

from formatspan.records import Point, Prompt
from formatspan.store import NUMBER, Counts, Pending, Store
from formatspan.stored import messages_of

What = Literal["likelihood", "again"]


class Further(NamedTuple):
    """One request beside the grid."""

    what: What
    model: str
    """Label of the model in the study."""
    task: str
    example_id: str
    wrapper: str
    seed: int
    item: str
    """Label of the option that is scored; empty for a question asked again."""
    tokenizer: str
    request_id: str
    parent: str | None
    """Request whose reply is repaired."""


_PLACES = """
FROM further f
JOIN requests r ON r.number = f.request
JOIN prompts q USING (tokenizer, task, example_id, wrapper)
LEFT JOIN requests parent ON parent.number = f.parent
LEFT JOIN generations g USING (request)
"""
_OWN = Further._fields[:-2]
"""The columns that a row holds as they are; the last two are requests, which it has by number."""
_FIELDS = ", ".join(f"f.{name}" for name in _OWN) + ", r.id, parent.id"


class Queue(Store):
    """A run's store whose pending points are the requests of one kind beside the grid.

    Set ``what`` before use. `of` gives the row of a pending point.
    """

    what: What = "likelihood"

    def __init__(self, connection: Any, path: Path) -> None:  # noqa: ANN401 - as the store
        super().__init__(connection, path)
        self._rows: dict[int, Further] = {}

    def put(self, rows: Iterable[Further]) -> None:
        """Queue requests; those that are queued already stay. Inside a transaction."""
        rows = list(rows)
        self.put_requests(further.request_id for further in rows)
        self.connection.executemany(
            f"INSERT OR IGNORE INTO further ({', '.join(_OWN)}, request, parent) "
            f"VALUES ({', '.join('?' * len(_OWN))}, {NUMBER}, {NUMBER})",
            rows,
        )

    def of(self, pending: Pending) -> Further:
        """The request behind a pending point."""
        return self._rows.pop(pending.id)

    def pending(self, model: str, after: int, limit: int) -> list[Pending]:
        """As the grid's: requests of ``model`` without a reply, each content once."""
        rows = self.connection.execute(
            f"""
            SELECT f.id, f.request, q.messages, q.chars, q.pad_chars, q.tokens, {_FIELDS} {_PLACES}
            WHERE f.id > ? AND f.model = ? AND f.what = ? AND g.request IS NULL
              AND f.id = (SELECT min(id) FROM further WHERE request = f.request)
            ORDER BY f.id LIMIT ?
            """,
            (after, model, self.what, limit),
        )
        return [self._pending(row) for row in rows]

    def _pending(self, row: tuple[Any, ...]) -> Pending:
        id_, number, messages, *lengths = row[:6]
        further = Further(*row[6:])
        self._rows[id_] = further
        place = (further.task, further.example_id, further.wrapper)
        prompt = Prompt(*place, messages_of(messages), *lengths)
        point = Point(further.model, *place, "free", further.seed, further.request_id)
        return Pending(id_, number, point, prompt)

    def counts(self) -> dict[str, Counts]:
        """Progress by model, of requests of this kind."""
        rows = self.connection.execute(
            "SELECT f.model, count(*), count(g.request) FROM further f "
            "LEFT JOIN generations g USING (request) WHERE f.what = ? GROUP BY f.model",
            (self.what,),
        )
        return {model: Counts(points, done) for model, points, done in rows}


class Scored(NamedTuple):
    """A scored option."""

    model: str
    task: str
    example_id: str
    wrapper: str
    item: str
    logprob: float
    """Natural logarithm of the answer's probability after the prompt."""


class Again(NamedTuple):
    """A question asked again, with its second reply; None while there is none."""

    model: str
    task: str
    example_id: str
    wrapper: str
    seed: int
    text: str | None
    finish_reason: str | None
    prompt_tokens: int | None
    completion_tokens: int | None
    latency_s: float | None
    cost: float | None


def scored_options(store: Store) -> Iterator[Scored]:
    """Every option that was scored."""
    rows = store.connection.execute(
        "SELECT f.model, f.task, f.example_id, f.wrapper, f.item, g.logprobs FROM further f "
        "JOIN generations g USING (request) WHERE f.what = 'likelihood' ORDER BY f.id"
    )
    for model, task, example_id, wrapper, item, logprobs in rows:
        yield Scored(model, task, example_id, wrapper, item, sum(json.loads(logprobs)))


def asked_again(store: Store) -> Iterator[Again]:
    """Every question that was asked again."""
    columns = (
        "f.model, f.task, f.example_id, f.wrapper, f.seed, g.text, g.finish_reason, "
        "g.prompt_tokens, g.completion_tokens, g.latency_s, g.cost"
    )
    rows = store.connection.execute(
        f"SELECT {columns} FROM further f LEFT JOIN generations g USING (request) "
        "WHERE f.what = 'again' ORDER BY f.id"
    )
    yield from (Again(*row) for row in rows)

"""Which batches are under way in a run, as its store notes them, and who may have any."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass

from formatspan.errors import RunError, StudyError
from formatspan.store import Store
from formatspan.study import Study

SCHEMES = frozenset({"openai"})
"""Schemes whose endpoints speak the Batch API."""
META = "batches"
"""Key of the store's facts: the batches that are under way."""


@dataclass(frozen=True, slots=True)
class Open:
    """A batch under way, as noted in the store."""

    model: str
    token: str
    """In the batch's metadata."""
    after: int
    last: int
    """Its requests are the pending points with ids above ``after`` up to ``last``."""
    requests: int
    most: float
    """The most that it can cost, in US dollars."""
    id: str | None = None
    """None until the endpoint has said it."""


def open_batches(store: Store) -> list[Open]:
    """The batches under way in a run."""
    return [Open(**row) for row in json.loads(store.meta(META) or "[]")]


def refuse_open(store: Store, given: Study) -> None:
    """Refuse to ask one by one what is in a batch already.

    Raises:
        RunError: Names the model.
    """
    asked = {m.name for m in given.models}
    for batch in open_batches(store):
        if batch.model in asked:
            raise RunError(
                f"model {batch.model!r}: {batch.requests} requests are in a batch under way: "
                "use --batch to fetch it"
            )


def check_batchable(given: Study) -> None:
    """Refuse models whose endpoint has no Batch API.

    Raises:
        StudyError: Names the model.
    """
    for entry in given.models:
        if entry.spec().scheme not in SCHEMES:
            raise StudyError(
                f"--batch: model {entry.name!r}: expected openai:…, whose endpoint speaks the "
                "Batch API"
            )


def note(store: Store, batch: Open) -> None:
    """Put a batch into the store's list, in the place of what it was."""
    _write(store, [*_others(store, batch), batch])


def forget(store: Store, batch: Open) -> None:
    """Take a batch out of the store's list."""
    _write(store, _others(store, batch))


def _others(store: Store, batch: Open) -> list[Open]:
    return [b for b in open_batches(store) if b.token != batch.token]


def _write(store: Store, batches: list[Open]) -> None:
    with store.transaction():
        store.put_meta(META, json.dumps([asdict(b) for b in batches]))

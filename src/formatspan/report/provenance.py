"""Where a run's replies come from: dates, providers, costs, failures, facts of the backends."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from formatspan.report.costs import Cost, costs
from formatspan.report.threats import threats
from formatspan.store import Store

_SERVED = """
SELECT p.model, g.served_model, g.provider, g.fingerprint, count(*), min(g.started_at),
       max(g.started_at), sum(g.cost), sum(g.prompt_tokens), sum(g.completion_tokens)
FROM points p JOIN generations g USING (request)
WHERE p.copy_of IS NULL GROUP BY 1, 2, 3, 4 ORDER BY 1, 5 DESC
"""
_FAILURES = """
SELECT p.model, f.kind, count(DISTINCT p.id), max(f.message)
FROM points p JOIN failures f USING (request)
LEFT JOIN generations g USING (request)
WHERE p.copy_of IS NULL AND g.request IS NULL GROUP BY 1, 2 ORDER BY 1, 3 DESC
"""
_PADDING = """
SELECT wrapper, min(chars), max(chars), avg(pad_chars), max(pad_chars)
FROM prompts GROUP BY wrapper
"""

_ADAPTED = """
SELECT p.model, note.value, count(DISTINCT p.id)
FROM points p JOIN generations g USING (request), json_each(g.adaptations) note
WHERE p.copy_of IS NULL AND g.adaptations <> '[]' GROUP BY 1, 2 ORDER BY 1, 2
"""


@dataclass(frozen=True)
class Served:
    """Replies of one model from one provider."""

    model: str
    served_model: str | None
    provider: str | None
    fingerprint: str | None
    replies: int
    first: str
    """UTC, ISO 8601."""
    last: str
    cost: float | None
    """US dollars; None where unknown."""
    prompt_tokens: int | None
    completion_tokens: int | None


@dataclass(frozen=True)
class Failed:
    """Requests of one model without a reply, by kind of their failure."""

    model: str
    kind: str
    requests: int
    message: str


@dataclass(frozen=True)
class Adapted:
    """Requests to one model that were sent otherwise than the study says, as it refused that."""

    model: str
    what: str
    """``parameter: what was done``."""
    replies: int


@dataclass(frozen=True)
class Padded:
    """Lengths of the prompts under one wrapper, in characters."""

    wrapper: str
    shortest: int
    longest: int
    mean_padding: float
    most_padding: int


@dataclass(frozen=True)
class Provenance:
    """What the store knows of how the replies came about."""

    served: tuple[Served, ...] = ()
    failed: tuple[Failed, ...] = ()
    padded: tuple[Padded, ...] = ()
    adapted: tuple[Adapted, ...] = ()
    models: tuple[tuple[str, dict[str, Any]], ...] = ()
    """Facts of each model's backend by label."""
    costs: tuple[Cost, ...] = ()
    threats: tuple[str, ...] = ()
    """What in who answered may pass for an effect of format."""

    @property
    def dates(self) -> tuple[str, str] | None:
        """First and last reply, UTC; None without any."""
        first = [s.first for s in self.served if s.first]
        last = [s.last for s in self.served if s.last]
        return (min(first), max(last)) if first and last else None


def provenance(store_path: Path | None) -> Provenance:
    """Ask the store of a run; an imported table has none."""
    if store_path is None:
        return Provenance()
    with Store.read(store_path) as store:
        ask = store.connection.execute
        return Provenance(
            served=tuple(Served(*row) for row in ask(_SERVED)),
            failed=tuple(Failed(*row) for row in ask(_FAILURES)),
            adapted=tuple(Adapted(*row) for row in ask(_ADAPTED)),
            padded=tuple(Padded(*row) for row in ask(_PADDING)),
            models=tuple(store.records("models").items()),
            costs=costs(store),
            threats=threats(store),
        )

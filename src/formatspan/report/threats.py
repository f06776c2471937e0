"""Threats to the comparison of wrappers that lie in who answered, not in the wrappers.

One model name can be several deployments: providers behind a router differ in precision and
chat template, and an endpoint may change under a run. Where replies of one model come from
more than one, a difference between wrappers can be a difference between deployments.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from formatspan.report.numbers import count, percent
from formatspan.store import Store

SHOWN = 4
"""Names that a line spells out."""

_WHO = """
SELECT p.model, p.wrapper, g.provider, g.served_model, g.fingerprint, count(*)
FROM points p JOIN generations g USING (request)
WHERE p.copy_of IS NULL GROUP BY 1, 2, 3, 4, 5
"""


class _Who(NamedTuple):
    wrapper: str
    provider: str | None
    served_model: str | None
    fingerprint: str | None
    replies: int


def threats(store: Store) -> tuple[str, ...]:
    """A line for each model whose replies come from more than one deployment."""
    by_model: dict[str, list[_Who]] = defaultdict(list)
    for model, *who in store.connection.execute(_WHO):
        by_model[model].append(_Who(*who))
    return tuple(line for model, rows in by_model.items() for line in _of(model, rows))


def _of(model: str, rows: list[_Who]) -> Iterator[str]:
    providers = _counted(rows, "provider")
    if len(providers) > 1:
        yield (
            f"{model}: replies came from {len(providers)} providers ({_named(providers)})"
            f"{_uneven(rows, providers)}: what looks like an effect of format may be one of "
            "deployment; pin a provider and run again"
        )
    served = _counted(rows, "served_model")
    if len(served) > 1:
        yield f"{model}: replies came from {len(served)} models ({_named(served)})"
    for provider, prints in _fingerprints(rows).items():
        if len(prints) > 1:
            where = f" of {provider}" if provider else ""
            yield (
                f"{model}: the fingerprint{where} changed during the run ({len(prints)} of them): "
                "the endpoint was not the same throughout"
            )


def _counted(rows: list[_Who], key: str) -> Counter[str]:
    """Replies by who gave them; those that do not say are left out."""
    found: Counter[str] = Counter()
    for row in rows:
        if (name := getattr(row, key)) is not None:
            found[str(name)] += row.replies
    return found


def _named(found: Counter[str]) -> str:
    shown = [f"{name} {count(n)}" for name, n in found.most_common(SHOWN)]
    more = len(found) - SHOWN
    return ", ".join(shown) + (f", {more} more" if more > 0 else "")


def _uneven(rows: list[_Who], providers: Counter[str]) -> str:
    """How unevenly the wrappers were served by the most frequent provider."""
    first = providers.most_common(1)[0][0]
    total: Counter[str] = Counter()
    mine: Counter[str] = Counter()
    for row in rows:
        if row.provider is not None:
            total[row.wrapper] += row.replies
            mine[row.wrapper] += row.replies if row.provider == first else 0
    shares = {wrapper: mine[wrapper] / n for wrapper, n in total.items()}
    low, high = (pick(shares, key=lambda w: shares[w]) for pick in (min, max))
    if low == high:
        return ""
    return (
        f", {first} from {percent(shares[low], 0)} of {low} to {percent(shares[high], 0)} of {high}"
    )


def _fingerprints(rows: list[_Who]) -> Mapping[str | None, set[str]]:
    found: dict[str | None, set[str]] = defaultdict(set)
    for row in rows:
        if row.fingerprint is not None:
            found[row.provider].add(row.fingerprint)
    return found

"""What a run has cost so far, as its store knows it: where the purse of a new session starts."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from formatspan.spending.pricing import FREE, ModelPrice
from formatspan.spending.purse import MAY_COST, TEMPLATE_TOKENS, Purse
from formatspan.store import Store
from formatspan.study import ModelEntry, Study


def purse_for(
    store: Store, study: Study, limit: float | None, prices: Mapping[str, ModelPrice]
) -> Purse:
    """The purse of a session, with what the run cost so far."""
    credit = float(store.meta(SHARED_COST) or 0.0)
    return Purse(limit, prices, spent_so_far(store, study, prices), credit)


CHECK_COST = "check_cost"
"""Key of the store's facts: what looks at the models before they were asked cost, by label."""
SHARED_COST = "shared_cost"
"""Key of the store's facts: what replies from a shared cache cost the run that asked them."""

_COUNTED = "g.prompt_tokens IS NOT NULL AND g.completion_tokens IS NOT NULL"
_SUMS = f"""
sum(g.cost), sum(CASE WHEN g.cost IS NULL AND {_COUNTED} THEN g.prompt_tokens END),
sum(CASE WHEN g.cost IS NULL AND {_COUNTED} THEN g.completion_tokens END),
sum(g.cost IS NULL AND NOT ({_COUNTED}))
"""
_REPLIES = f"""
SELECT p.model, {_SUMS}
FROM (SELECT request, min(id), model FROM points WHERE copy_of IS NULL GROUP BY request) p
JOIN generations g USING (request) GROUP BY 1
"""
"""A request that several points share is the first one's: the model stands in the row of the
smallest id (https://www.sqlite.org/lang_select.html, bare columns in an aggregate)."""
_FURTHER = f"""
SELECT p.model, {_SUMS} FROM further p JOIN generations g USING (request)
WHERE p.id = (SELECT min(id) FROM further WHERE request = p.request) GROUP BY 1
"""
"""Likelihoods and questions asked again."""

_SIZES = "p.model, count(*), sum(length(CAST(q.messages AS BLOB)))"
_UNCOUNTED = f"""
SELECT {_SIZES} FROM generations g JOIN {{table}} p USING (request)
JOIN prompts q USING (tokenizer, task, example_id, wrapper)
WHERE g.cost IS NULL AND NOT ({_COUNTED})
  AND p.id = (SELECT min(id) FROM {{table}} WHERE request = p.request) GROUP BY 1
"""
_FAILED = f"""
SELECT {_SIZES} FROM failures f JOIN {{table}} p USING (request)
JOIN prompts q USING (tokenizer, task, example_id, wrapper)
WHERE f.kind IN ({", ".join(f"'{kind.value}'" for kind in sorted(MAY_COST))})
  AND p.id = (SELECT min(id) FROM {{table}} WHERE request = p.request) GROUP BY 1
"""


def spent_so_far(store: Store, study: Study, prices: Mapping[str, ModelPrice]) -> dict[str, float]:
    """What each model's replies in a run's store cost, and what its failures may have cost.

    As a purse counted them when they came: replies without a cost by their tokens, those without
    tokens and failures by the most. Requests beside the grid and looks at the models beforehand
    are among them.
    """
    spent = defaultdict(float, checks_cost(store))
    uncounted = 0
    for query in (_REPLIES, _FURTHER):
        for model, cost, prompt, completion, unknown in store.connection.execute(query):
            price = prices.get(model, FREE)
            spent[model] += (cost or 0.0) + price.dollars(prompt or 0, completion or 0)
            uncounted += unknown
    entries = {entry.name: entry for entry in study.models}
    for query in (_FAILED, *((_UNCOUNTED,) if uncounted else ())):
        for table in ("points", "further"):
            for model, count, size in store.connection.execute(query.format(table=table)):
                if model in entries:
                    prompt = size + count * _added(study, entries[model])
                    completion = count * study.sampling(entries[model]).max_tokens
                    spent[model] += prices.get(model, FREE).dollars(prompt, completion)
    return dict(spent)


_UNPRICED = """
SELECT p.model, count(*) FROM points p JOIN generations g USING (request)
WHERE p.copy_of IS NULL AND g.cost IS NULL
  AND p.id = (SELECT min(id) FROM points WHERE request = p.request) GROUP BY 1
"""


def unpriced_replies(store: Store, prices: Mapping[str, ModelPrice]) -> dict[str, int]:
    """Replies that nobody knows the cost of, by model: no endpoint told it, and no price."""
    rows = store.connection.execute(_UNPRICED)
    return {model: number for model, number in rows if model not in prices}


def _added(study: Study, entry: ModelEntry) -> int:
    """Most tokens of a request beside its prompt's text."""
    system = study.system(entry)
    return TEMPLATE_TOKENS * (1 + len(system)) + sum(len(m.content.encode()) for m in system)


def checks_cost(store: Store) -> dict[str, float]:
    """What the looks at each model before it was asked cost, those of all sessions."""
    return {str(m): float(c) for m, c in json.loads(store.meta(CHECK_COST) or "{}").items()}


@contextmanager
def checks_noted(store: Store, purse: Purse) -> Iterator[None]:
    """Note in the store what the looks at models in this block cost, so that resumes know it."""
    before = dict(purse.spent_on)
    try:
        yield
    finally:
        noted = checks_cost(store)
        for model, dollars in purse.spent_on.items():
            if (more := dollars - before.get(model, 0.0)) > 0:
                noted[model] = noted.get(model, 0.0) + more
        if noted != checks_cost(store):
            with store.transaction():
                store.put_meta(CHECK_COST, json.dumps(noted))


def take_shared(store: Store, cache: Path) -> int:
    """Copy replies from a shared cache into a run, which do not count as spent there."""
    before = _stored_cost(store)
    taken = store.take_from(cache)
    if (dollars := _stored_cost(store) - before) > 0:
        with store.transaction():
            total = float(store.meta(SHARED_COST) or 0.0) + dollars
            store.put_meta(SHARED_COST, repr(total))
    return taken


def _stored_cost(store: Store) -> float:
    row = store.connection.execute("SELECT sum(cost) FROM generations").fetchone()
    return float(row[0] or 0.0)

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


def purse_for(store: Store, limit: float | None, prices: Mapping[str, ModelPrice]) -> Purse:
    """The purse of a session, with what the run cost so far."""
    credit = float(store.meta(SHARED_COST) or 0.0)
    return Purse(limit, prices, spent_so_far(store, prices), credit)


CHECK_COST = "check_cost"
"""Key of the store's facts: what looks at the models before they were asked cost, by label."""
SHARED_COST = "shared_cost"
"""Key of the store's facts: what replies from a shared cache cost the run that asked them."""

_FIRST = "p.copy_of IS NULL AND p.id = (SELECT min(id) FROM points WHERE request_id = p.request_id)"
_REPLIES = """
SELECT p.model, sum(g.cost), sum(CASE WHEN g.cost IS NULL THEN g.prompt_tokens END),
  sum(CASE WHEN g.cost IS NULL THEN g.completion_tokens END)
FROM (SELECT request_id, min(id), model FROM points WHERE copy_of IS NULL GROUP BY request_id) p
JOIN generations g USING (request_id) GROUP BY 1
"""
"""A request that several points share is the first one's: the model stands in the row of the
smallest id (https://www.sqlite.org/lang_select.html, bare columns in an aggregate)."""
_FAILED = f"""
SELECT p.model, count(*), sum(q.chars) FROM failures f
JOIN points p USING (request_id) JOIN prompts q USING (tokenizer, task, example_id, wrapper)
WHERE f.kind IN ({", ".join(f"'{kind.value}'" for kind in sorted(MAY_COST))}) AND {_FIRST}
GROUP BY 1
"""


_FURTHER_FIRST = "f.id = (SELECT min(id) FROM further WHERE request_id = f.request_id)"
_FURTHER = f"""
SELECT f.model, sum(g.cost), sum(CASE WHEN g.cost IS NULL THEN g.prompt_tokens END),
  sum(CASE WHEN g.cost IS NULL THEN g.completion_tokens END)
FROM further f JOIN generations g USING (request_id) WHERE {_FURTHER_FIRST} GROUP BY 1
"""
"""Likelihoods and questions asked again."""
_FURTHER_FAILED = f"""
SELECT f.model, count(*), sum(q.chars) FROM failures x
JOIN further f USING (request_id) JOIN prompts q USING (tokenizer, task, example_id, wrapper)
WHERE x.kind IN ({", ".join(f"'{kind.value}'" for kind in sorted(MAY_COST))})
  AND {_FURTHER_FIRST} GROUP BY 1
"""


def spent_so_far(store: Store, prices: Mapping[str, ModelPrice]) -> dict[str, float]:
    """What each model's replies in a run's store cost, and what its failures may have cost.

    Requests beside the grid and looks at the models beforehand are among them.
    """
    spent = defaultdict(float, checks_cost(store))
    for query in (_REPLIES, _FURTHER):
        for model, cost, prompt, completion in store.connection.execute(query):
            price = prices.get(model, FREE)
            spent[model] += (cost or 0.0) + price.dollars(prompt or 0, completion or 0)
    for query in (_FAILED, _FURTHER_FAILED):
        for model, count, chars in store.connection.execute(query):
            most = prices.get(model, FREE).dollars(chars + count * TEMPLATE_TOKENS, 0)
            spent[model] += most
    return dict(spent)


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

"""Keeps a run within a budget: what was spent, what is under way, what the next request may cost.

A request is paid for in three steps: the most that it can cost is reserved before it is sent,
what it did cost is settled when it is answered, and a request whose most does not fit waits
until those under way are settled. If it does not fit then either, the purse is closed for good:
the run asks no more and everything left stays pending.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field

from formatspan.errors import StudyError
from formatspan.pricing import ModelPrice
from formatspan.records import Failure, FailureKind, Generation, Request
from formatspan.store import Store
from formatspan.study import Study

TEMPLATE_TOKENS = 64
"""Most tokens that a chat template adds to a message."""

MAY_COST = frozenset(
    {
        FailureKind.TIMEOUT,
        FailureKind.CONNECTION,
        FailureKind.MALFORMED,
        FailureKind.CONTENT_FILTER,
        FailureKind.INTERNAL,
    }
)
"""Failures after which the endpoint may have made a reply, and charges it."""


def most_tokens(request: Request) -> tuple[int, int]:
    """Most prompt and completion tokens: no tokenizer makes more tokens than bytes."""
    sizes = (len(m.content.encode("utf-8", "replace")) + TEMPLATE_TOKENS for m in request.messages)
    return sum(sizes), request.sampling.max_tokens


@dataclass
class Purse:
    """The money of a run. One event loop uses it.

    Args:
        limit: US dollars that the run may cost in all, earlier sessions included; None for
            no limit, when it only counts.
        prices: Price of each model, by its address.
        spent: What earlier sessions cost.
    """

    limit: float | None
    prices: Mapping[str, ModelPrice]
    spent: float = 0.0
    closed: str | None = None
    """Why nothing more is asked, once that is so."""
    _held: dict[str, float] = field(default_factory=dict)
    _dearer: dict[str, float] = field(default_factory=dict)
    """How many times its price a model's replies have cost at most, by address."""
    _changed: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def reserved(self) -> float:
        """The most that the requests under way can cost."""
        return sum(self._held.values())

    def most(self, request: Request) -> float:
        """The most that ``request`` can cost, in US dollars."""
        price = self.prices.get(request.model)
        if price is None:
            return 0.0
        return price.dollars(*most_tokens(request)) * self._dearer.get(request.model, 1.0)

    def fits(self, dollars: float) -> bool:
        """Whether so much may be spent on top of what is spent and under way."""
        return self.limit is None or self.spent + self.reserved + dollars <= self.limit

    async def reserve(self, request: Request) -> bool:
        """Hold the most that ``request`` can cost; False if it must not be sent.

        Whoever reserves settles, whatever comes of the request.
        """
        while not self.closed:
            if self.fits(self.most(request)):
                self._held[request.id] = self.most(request)
                return True
            if not self._held:
                self.closed = self._reason()
                self._changed.set()
                return False
            self._changed.clear()
            await self._changed.wait()
        return False

    def settle(self, request: Request, outcome: Generation | Failure | None) -> None:
        """Put what ``request`` cost in the place of what was held for it.

        Args:
            request: As reserved.
            outcome: What came of it; None if it was not sent after all.
        """
        held = self._held.pop(request.id, 0.0)
        if isinstance(outcome, Generation):
            self.spent += self._cost(request, outcome, held)
        elif isinstance(outcome, Failure) and outcome.kind in MAY_COST:
            self.spent += held
        self._changed.set()

    def _cost(self, request: Request, reply: Generation, held: float) -> float:
        price = self.prices.get(request.model)
        known = reply.prompt_tokens is not None and reply.completion_tokens is not None
        if not known or price is None:
            return held if reply.cost is None else reply.cost
        by_price = price.dollars(
            reply.prompt_tokens or 0, reply.completion_tokens or 0, reply.cached_tokens or 0
        )
        if reply.cost is None:
            return by_price
        if by_price > 0:
            before = self._dearer.get(request.model, 1.0)
            self._dearer[request.model] = max(before, reply.cost / by_price)
        return reply.cost

    def _reason(self) -> str:
        return (
            f"the next request could exceed the budget of ${self.limit:,.2f}, "
            f"${self.spent:,.4f} of it spent: a larger --max-cost goes on"
        )


def purse_for(
    study: Study, given: Study, store: Store, limit: float | None, prices: Mapping[str, ModelPrice]
) -> Purse:
    """The purse of a session, with what the run cost so far.

    Args:
        study: The whole study of the run.
        given: The part of it that this session asks.
        store: The run's store.
        limit: As `Purse`.
        prices: Known prices, by label.

    Raises:
        StudyError: There is a limit and a model without a known price.
    """
    if limit is not None:
        unknown = [m.name for m in given.models if m.name not in prices]
        if unknown:
            raise StudyError(
                f"--max-cost: no price is known for {', '.join(unknown)}: give 'price' in the "
                "study or --price-file"
            )
    by_address = {m.model: prices[m.name] for m in study.models if m.name in prices}
    return Purse(limit, by_address, spent_so_far(store, prices))


SHARED_COST = "shared_cost"
"""Key of the store's facts: what replies from a shared cache cost the run that asked them."""

_REPLIES = """
SELECT p.model, count(*), sum(g.cost), sum(CASE WHEN g.cost IS NULL THEN g.prompt_tokens END),
  sum(CASE WHEN g.cost IS NULL THEN g.completion_tokens END)
FROM points p JOIN generations g USING (request_id)
WHERE p.copy_of IS NULL AND p.id = (SELECT min(id) FROM points WHERE request_id = p.request_id)
GROUP BY 1
"""
_FAILED = """
SELECT p.model, count(*), sum(q.chars) FROM failures f
JOIN points p USING (request_id) JOIN prompts q USING (tokenizer, task, example_id, wrapper)
WHERE f.kind IN ({}) AND p.copy_of IS NULL
  AND p.id = (SELECT min(id) FROM points WHERE request_id = p.request_id)
GROUP BY 1
"""


def spent_so_far(store: Store, prices: Mapping[str, ModelPrice]) -> float:
    """What the replies in a run's store cost, and what its failures may have cost."""
    total = -float(store.meta(SHARED_COST) or 0.0)
    for model, _, cost, prompt, completion in store.connection.execute(_REPLIES):
        total += cost or 0.0
        if model in prices:
            total += prices[model].dollars(prompt or 0, completion or 0)
    kinds = ", ".join(f"'{kind.value}'" for kind in sorted(MAY_COST))
    for model, count, chars in store.connection.execute(_FAILED.format(kinds)):
        if model in prices:
            total += prices[model].dollars(chars + count * TEMPLATE_TOKENS, 0)
    return max(0.0, total)

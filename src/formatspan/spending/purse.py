"""Keeps a run within a budget: what was spent, what is under way, what the next request may cost.

A request is paid for in steps: the most that it can cost is reserved before it is sent, what it
did cost is settled when it is answered, and a request whose most does not fit waits until those
under way are settled. If it does not fit then either, the purse is closed for good: the run asks
no more, and everything left stays pending.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field

from msgspec.structs import replace

from formatspan.errors import StudyError
from formatspan.records import Failure, FailureKind, Generation, Request
from formatspan.spending.pricing import FREE, ModelPrice
from formatspan.study import Study

TEMPLATE_TOKENS = 64
"""Most tokens that a chat template adds to a message."""

MAY_COST = frozenset(
    {
        FailureKind.TIMEOUT,
        FailureKind.CONNECTION,  # stores of before there was another kind for those that end early
        FailureKind.CUT_OFF,
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
    """The money of a run, by model label. One event loop uses it."""

    limit: float | None = None
    """US dollars that the run may cost in all, earlier sessions included; None only counts."""
    prices: Mapping[str, ModelPrice] = field(default_factory=dict)
    spent_on: dict[str, float] = field(default_factory=dict)
    """What each model's replies cost, those of earlier sessions included."""
    credit: float = 0.0
    """What of it another run paid, whose replies came from a shared cache."""
    closed: str | None = None
    """Why nothing more is asked, once that is so."""
    _held: dict[str, float] = field(default_factory=dict)
    _dearer: dict[str, float] = field(default_factory=dict)
    """How many times its price a model's replies have cost at most."""
    _changed: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def spent(self) -> float:
        """What the run cost so far, in US dollars."""
        return sum(self.spent_on.values()) - self.credit

    @property
    def reserved(self) -> float:
        """The most that the requests under way can cost."""
        return sum(self._held.values())

    def most(self, model: str, request: Request) -> float:
        """The most that ``request`` can cost, in US dollars; 0 without a price."""
        price = self.prices.get(model)
        if price is None:
            return 0.0
        prompt, completion = most_tokens(request)
        return price.dollars(prompt, completion) * self._dearer.get(model, 1.0)

    def fits(self, dollars: float) -> bool:
        """Whether so much may be spent on top of what is spent and under way."""
        return self.limit is None or self.spent + self.reserved + dollars <= self.limit

    def reserve_now(self, model: str, request: Request) -> bool:
        """Hold the most that ``request`` can cost, if it fits at once."""
        most = self.most(model, request)
        if self.closed or not self.fits(most):
            return False
        self._held[request.id] = most
        return True

    async def reserve(self, model: str, request: Request) -> bool:
        """Hold the most that ``request`` can cost; False if it must not be sent.

        Whoever reserves settles, whatever comes of the request.
        """
        while not self.closed:
            if self.reserve_now(model, request):
                return True
            if not self._held:
                self.close()
                return False
            self._changed.clear()
            await self._changed.wait()
        return False

    def close(self) -> None:
        """Let nothing more be asked, and say why."""
        self.closed = (
            f"the next request could exceed the budget of ${self.limit:g}, of which "
            f"${self.spent:.4g} is spent: a larger --max-cost goes on"
        )
        self._changed.set()

    def settle(
        self, model: str, request: Request, outcome: Generation | Failure | None
    ) -> Generation | Failure | None:
        """Put what ``request`` cost in the place of what was held for it.

        Args:
            model: Label of the model.
            request: As reserved.
            outcome: What came of it; None if it was not sent after all.

        Returns:
            The outcome; a reply of unknown cost with the cost that a stated price gives.
        """
        held = self._held.pop(request.id, 0.0)
        if isinstance(outcome, Generation):
            if model in self.prices:
                outcome = self.priced(model, outcome)
            self.spend(model, self._cost(model, outcome, held))
        elif isinstance(outcome, Failure) and outcome.attempts and outcome.kind in MAY_COST:
            self.spend(model, held)
        self._changed.set()
        return outcome

    def priced(self, model: str, reply: Generation) -> Generation:
        """``reply`` with its cost, where the endpoint told none and a price says it."""
        price = self.prices.get(model)
        dollars = None if price is None else _by_price(price, reply)
        if price is None or dollars is None:
            return reply
        if reply.cost is None and price is not FREE and not price.shipped:
            return replace(reply, cost=dollars, cost_source="price")
        if reply.cost is not None and dollars > 0:
            self._dearer[model] = max(self._dearer.get(model, 1.0), reply.cost / dollars)
        return reply

    def _cost(self, model: str, reply: Generation, held: float) -> float:
        if reply.cost is not None:
            return reply.cost
        price = self.prices.get(model)
        dollars = _by_price(price, reply) if price else None
        return held if dollars is None else dollars

    def spend(self, model: str, dollars: float) -> None:
        """Count what was charged."""
        self.spent_on[model] = self.spent_on.get(model, 0.0) + dollars

    def hold(self, key: str, dollars: float) -> None:
        """Hold a sum until it is released, as for a batch under way."""
        self._held[key] = dollars

    def release(self, key: str) -> None:
        """Hold it no longer."""
        self._held.pop(key, None)
        self._changed.set()


def _by_price(price: ModelPrice, reply: Generation) -> float | None:
    if reply.prompt_tokens is None or reply.completion_tokens is None:
        return None
    cached = min(reply.cached_tokens or 0, reply.prompt_tokens)
    return price.dollars(reply.prompt_tokens, reply.completion_tokens, cached)


def check_priced(given: Study, limit: float | None, prices: Mapping[str, ModelPrice]) -> None:
    """Refuse a limit that cannot be kept.

    Args:
        given: What is to be asked.
        limit: As `Purse`.
        prices: Known prices, by label.

    Raises:
        StudyError: It is no amount, or a model has no known price.
    """
    if limit is None:
        return
    if not 0 < limit < float("inf"):
        raise StudyError(f"--max-cost: expected US dollars above 0, got {limit:g}")
    unknown = [m.name for m in given.models if m.name not in prices]
    if unknown:
        raise StudyError(
            f"--max-cost: no price is known for {', '.join(unknown)}: give 'price' in the study "
            "or --price-file"
        )

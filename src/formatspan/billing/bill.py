"""The bill of a study: what would be asked, what it costs and takes, what it can tell."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from formatspan.billing.tokens import Counted
from formatspan.spending.pricing import ModelPrice


@dataclass(frozen=True, slots=True)
class WrapperBill:
    """What is still to be asked of one model under one wrapper."""

    wrapper: str
    requests: int
    prompt_tokens: int
    completion_tokens: int


@dataclass(frozen=True, slots=True)
class ModelBill:
    """What one model would be asked. Tokens and costs are of what is still to be asked."""

    model: str
    points: int
    """Places of the grid."""
    copies: int
    """Places among them that repeat a deterministic reply and are not asked."""
    shared: int
    """Places whose request another place asks already."""
    answered: int
    """Requests whose reply the run has."""
    requests: int
    """Requests still to be asked."""
    prompt_tokens: int
    completion_tokens: int
    """Expected: the mean of the replies that the run has, else as many as are allowed."""
    completion_tokens_most: int
    """If every reply is as long as ``max_tokens`` allows."""
    counted: Counted
    """What prompt tokens rest on."""
    price: ModelPrice | None
    cost: float | None
    """Expected, in US dollars; None without a price."""
    cost_most: float | None
    spent: float
    """What the run paid for this model: replies, failures that may cost, looks beforehand; by the
    price now known where the endpoint named no cost."""
    uncounted: int
    """Replies of the run whose cost nobody knows; ``spent`` lacks them."""
    cached_tokens: int
    """Prompt tokens of the run's replies that the endpoint took from its cache."""
    in_flight: int
    latency_s: float
    latency_measured: bool
    pace: float | None
    """Replies a second that the run has measured; None where it has not, or another concurrency
    is asked about."""
    seconds: float
    """By the pace where there is one, else requests in flight over latency; of a batch, how long it
    may take at most."""
    pinned: bool
    """Whether one provider answers; False behind a router that may choose."""
    wrappers: tuple[WrapperBill, ...]


@dataclass(frozen=True, slots=True)
class Power:
    """What so many examples can tell; fractions of 1, None where there is no range."""

    examples: Mapping[str, int]
    """By task."""
    wrappers: int
    draws: int
    smallest_task: float | None
    """Smallest FSI of one task that is told from noise (95% max-T)."""
    smallest_mean: float | None
    """The same for a model's mean FSI."""
    fsi: float
    needed_task: int | None
    """Examples of a task for which an FSI of ``fsi`` there is told from noise."""
    needed_mean: int | None
    """Examples of each task for which a mean FSI of ``fsi`` is."""


@dataclass(frozen=True, slots=True)
class Plan:
    """The bill of a study."""

    study: str
    models: tuple[ModelBill, ...]
    power: Power
    batch: bool
    """Priced as batches."""
    spent: float
    """US dollars that the whole run has cost so far, as a run of it says."""
    notes: tuple[str, ...]
    """What is estimated, and what to beware of."""

    @property
    def requests(self) -> int:
        """Requests still to be asked."""
        return sum(m.requests for m in self.models)

    @property
    def points(self) -> int:
        """Generations that the study asks for."""
        return sum(m.points for m in self.models)

    @property
    def cost(self) -> float | None:
        """Expected, in US dollars; None if a model with something to ask has no price."""
        return _total([m.cost for m in self.models if m.requests])

    @property
    def cost_most(self) -> float | None:
        """The most it can be at these prices."""
        return _total([m.cost_most for m in self.models if m.requests])

    @property
    def unpriced(self) -> tuple[str, ...]:
        """Models with something to ask and no known price."""
        return tuple(m.model for m in self.models if m.requests and m.price is None)

    @property
    def seconds(self) -> float:
        """Time that asking takes, endpoints side by side; for batches the longest it can."""
        return max((m.seconds for m in self.models), default=0.0)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        totals = ("points", "requests", "cost", "cost_most", "unpriced", "seconds")
        return {**asdict(self), **{name: getattr(self, name) for name in totals}}


def _total(parts: Sequence[float | None]) -> float | None:
    return None if any(p is None for p in parts) else sum(p or 0.0 for p in parts)

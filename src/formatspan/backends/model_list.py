"""What an endpoint says of its models: ``GET {base}/models``.

OpenAI and local servers list names only; OpenRouter adds prices in US dollars per token
(https://openrouter.ai/docs/api-reference/list-available-models).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from formatspan.backends.raw import RawEndpoint, Unreachable


@dataclass(frozen=True, slots=True)
class Listed:
    """One model of an endpoint's list; prices in US dollars per million tokens."""

    name: str
    prompt: float | None = None
    completion: float | None = None
    cached: float | None = None
    parameters: tuple[str, ...] | None = None
    """Parameters that it takes; None where the endpoint does not say."""


class NoList(Exception):
    """The endpoint gave no list; the text says why."""


async def listed_models(endpoint: RawEndpoint) -> dict[str, Listed]:
    """The endpoint's models by name.

    Raises:
        NoList: It cannot be reached, refused, or does not list its models.
    """
    try:
        reply = await endpoint.ask("GET", "/models")
    except Unreachable as error:
        raise NoList(str(error)) from None
    if not reply.ok:
        raise NoList(reply.said)
    found = models_in(reply.json())
    if not found:
        raise NoList("its list of models is empty or not in the usual form")
    return found


def models_in(data: object) -> dict[str, Listed]:
    """The models in a list's body; what is malformed is left out."""
    rows = data.get("data") if isinstance(data, Mapping) else data
    found = (_listed(row) for row in rows) if isinstance(rows, list) else ()
    return {model.name: model for model in found if model is not None}


def _listed(row: object) -> Listed | None:
    if not isinstance(row, Mapping) or not isinstance(row.get("id"), str):
        return None
    pricing = row.get("pricing")
    prices = pricing if isinstance(pricing, Mapping) else {}
    known = row.get("supported_parameters")
    return Listed(
        row["id"],
        _per_million(prices.get("prompt")),
        _per_million(prices.get("completion")),
        _per_million(prices.get("input_cache_read")),
        tuple(str(p) for p in known) if isinstance(known, list) else None,
    )


def _per_million(value: object) -> float | None:
    """Dollars per token, written as text or a number; a router's -1 means unknown."""
    try:
        price = float(value) if isinstance(value, str | int | float) else math.nan
    except ValueError:
        return None
    return round(price * 1e6, 9) if 0 <= price < 1 else None

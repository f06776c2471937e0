"""Which provider behind a router answers: the key ``provider`` of a model in a study file.

The fields are those of OpenRouter's provider routing
(https://openrouter.ai/docs/features/provider-routing); they are sent as they stand. One model
name can be several deployments there, of other precision and with other chat templates, so a
study that compares wrappers wants one of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

ROUTERS = frozenset({"openrouter"})
"""Schemes behind which several providers may answer for one model."""

KEY = "provider"
"""Key of a model's entry, and of the request's body."""

Quantization = Literal["int4", "int8", "fp4", "fp6", "fp8", "fp16", "bf16", "fp32", "unknown"]


class Routing(BaseModel):
    """Whom a router may hand the requests of a model to."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    order: tuple[str, ...] | None = Field(default=None, min_length=1)
    """Providers to try first, in this order."""
    only: tuple[str, ...] | None = Field(default=None, min_length=1)
    """Providers that may answer at all."""
    ignore: tuple[str, ...] | None = Field(default=None, min_length=1)
    allow_fallbacks: bool | None = None
    """Whether others may answer when those of ``order`` cannot."""
    require_parameters: bool | None = None
    """Only providers that know every parameter sent; others drop what they do not know."""
    quantizations: tuple[Quantization, ...] | None = Field(default=None, min_length=1)
    """Precisions that are good enough."""
    data_collection: Literal["allow", "deny"] | None = None
    zdr: bool | None = None
    """Only providers that retain nothing."""
    sort: Literal["price", "throughput", "latency"] | None = None
    max_price: dict[Literal["prompt", "completion"], float] | None = None
    """Most that is paid, in US dollars per million tokens."""

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        if not self.sent():
            raise ValueError("expected at least one of order, only, quantizations and so on")
        return self

    def sent(self) -> dict[str, Any]:
        """The object in the request's body."""
        return self.model_dump(mode="json", exclude_none=True)


def is_pinned(scheme: str, sent: Mapping[str, Any] | None) -> bool:
    """Whether all replies come from one provider.

    Args:
        scheme: The model's scheme; one that is no router has a single provider.
        sent: What the body says under ``provider``.
    """
    if scheme not in ROUTERS:
        return True
    rules = sent if isinstance(sent, Mapping) else {}
    only, order = rules.get("only") or (), rules.get("order") or ()
    return len(only) == 1 or (len(order) == 1 and rules.get("allow_fallbacks") is False)


UNPINNED = (
    "several providers may answer for it, with other precisions and templates, which can look "
    "like an effect of format; pin one with provider: {only: [NAME]}"
)
"""What an unpinned model means for a study."""

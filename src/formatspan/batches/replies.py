"""From a line of a batch's output to a reply or a failure."""

from __future__ import annotations

from formatspan.backends.batch_api import Answered
from formatspan.backends.chat_fault import Fault
from formatspan.backends.chat_reply import Reply, generation_of, parse_reply
from formatspan.moments import utc_now
from formatspan.records import Failure, FailureKind, Generation
from formatspan.spending.pricing import BATCH_DISCOUNT, ModelPrice


def outcome_of(row: Answered, price: ModelPrice | None) -> Generation | Failure:
    """The reply in a line, priced at the discount where the endpoint tells no cost, or why not."""
    at = utc_now()
    if row.error is not None:
        return Failure(row.request_id, FailureKind.SERVER, row.error, at=at)
    parsed = parse_reply(row.status, {}, row.body)
    if isinstance(parsed, Fault):
        return Failure(row.request_id, parsed.kind, parsed.message, at=at, fatal=parsed.fatal)
    return _generation(row, parsed, price, at)


def _generation(row: Answered, reply: Reply, price: ModelPrice | None, at: str) -> Generation:
    usage = reply.usage
    cost, source = usage.cost, "endpoint"
    known = usage.prompt_tokens is not None and usage.completion_tokens is not None
    if cost is None and price is not None and known and not price.shipped:
        tokens = (usage.prompt_tokens or 0, usage.completion_tokens or 0, usage.cached_tokens or 0)
        cost, source = price.scaled(BATCH_DISCOUNT).dollars(*tokens), "price"
    return generation_of(
        reply,
        request_id=row.request_id,
        started_at=at,
        cost=cost,
        cost_source=source if cost is not None else None,
        body=row.body,
    )

"""OpenAI's Batch API: requests as a file, replies as a file within a day, at half the price.

The shapes are those of https://platform.openai.com/docs/api-reference/batch: a line of the input
is ``{"custom_id", "method", "url", "body"}``, a line of the output ``{"custom_id", "response":
{"status_code", "body"}, "error"}``; requests that failed or expired are in a file of their own.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import Any, NamedTuple

import msgspec

from formatspan.backends.base import ModelSpec
from formatspan.backends.chat_fault import clip
from formatspan.backends.chat_request import chat_body
from formatspan.backends.raw import RawEndpoint, RawReply, Unreachable
from formatspan.records import Request

URL = "/v1/chat/completions"
WINDOW = "24h"
TOKEN_KEY = "formatspan"
"""Key of a batch's metadata by which a client that was killed finds it again."""
ATTEMPTS = 5
"""Times that the endpoint is asked before its silence is taken for an answer."""
NO_ROUTE = frozenset({404, 405, 501})
"""Statuses of an endpoint that knows no files or batches at all."""
NO_BATCHES = "this endpoint has no Batch API: leave --batch out to ask one by one"
PAGES = 20
"""Pages of the list of batches that are searched."""

Sleep = Callable[[float], Awaitable[object]]


class BatchState(NamedTuple):
    """A batch as the endpoint describes it."""

    id: str
    status: str
    output_file: str | None
    error_file: str | None
    errors: str
    """Why the whole batch was refused, if it was."""

    @property
    def is_over(self) -> bool:
        """Whether nothing more comes."""
        return self.status in ("completed", "failed", "expired", "cancelled")


class Answered(NamedTuple):
    """One line of a batch's output."""

    request_id: str
    status: int
    body: bytes
    """As of a single reply."""
    error: str | None
    """What the endpoint says instead of a reply."""
    expired: bool
    """It was not worked on: the request may be asked again."""


class BatchRefused(Exception):
    """The endpoint does not do as asked; the text says why, secrets removed.

    Args:
        said: Why.
        certain: Whether it is known that no batch was made.
    """

    def __init__(self, said: str, *, certain: bool = True) -> None:
        self.certain = certain
        super().__init__(said)


def input_line(spec: ModelSpec, request: Request) -> bytes:
    """A request as a line of a batch's input, its end included."""
    body = chat_body(spec, request)
    line = {"custom_id": request.id, "method": "POST", "url": URL, "body": body}
    # ASCII: nothing in it is taken for the end of a line.
    return json.dumps(msgspec.to_builtins(line)).encode() + b"\n"


class BatchApi:
    """The calls of the Batch API, asked again where that can help.

    Args:
        endpoint: Where.
        sleep: What waits between attempts.
    """

    def __init__(self, endpoint: RawEndpoint, sleep: Sleep) -> None:
        self._endpoint, self._sleep = endpoint, sleep

    async def upload(self, content: bytes) -> str:
        """Upload the input of a batch; returns the file's id."""
        reply = await self._ask(
            "POST", "/files", upload=("batch.jsonl", content), fields={"purpose": "batch"}
        )
        return _text(reply, "id")

    async def create(self, file_id: str, token: str) -> BatchState:
        """Start a batch, once: after a lost reply it is looked for before it is made again."""
        body = {
            "input_file_id": file_id,
            "endpoint": URL,
            "completion_window": WINDOW,
            "metadata": {TOKEN_KEY: token},
        }
        for attempt in range(ATTEMPTS):
            try:
                reply = await self._endpoint.ask("POST", "/batches", body=body)
                if reply.ok:
                    return _state(reply.json())
                if reply.status in NO_ROUTE:
                    raise BatchRefused(_without_batches(reply))
                if not _heals(reply.status):
                    raise BatchRefused(reply.said)
            except Unreachable:
                pass
            await self._sleep(2.0**attempt)
            try:
                made = await self.find(token)
            except BatchRefused as error:
                raise BatchRefused(str(error), certain=False) from None
            if made is not None:
                return made
        raise BatchRefused("no batch could be made")

    async def look(self, batch_id: str) -> BatchState | None:
        """How a batch stands, or None if the endpoint does not say at the moment."""
        try:
            reply = await self._endpoint.ask("GET", f"/batches/{batch_id}")
        except Unreachable:
            return None
        if not reply.ok:
            if _heals(reply.status):
                return None
            raise BatchRefused(reply.said)
        return _state(reply.json())

    async def find(self, token: str) -> BatchState | None:
        """The batch that was made with ``token``, if there is one."""
        after = ""
        for _ in range(PAGES):
            reply = await self._ask("GET", f"/batches?limit=100{after}")
            data = reply.json()
            rows = data.get("data") if isinstance(data, Mapping) else None
            found = [r for r in rows if isinstance(r, Mapping)] if isinstance(rows, list) else []
            for row in found:
                metadata = row.get("metadata")
                if isinstance(metadata, Mapping) and metadata.get(TOKEN_KEY) == token:
                    return _state(row)
            if not found or not data.get("has_more"):
                return None
            after = f"&after={found[-1].get('id')}"
        return None

    async def fetch(self, file_id: str) -> bytes:
        """The content of a file."""
        return (await self._ask("GET", f"/files/{file_id}/content")).body

    async def _ask(self, method: str, path: str, **sent: Any) -> RawReply:  # noqa: ANN401
        said = ""
        for attempt in range(ATTEMPTS):
            try:
                reply = await self._endpoint.ask(method, path, **sent)
                said = reply.said
                if reply.ok:
                    return reply
                if reply.status in NO_ROUTE and path.partition("?")[0] in ("/files", "/batches"):
                    raise BatchRefused(_without_batches(reply))
                if not _heals(reply.status):
                    break
            except Unreachable as error:
                said = str(error)
            await self._sleep(2.0**attempt)
        raise BatchRefused(said)


def answered(content: bytes) -> Iterator[Answered]:
    """The lines of an output or error file; what is malformed is left out."""
    for line in content.splitlines():
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(row, Mapping) and isinstance(row.get("custom_id"), str):
            yield _answered(row)


def _answered(row: Mapping[str, Any]) -> Answered:
    response, error = row.get("response"), row.get("error")
    if isinstance(response, Mapping):
        status, body = response.get("status_code"), response.get("body")
        return Answered(
            row["custom_id"],
            status if isinstance(status, int) else 200,
            body.encode() if isinstance(body, str) else json.dumps(body).encode(),
            None,
            expired=False,
        )
    code = str(error.get("code", "")) if isinstance(error, Mapping) else ""
    text = error.get("message") if isinstance(error, Mapping) else error
    unasked = code in ("batch_expired", "batch_cancelled")
    return Answered(row["custom_id"], 0, b"", clip(f"{code}: {text}"), unasked)


def _heals(status: int) -> bool:
    return status in (408, 409, 425, 429) or status >= 500


def _without_batches(reply: RawReply) -> str:
    return f"{NO_BATCHES} (HTTP {reply.status})"


def _state(data: object) -> BatchState:
    if not isinstance(data, Mapping) or not isinstance(data.get("id"), str):
        raise BatchRefused("the endpoint describes no batch: it does not speak the Batch API")
    errors = data.get("errors")
    rows = errors.get("data") if isinstance(errors, Mapping) else None
    said = [str(r.get("message")) for r in rows or () if isinstance(r, Mapping)]
    return BatchState(
        data["id"],
        str(data.get("status")),
        _maybe(data.get("output_file_id")),
        _maybe(data.get("error_file_id")),
        clip("; ".join(said[:3])),
    )


def _maybe(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def _text(reply: RawReply, key: str) -> str:
    data = reply.json()
    value = data.get(key) if isinstance(data, Mapping) else None
    if not isinstance(value, str):
        raise BatchRefused("the endpoint took no file: it does not speak the Batch API")
    return value

"""Requests to an endpoint besides chat completions: its model list, its files and batches.

Same base URL, headers and redaction as `formatspan.backends.openai_chat`; no redirect is
followed, since the key must not reach another host.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from formatspan.backends.base import ModelSpec
from formatspan.backends.chat_fault import clip
from formatspan.backends.chat_request import endpoint, headers_of
from formatspan.backends.http_client import Bounds, HttpClient
from formatspan.backends.http_trouble import Broken
from formatspan.backends.openai_chat import (
    OPENAI_KEY,
    OPENAI_URL,
    OPENROUTER_KEY,
    OPENROUTER_URL,
)
from formatspan.backends.redaction import Redactor
from formatspan.errors import BackendError

HTTP_SCHEMES: Mapping[str, tuple[str, str]] = {
    "openai": (OPENAI_URL, OPENAI_KEY),
    "openrouter": (OPENROUTER_URL, OPENROUTER_KEY),
}
"""Schemes of endpoints: base URL and key variable where the entry names none."""

MOST_BYTES = 512 << 20
"""Longest body that is read: the output of a whole batch."""


class RawReply(NamedTuple):
    """A response, secrets removed."""

    status: int
    headers: Mapping[str, str]
    """Names in lower case."""
    body: bytes

    @property
    def ok(self) -> bool:
        """Whether the status says success."""
        return 200 <= self.status < 300

    def json(self) -> Any:  # noqa: ANN401 - JSON has no narrower type
        """The body as JSON, or None if it is none."""
        try:
            return json.loads(self.body.decode("utf-8-sig"))
        except (ValueError, RecursionError):
            return None

    @property
    def said(self) -> str:
        """Status and what the body says of it, on one line."""
        data = self.json()
        error = data.get("error") if isinstance(data, dict) else None
        text = error.get("message") if isinstance(error, dict) else error
        return clip(f"HTTP {self.status}: {text or self.body[:300].decode('utf-8', 'replace')}")


class Unreachable(Exception):
    """The endpoint gave no whole response; the text says why, secrets removed."""


class RawEndpoint:
    """An endpoint of an OpenAI-compatible model, for what is no chat completion.

    Args:
        spec: The model's entry; its scheme is one of `HTTP_SCHEMES`.
        timeout_s: Seconds for a whole request.

    Raises:
        BackendError: The base URL or a header is malformed, or a variable is not set.
    """

    def __init__(self, spec: ModelSpec, *, timeout_s: float = 60.0) -> None:
        base_url, key_env = HTTP_SCHEMES[spec.scheme]
        own = spec.base_url is not None
        self.base = endpoint(spec.base_url or base_url).removesuffix("/chat/completions")
        self._headers, secrets = headers_of(spec, spec.api_key_env or (None if own else key_env))
        self._redactor = Redactor(secrets)
        self._path = urlsplit(self.base).path
        self._bounds = Bounds(min(timeout_s, 15.0), timeout_s, timeout_s, MOST_BYTES)
        self._client: HttpClient | None = None

    async def ask(
        self,
        method: str,
        path: str,
        *,
        body: object = None,
        upload: tuple[str, bytes] | None = None,
        fields: Mapping[str, str] | None = None,
    ) -> RawReply:
        """One request.

        Args:
            method: ``GET`` or ``POST``.
            path: After the base URL, from its slash on.
            body: Sent as JSON.
            upload: File name and content, sent as a form with ``fields``.
            fields: Further fields of the form.

        Raises:
            Unreachable: No whole response came.
        """
        client, where = self._opened(), self._path + path
        try:
            if upload is not None:
                found = await client.upload(where, upload, fields or {})
            else:
                data = b"" if body is None else json.dumps(body).encode()
                found = await client.send(method, where, data)
        except Broken as error:
            raise Unreachable(clip(self._redactor.text(str(error)))) from None
        return RawReply(found.status, found.headers, self._redactor.body(found.body))

    async def aclose(self) -> None:
        """Close the connections."""
        if self._client is not None:
            await self._client.aclose()
            self._client = None

    def _opened(self) -> HttpClient:
        if self._client is None:
            self._client = HttpClient(self.base, self._headers, self._bounds)
        return self._client


def raw_endpoint(spec: ModelSpec, *, timeout_s: float = 60.0) -> RawEndpoint | None:
    """The endpoint of a model, or None where it has none or cannot be used (no key, say)."""
    if spec.scheme not in HTTP_SCHEMES:
        return None
    try:
        return RawEndpoint(spec, timeout_s=timeout_s)
    except BackendError:
        return None

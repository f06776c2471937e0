"""Any OpenAI-compatible chat endpoint: OpenAI, OpenRouter, vLLM, llama.cpp and others.

One request is one ``POST {base}/chat/completions``
(https://platform.openai.com/docs/api-reference/chat/create); only what can heal is asked
again. The key travels in the ``Authorization`` header and is taken out of everything that
comes back.
"""

from __future__ import annotations

import asyncio
import json
import time
import zlib
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

import aiohttp
from tenacity import AsyncRetrying, RetryCallState, retry_if_result
from tenacity.wait import wait_random_exponential

from formatspan._version import __version__
from formatspan.backends.base import Capabilities, ModelSpec, Tokenizer
from formatspan.backends.chat_constraint import constraint_types, dialect_of
from formatspan.backends.chat_fault import Fault, clip
from formatspan.backends.chat_reply import Reply, parse_reply
from formatspan.backends.chat_request import chat_body, check_extra_body, endpoint, headers_of
from formatspan.backends.redaction import Redactor
from formatspan.errors import BackendError
from formatspan.records import Failure, FailureKind, Generation, Request

Sleep = Callable[[float], Awaitable[None]]

OPENAI_URL, OPENAI_KEY = "https://api.openai.com/v1", "OPENAI_API_KEY"
OPENROUTER_URL, OPENROUTER_KEY = "https://openrouter.ai/api/v1", "OPENROUTER_API_KEY"


@dataclass(frozen=True, slots=True)
class Limits:
    """How long and how often an endpoint is asked for one reply."""

    attempts: int = 5
    """Times that a request is sent at most."""
    timeout_attempts: int = 3
    """The same after timeouts: what took too long once will again."""
    budget_s: float = 900.0
    """Seconds after which no attempt starts."""
    connect_s: float = 15.0
    whole_s: float = 300.0
    """Seconds for one attempt, from its start to the last byte."""
    body_bytes: int = 16 << 20
    """Longest body that is read, decompressed."""
    backoff_s: float = 2.0
    """First window of the full jitter; it doubles with each attempt."""
    backoff_cap_s: float = 30.0
    asked_jitter_s: float = 10.0
    """Longest jitter added to a wait that the endpoint asked for."""


def open_openai(spec: ModelSpec) -> OpenAIChat:
    """The model behind OpenAI's endpoint, or behind ``base_url``.

    Without ``base_url`` the key is in ``OPENAI_API_KEY`` unless ``api_key_env`` says otherwise;
    with it no key is sent unless ``api_key_env`` is given, since it is another host's.

    Raises:
        BackendError: No model is named, the URL or a header is malformed, or a variable that
            holds a key is not set.
    """
    key_env = spec.api_key_env or (OPENAI_KEY if spec.base_url is None else None)
    return OpenAIChat(spec, spec.base_url or OPENAI_URL, key_env)


def open_openrouter(spec: ModelSpec) -> OpenAIChat:
    """A model behind OpenRouter: `open_openai` with its URL and ``OPENROUTER_API_KEY``."""
    key_env = spec.api_key_env or (OPENROUTER_KEY if spec.base_url is None else None)
    return OpenAIChat(spec, spec.base_url or OPENROUTER_URL, key_env)


class OpenAIChat:
    """A model behind an OpenAI-compatible chat endpoint.

    Args:
        spec: The model's entry.
        base_url: Where the API is; ``/chat/completions`` is added.
        key_env: Variable that holds the key; None sends none.
        limits: Timeouts, attempts, and the body's longest size.
        sleep: What waits between attempts.

    Raises:
        BackendError: As `open_openai`.
    """

    def __init__(
        self,
        spec: ModelSpec,
        base_url: str,
        key_env: str | None,
        *,
        limits: Limits | None = None,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        self._spec, self._limits, self._sleep = spec, limits or Limits(), sleep
        if not spec.target:
            raise BackendError(f"model {spec.address!r}: expected a model's name after the colon")
        check_extra_body(spec.extra_body)
        self._url, self._key_env = endpoint(base_url), key_env
        self._headers, secrets = headers_of(spec, key_env)
        self._redactor = Redactor(secrets)
        self._session: aiohttp.ClientSession | None = None

    @property
    def capabilities(self) -> Capabilities:
        """Constraints where the dialect is known; a seed is sent, but may be ignored."""
        return Capabilities(constraints=constraint_types(dialect_of(self._spec)))

    def tokenizer(self) -> Tokenizer | None:
        """None: the endpoint's tokenizer is not at hand."""
        return None

    def describe(self) -> dict[str, str]:
        """Facts for the run's record; the key's variable, never the key."""
        return {
            "backend": "openai_chat",
            "formatspan": __version__,
            "aiohttp": aiohttp.__version__,
            "url": self._url,
            "model": self._spec.target,
            "key": self._key_env or "none",
        }

    async def generate(self, request: Request) -> Generation | Failure:
        """Ask until a reply comes, a fault is final, or the attempts are used up."""
        held = request.constraint
        if request.kind != "generate" or (
            held is not None and held.type not in self.capabilities.constraints
        ):
            text = f"this backend cannot serve {request.mode} requests of kind {request.kind}"
            return _failure(request, Fault(FailureKind.INTERNAL, text, fatal=True), 0)
        ask = _Ask(request.id, json.dumps(chat_body(self._spec, request)).encode())
        outcome: Generation | Fault = await self._retrying()(self._attempt, ask)
        if isinstance(outcome, Fault):
            return _failure(request, outcome, ask.attempts)
        return outcome

    async def aclose(self) -> None:
        """Close the connections."""
        if self._session is not None:
            await self._session.close()
            self._session = None

    def _retrying(self) -> AsyncRetrying:
        return AsyncRetrying(
            sleep=self._sleep,
            stop=self._is_enough,
            wait=self._wait_s,
            retry=retry_if_result(lambda outcome: isinstance(outcome, Fault) and outcome.retry),
            retry_error_callback=_outcome,
        )

    def _is_enough(self, state: RetryCallState) -> bool:
        limits, fault = self._limits, _outcome(state)
        timed_out = isinstance(fault, Fault) and fault.kind is FailureKind.TIMEOUT
        most = min(limits.attempts, limits.timeout_attempts) if timed_out else limits.attempts
        spent_s = (state.seconds_since_start or 0.0) + state.upcoming_sleep
        return state.attempt_number >= most or spent_s >= limits.budget_s

    def _wait_s(self, state: RetryCallState) -> float:
        # Full jitter: https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/
        limits, fault = self._limits, _outcome(state)
        asked_s = fault.wait_s if isinstance(fault, Fault) else None
        cap_s = limits.backoff_cap_s if asked_s is None else limits.asked_jitter_s
        jitter = wait_random_exponential(multiplier=limits.backoff_s, max=cap_s)
        return (asked_s or 0.0) + jitter(state)

    async def _attempt(self, ask: _Ask) -> Generation | Fault:
        ask.attempts += 1
        ask.started_at, started = _now(), time.perf_counter()
        try:
            status, headers, body = await self._post(ask.body)
        except _TooLong as error:
            return Fault(FailureKind.MALFORMED, str(error))
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            return self._broken(error)
        latency_s = time.perf_counter() - started
        body = self._redactor.body(body)
        parsed = parse_reply(status, headers, body)
        if isinstance(parsed, Fault):
            return self._redacted(parsed)
        return self._generation(ask, parsed, body, latency_s)

    async def _post(self, data: bytes) -> tuple[int, Mapping[str, str], bytes]:
        session = self._opened()
        # A redirect would hand the key and the prompt to another host.
        async with session.post(
            self._url, data=data, headers=self._headers.reveal(), allow_redirects=False
        ) as response:
            body = bytearray()
            async for chunk in response.content.iter_any():
                body += chunk
                if len(body) > self._limits.body_bytes:
                    raise _TooLong(f"a body of more than {self._limits.body_bytes} bytes")
            return response.status, response.headers, bytes(body)

    def _opened(self) -> aiohttp.ClientSession:
        # Made at the first request: a session belongs to the running event loop.
        if self._session is None:
            self._session = aiohttp.ClientSession(
                # How many requests are in flight is the runner's decision.
                connector=aiohttp.TCPConnector(limit=0),
                cookie_jar=aiohttp.DummyCookieJar(),
                timeout=aiohttp.ClientTimeout(
                    total=self._limits.whole_s, sock_connect=self._limits.connect_s
                ),
            )
        return self._session

    def _broken(self, error: Exception) -> Fault:
        """The fault of an attempt without a whole response."""
        text = self._redactor.text(f"{type(error).__name__}: {error}")
        if isinstance(error, aiohttp.ClientConnectorCertificateError):
            return Fault(FailureKind.CONNECTION, clip(text), fatal=True)
        if isinstance(error, TimeoutError) and not isinstance(
            error, aiohttp.ConnectionTimeoutError
        ):
            hint = f"no whole reply within {self._limits.whole_s:g} s; a lower max_tokens may help"
            return Fault(FailureKind.TIMEOUT, hint, retry=True)
        if isinstance(error, aiohttp.ClientResponseError):
            return Fault(FailureKind.MALFORMED, clip(text), retry=True)
        return Fault(FailureKind.CONNECTION, clip(text), retry=True)

    def _redacted(self, fault: Fault) -> Fault:
        # Once more: JSON can spell a key in escapes that the body's redaction does not see.
        message = self._redactor.text(fault.message)
        return Fault(fault.kind, message, fault.retry, fault.fatal, fault.wait_s)

    def _generation(self, ask: _Ask, reply: Reply, body: bytes, latency_s: float) -> Generation:
        usage, clean = reply.usage, self._redactor.text
        priced = self._spec.cost(usage.prompt_tokens, usage.completion_tokens)
        source = "endpoint" if usage.cost is not None else "price" if priced is not None else None
        return Generation(
            request_id=ask.request_id,
            text=clean(reply.text),
            finish_reason=reply.finish_reason,
            finish_reason_raw=reply.finish_reason_raw,
            reasoning=None if reply.reasoning is None else clean(reply.reasoning),
            prompt_tokens=usage.prompt_tokens,
            completion_tokens=usage.completion_tokens,
            cached_tokens=usage.cached_tokens,
            reasoning_tokens=usage.reasoning_tokens,
            served_model=reply.served_model,
            provider=reply.provider,
            fingerprint=reply.fingerprint,
            response_id=reply.response_id,
            attempts=ask.attempts,
            started_at=ask.started_at,
            latency_s=latency_s,
            cost=priced if usage.cost is None else usage.cost,
            cost_source=source,
            body=zlib.compress(body),
        )


@dataclass(slots=True)
class _Ask:
    """One request on its way."""

    request_id: str
    body: bytes
    attempts: int = 0
    started_at: str = ""
    """Start of the latest attempt."""


class _TooLong(Exception):
    """A body longer than is read."""


def _outcome(state: RetryCallState) -> Generation | Fault:
    assert state.outcome is not None
    outcome: Generation | Fault = state.outcome.result()
    return outcome


def _failure(request: Request, fault: Fault, attempts: int) -> Failure:
    return Failure(request.id, fault.kind, fault.message, attempts, _now(), fault.fatal)


def _now() -> str:
    return datetime.now(UTC).isoformat()

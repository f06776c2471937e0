"""Any OpenAI-compatible chat endpoint: OpenAI, OpenRouter, vLLM, llama.cpp and others.

One request is one ``POST {base}/chat/completions``
(https://platform.openai.com/docs/api-reference/chat/create); only what can heal is asked
again. The key travels in the ``Authorization`` header and is taken out of everything that
comes back.
"""

from __future__ import annotations

import asyncio
import random
import time
from dataclasses import dataclass, replace
from importlib.metadata import version
from typing import Any
from urllib.parse import urlsplit

from msgspec import Struct, structs

from formatspan._version import __version__
from formatspan.backends.base import Capabilities, ModelSpec, Tokenizer
from formatspan.backends.chat_adapt import Adapter, cut_at_stop, hint
from formatspan.backends.chat_constraint import constraint_types, dialect_of
from formatspan.backends.chat_fault import Fault, clip
from formatspan.backends.chat_gate import Clock, Gate, Sleep, siblings
from formatspan.backends.chat_json import encoded
from formatspan.backends.chat_likelihood import CHAT, SCORERS, Told
from formatspan.backends.chat_reply import Reply, generation_of, parse_body, parse_reply
from formatspan.backends.chat_request import (
    chat_body,
    check_extra_body,
    endpoint,
    headers_of,
    left_out,
)
from formatspan.backends.http_client import Bounds, HttpClient
from formatspan.backends.http_trouble import (
    Broken,
    NoAnswer,
    NotHttp,
    NotTls,
    ProxyRefused,
    Refused,
    TimedOut,
    TooLong,
    Untrusted,
)
from formatspan.backends.redaction import MIN_LENGTH, WITHHELD, Redactor
from formatspan.errors import BackendError
from formatspan.moments import utc_now
from formatspan.records import Failure, FailureKind, Generation, Request

OPENAI_URL, OPENAI_KEY = "https://api.openai.com/v1", "OPENAI_API_KEY"
OPENROUTER_URL, OPENROUTER_KEY = "https://openrouter.ai/api/v1", "OPENROUTER_API_KEY"

MOST_IN_FLIGHT = 256
"""Requests in flight to a model at most, unless its entry says otherwise; `Gate` finds how many
of them pay."""
AWAITED_CHARS = 100
"""Longest text of what is waited for."""
MOST_HOLLOW = 2
"""Times that a reply without any text in its place is asked for again."""


@dataclass(frozen=True, slots=True)
class Limits:
    """How long and how often an endpoint is asked for one reply."""

    attempts: int = 5
    """Times that a request is sent at most."""
    timeout_attempts: int = 3
    """The same after timeouts: what took too long once will again."""
    slow_attempts: int = 2
    """The same where no connection stood in time."""
    limited_attempts: int = 10
    """The same where the endpoint said that it was too much at once, which says nothing of the
    request."""
    budget_s: float = 900.0
    """Seconds after which no attempt starts."""
    connect_s: float = 15.0
    first_byte_s: float = 300.0
    """Seconds for one attempt, from sending to the first byte."""
    whole_s: float = 330.0
    """Seconds for one attempt, from sending to the last byte."""
    body_bytes: int = 16 << 20
    """Longest body that is read, decompressed."""
    backoff_s: float = 2.0
    """First window of the full jitter; it doubles with each attempt."""
    backoff_cap_s: float = 30.0
    asked_jitter_s: float = 10.0
    """Longest jitter added to a wait that the endpoint asked for."""

    def most(self, fault: Fault) -> int:
        """Times that a request is sent at most when it fails in this way."""
        if fault.slow:
            return min(self.attempts, self.slow_attempts)
        if fault.kind is FailureKind.TIMEOUT:
            return min(self.attempts, self.timeout_attempts)
        return self.limited_attempts if fault.kind is FailureKind.RATE_LIMIT else self.attempts


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
        clock: Seconds that only grow, as ``sleep`` lets them pass.
        rng: Draws the jitter.

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
        clock: Clock = time.monotonic,
        rng: random.Random | None = None,
    ) -> None:
        self._spec, self._limits = spec, limits or Limits()
        self._sleep, self._clock, self._rng = sleep, clock, rng or random.Random()
        if not spec.target:
            raise BackendError(f"model {spec.address!r}: expected a model's name after the colon")
        check_extra_body(spec.extra_body)
        self._url, self._key_env = endpoint(base_url), key_env
        self._headers, secrets = headers_of(spec, key_env)
        self._redactor = Redactor(secrets)
        self._path = urlsplit(self._url).path
        self._dialect = dialect_of(spec)
        self._client: HttpClient | None = None
        self._adapter, self._left_out = Adapter(), left_out(spec)
        most = spec.concurrency or MOST_IN_FLIGHT
        self._gate = Gate(most, clock=clock, sleep=sleep, rng=self._rng)
        self._siblings = siblings(self._url, key_env)
        self._siblings.gates.add(self._gate)
        self._awaits: tuple[float, str] | None = None
        """When a request that failed since the last reply is sent again, and how it failed."""

    @property
    def capabilities(self) -> Capabilities:
        """What the dialect is known to take; a seed is sent, but may be ignored."""
        return Capabilities(
            constraints=constraint_types(self._dialect),
            likelihood=self._dialect in SCORERS,
            concurrency=MOST_IN_FLIGHT,
        )

    def tokenizer(self) -> Tokenizer | None:
        """None: the endpoint's tokenizer is not at hand."""
        return None

    def describe(self) -> dict[str, str]:
        """Facts for the run's record; the key's variable, never the key."""
        return {
            "backend": "openai_chat",
            "formatspan": __version__,
            "pycurl": version("pycurl"),
            "url": self._url,
            "model": self._spec.target,
            "key": self._key_env or "none",
        }

    async def generate(self, request: Request) -> Generation | Failure:
        """Ask until a reply comes, a fault is final, or the attempts are used up.

        A failure of no attempt was never sent: the model had been stopped before.
        """
        if not self._serves(request):
            text = f"this backend cannot serve {request.mode} requests of kind {request.kind}"
            return _failure(request.id, Fault(FailureKind.INTERNAL, text, fatal=True), 0)
        ask = _Ask(request, chat_body(self._spec, request), self._clock())
        while True:
            ticket = self._gate.enter_now() or await self._gate.enter(ask.sat_out)
            if ticket is None:
                return _failure(request.id, ask.last or _STOPPED, ask.attempts)
            outcome: Generation | Fault = _CANCELLED
            try:
                outcome = await self._attempt(ask)
            finally:
                busy = isinstance(outcome, Fault) and outcome.busy
                good = isinstance(outcome, Generation)
                self._gate.leave(ticket, good=good, busy=busy)
            if isinstance(outcome, Generation):
                self._awaits = None
                return outcome
            ask.last = outcome
            wait_s = self._before_next(ask, outcome)
            if wait_s is None:
                return _failure(request.id, ask.last, ask.attempts)
            if wait_s > 0:
                self._awaits = self._clock() + wait_s, clip(outcome.message, AWAITED_CHARS)
                await self._sleep(wait_s)

    def waiting(self) -> str | None:
        """How long the next request waits, and for which fault; None once a reply came since."""
        if self._awaits is None or self._gate.closed:
            return None
        left_s = max(self._awaits[0], self._gate.until) - self._clock()
        how = f"waiting {left_s:.0f} s" if left_s >= 1 else "asking again"
        return f"{how} after {self._awaits[1]}"

    def halt(self) -> None:
        """Send nothing more, neither requests that wait for their turn nor repeats."""
        self._gate.close()

    async def aclose(self) -> None:
        """Close the connections."""
        if self._client is not None:
            await self._client.aclose()
            self._client = None

    def _serves(self, request: Request) -> bool:
        if request.kind == "likelihood":
            return self._dialect in SCORERS
        held = request.constraint
        return held is None or held.type in self.capabilities.constraints

    # --- after a fault ------------------------------------------------------------------------

    def _before_next(self, ask: _Ask, fault: Fault) -> float | None:
        """Seconds to wait before the request is sent again, or None if it is not."""
        if fault.param is not None:
            if self._adapter.learn(fault.param, ask.sent):
                return 0.0
            value = ask.sent.get(fault.param)
            if value is not None:
                told = clip(f"{hint(fault.param, value)}; {fault.message}")
                ask.last = fault = replace(fault, message=told, fatal=True)
        if fault.fatal:
            self._gate.close()
        if not fault.retry:
            return None
        ask.faults[fault.kind] = ask.faults.get(fault.kind, 0) + 1
        wait_s = self._wait_s(ask, fault)
        if fault.busy:
            wait_s = max(wait_s, self._gate.strike_s())
            ask.sat_out = self._hold_back(fault, wait_s)
        spent_s = self._clock() - ask.began + wait_s
        enough = ask.faults[fault.kind] >= self._limits.most(fault)
        return None if enough or spent_s >= self._limits.budget_s else wait_s

    def _hold_back(self, fault: Fault, wait_s: float) -> float:
        """Let this model, or all at the endpoint, wait as the refusal asks; returns until when."""
        pause_s = wait_s if fault.wait_s is None else fault.wait_s
        if not fault.upstream and fault.kind is FailureKind.RATE_LIMIT:
            self._siblings.pause(pause_s)
        return self._gate.pause(pause_s)

    def _wait_s(self, ask: _Ask, fault: Fault) -> float:
        # Full jitter: https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/
        limits, asked_s = self._limits, fault.wait_s
        cap_s = limits.backoff_cap_s if asked_s is None else limits.asked_jitter_s
        window = min(cap_s, limits.backoff_s * 2.0 ** (ask.faults[fault.kind] - 1))
        return (asked_s or 0.0) + self._rng.uniform(0, window)

    # --- one attempt --------------------------------------------------------------------------

    async def _attempt(self, ask: _Ask) -> Generation | Fault:
        ask.attempts += 1
        ask.started_at, started = utc_now(), time.perf_counter()
        if ask.request.kind == "likelihood":
            return await self._scored(ask, started)
        ask.sent = self._adapter.applied(ask.body)
        try:
            found = await self._opened().send("POST", self._path, encoded(ask.sent))
        except Broken as error:
            return self._broken(error)
        latency_s = time.perf_counter() - started
        body = self._redactor.body(found.body)
        parsed = parse_reply(found.status, found.headers, body, url=self._url)
        if isinstance(parsed, Fault):
            return self._redacted(parsed)
        if parsed.hollow and ask.hollow < MOST_HOLLOW:
            ask.hollow += 1
            text = f"no text in its place (finish reason {parsed.finish_reason_raw})"
            return Fault(FailureKind.MALFORMED, clip(text), retry=True)
        return self._generation(ask, parsed, body, latency_s)

    async def _scored(self, ask: _Ask, started: float) -> Generation | Fault:
        """A reply without text: the log-probabilities of the answer's tokens."""
        root = self._path.removesuffix("/chat/completions").removesuffix("/v1")

        async def post(path: str, asked: dict[str, Any]) -> Told | Fault:
            ask.sent = self._adapter.applied(asked)
            where = self._path if path == CHAT else root + path
            try:
                found = await self._opened().send("POST", where, encoded(ask.sent))
            except Broken as error:
                return self._broken(error)
            body = self._redactor.body(found.body)
            asked_at = self._url.removesuffix(self._path) + where
            parsed = parse_body(found.status, found.headers, body, url=asked_at)
            return parsed if isinstance(parsed, Fault) else Told(parsed, body)

        assert self._dialect is not None
        scores = await SCORERS[self._dialect](self._spec, ask.request, post)
        if isinstance(scores, Fault):
            return self._redacted(scores)
        reply = Reply("", "stop", usage=scores.usage, served_model=scores.served_model)
        made = self._generation(ask, reply, scores.body, time.perf_counter() - started)
        return structs.replace(made, token_ids=scores.token_ids, logprobs=scores.logprobs)

    def _opened(self) -> HttpClient:
        # Made at the first request: connections belong to the running event loop.
        if self._client is None:
            limits = self._limits
            bounds = Bounds(
                limits.connect_s, limits.first_byte_s, limits.whole_s, limits.body_bytes
            )
            self._client = HttpClient(self._url, self._headers, bounds)
        return self._client

    def _broken(self, error: Broken) -> Fault:
        """The fault of an attempt without a whole response."""
        text = clip(self._redactor.text(str(error)))
        if isinstance(error, TimedOut):
            hinted = f"{text}; a lower max_tokens may help"
            return Fault(FailureKind.TIMEOUT, hinted, retry=True)
        kind = next((kind for broken, kind in _LASTING if isinstance(error, broken)), None)
        if kind is not None:
            return Fault(kind, text, fatal=True)
        if isinstance(error, NotHttp | TooLong):
            return Fault(FailureKind.MALFORMED, text, retry=True)
        if isinstance(error, Refused):
            return Fault(FailureKind.CONNECTION, text, retry=True, slow=isinstance(error, NoAnswer))
        return Fault(FailureKind.CUT_OFF, text, retry=True)

    def _redacted(self, fault: Fault) -> Fault:
        # Once more: what was escaped in the body is plain text now.
        return replace(fault, message=self._redactor.text(fault.message))

    def _generation(self, ask: _Ask, reply: Reply, body: bytes, latency_s: float) -> Generation:
        usage = reply.usage
        priced = self._spec.cost(usage.prompt_tokens, usage.completion_tokens)
        source = "endpoint" if usage.cost is not None else "price" if priced is not None else None
        if self._adapter.stops_here:
            text, stopped = cut_at_stop(reply.text, ask.request.sampling.stop)
            if stopped:
                reply = structs.replace(reply, text=text, finish_reason="stop")
        made = generation_of(
            reply,
            request_id=ask.request.id,
            attempts=ask.attempts,
            adaptations=(*self._left_out, *self._adapter.notes(ask.body)),
            started_at=ask.started_at,
            latency_s=latency_s,
            cost=priced if usage.cost is None else usage.cost,
            cost_source=source,
            body=body,
        )
        return self._cleaned(made, body)

    def _cleaned(self, made: Generation, body: bytes) -> Generation:
        """``made`` without secrets, also those put together from pieces of the body.

        What stands in the clean body word for word, or is too short, holds none; without an
        escape in the body that is all but what may be put together of parts.
        """
        clean = self._redactor.text
        for name in _FROM_OUTSIDE if body.find(b"\\") >= 0 else _PUT_TOGETHER:
            value = getattr(made, name) or ""
            if len(value) >= MIN_LENGTH and value.encode() not in body and clean(value) != value:
                break
        else:
            return made
        changed: dict[str, Any] = {
            name: masked
            for name in _FROM_OUTSIDE
            if (value := getattr(made, name)) and (masked := clean(value)) != value
        }
        return structs.replace(made, **changed, body=WITHHELD.encode())


class _Ask(Struct, gc=False):
    """One request on its way."""

    request: Request
    body: dict[str, Any]
    """As the study has it."""
    began: float
    sent: dict[str, Any] = {}
    """As it was sent last."""
    attempts: int = 0
    hollow: int = 0
    """Replies without text so far."""
    faults: dict[FailureKind, int] = {}
    """How many faults that could heal, by kind."""
    sat_out: float = -1.0
    """End of the pause that it has waited for itself."""
    last: Fault | None = None
    started_at: str = ""
    """Start of the latest attempt."""


_FROM_OUTSIDE = (
    *("text", "reasoning", "finish_reason_raw", "served_model"),
    *("provider", "fingerprint", "response_id"),
)
"""Fields of a generation that hold what the endpoint wrote."""
_PUT_TOGETHER = ("text", "reasoning")
"""Those that may be made of several parts of a body."""

_LASTING = (
    (Untrusted, FailureKind.UNTRUSTED),
    (ProxyRefused, FailureKind.PROXY),
    (NotTls, FailureKind.CONNECTION),
)
"""What would break every further request alike."""

_STOPPED = Fault(FailureKind.INTERNAL, "not sent: the model was stopped", fatal=True)
_CANCELLED = Fault(FailureKind.INTERNAL, "given up")


def _failure(request_id: str, fault: Fault, attempts: int) -> Failure:
    return Failure(request_id, fault.kind, fault.message, attempts, utc_now(), fault.fatal)


__all__ = ["Limits", "OpenAIChat", "open_openai", "open_openrouter"]

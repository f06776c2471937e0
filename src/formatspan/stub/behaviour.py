"""What a stub does with a request: limits first, then refusals, then faults, then the answer."""

from __future__ import annotations

import hashlib
import json
import random
from collections import Counter, deque
from collections.abc import Callable, Mapping
from dataclasses import replace
from time import monotonic, time
from typing import Any

from formatspan.errors import UserError
from formatspan.stub.faults import KINDS, Good
from formatspan.stub.http import Asked, Told, response
from formatspan.stub.replies import answer_to, completion, draw, prompt_of
from formatspan.stub.scores import scores_in, template, tokenized
from formatspan.stub.settings import Settings

MODEL = "stub"
REMEMBERED = 100_000
"""Requests whose faults in a row are remembered; the oldest are forgotten first."""

Route = Callable[[Asked], Told]


class Stub:
    """Answers requests as its settings say; it knows nothing of connections.

    ``routes`` maps a method and a path's end to what answers there, and may be added to.
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.kinds = settings.kinds or tuple(KINDS)
        for kind in self.kinds:
            if kind not in KINDS:
                raise UserError(f"kinds: {kind!r}: expected some of {', '.join(KINDS)}")
        self.counts: Counter[str] = Counter()
        """Requests, good replies, and faults by kind."""
        self.routes: dict[tuple[str, str], Route] = {
            ("POST", "/chat/completions"): self.complete,
            ("POST", "/completion"): self.complete,
            ("POST", "/apply-template"): self.help_out,
            ("POST", "/tokenize"): self.help_out,
            ("GET", "/models"): self.models,
        }
        self.in_hand = 0
        self._recent: deque[float] = deque()
        self._faults: dict[bytes, int] = {}
        self._random = random.Random(settings.seed)
        plain = not (settings.faults or settings.refuses)
        self._canned = self._can(settings.text) if plain and settings.text is not None else None
        """The one reply of a stub that gives no other, made once since a benchmark waits for it."""

    def answer(self, asked: Asked) -> Told:
        """The reply to a request, whatever it is."""
        self.in_hand += 1
        path = asked.path.partition("?")[0].rstrip("/")
        for (method, end), route in self.routes.items():
            if method == asked.method and path.endswith(end):
                return route(asked)
        return self._soon(_json(404, {"error": {"message": f"no route {asked.method} {path}"}}))

    def left(self) -> None:
        """A reply has gone out, or its client has."""
        self.in_hand -= 1

    def models(self, asked: Asked) -> Told:
        """The list of models: one."""
        entry = {"id": MODEL, "object": "model", "owned_by": "formatspan"}
        return self._soon(_json(200, {"object": "list", "data": [entry]}))

    def help_out(self, asked: Asked) -> Told:
        """A prompt's text or tokens, as llama.cpp's server tells them."""
        body = _read(asked)
        if isinstance(body, Told):
            return self._soon(body)
        if asked.path.endswith("/tokenize"):
            return self._soon(_json(200, tokenized(body)))
        return self._soon(_json(200, {"prompt": template(body.get("messages"))}))

    def complete(self, asked: Asked) -> Told:
        """A completion or a fault."""
        self.counts["requests"] += 1
        refused = self._over_limit()
        if refused is not None:
            return self._soon(refused)
        if self._canned is not None:
            self.counts["good"] += 1
            return self._jittered(self._canned)
        body = _read(asked)
        if isinstance(body, Told):
            return self._soon(body)
        return self._soon(self._refusal(body) or self._reply(asked, body))

    def _reply(self, asked: Asked, body: Mapping[str, Any]) -> Told:
        prompt, number = prompt_of(body), body.get("seed")
        sampled = bool(body.get("temperature"))
        seed = number if sampled and isinstance(number, int) else 0
        text = self.settings.text
        if text is None:
            text = answer_to(prompt, seed)
        key = hashlib.blake2b(
            json.dumps([*map(body.get, _IDENTITY), number]).encode(), digest_size=8
        ).digest()
        said = f" ({asked.header('authorization')})" if self.settings.echo else ""
        whole = completion(body.get("model"), text, prompt, key.hex()) | scores_in(body)
        kind = self._fault(key)
        self.counts["good" if kind is None else kind] += 1
        if kind is None:
            return _json(200, whole)
        return KINDS[kind](Good(whole, self.settings, said))

    def _fault(self, key: bytes) -> str | None:
        """The kind of fault that this request meets now, or none."""
        met = self._faults.get(key, 0)
        turn = draw(self.settings.seed, key.hex(), met)
        unlucky = turn % 1_000_003 / 1_000_003 < self.settings.faults
        if not unlucky or met >= self.settings.most_faults:
            self._faults.pop(key, None)
            return None
        self._faults[key] = met + 1
        if len(self._faults) > REMEMBERED:
            self._faults.pop(next(iter(self._faults)))
        return self.kinds[turn // 1_000_003 % len(self.kinds)]

    def _over_limit(self) -> Told | None:
        settings = self.settings
        if settings.per_day is not None and self.counts["good"] >= settings.per_day:
            reset = str(round((time() + 9 * 3600) * 1000))
            message = "Rate limit exceeded: requests-per-day"
            return self._limited(message, ("x-ratelimit-reset", reset))
        if settings.slots is not None and self.in_hand > settings.slots:
            return self._limited("Too many requests in hand")
        if settings.per_minute is not None:
            return self._per_minute(settings.per_minute)
        return None

    def _per_minute(self, most: int) -> Told | None:
        now = monotonic()
        while self._recent and now - self._recent[0] >= 60:
            self._recent.popleft()
        if len(self._recent) < most:
            self._recent.append(now)
            return None
        oldest = self._recent[0] if self._recent else now
        left = f"{60 - (now - oldest):.3f}s"
        return self._limited("Rate limit reached", ("x-ratelimit-reset-requests", left))

    def _limited(self, message: str, header: tuple[str, str] | None = None) -> Told:
        self.counts["limited"] += 1
        return _json(429, {"error": {"code": 429, "message": message}}, (header,) if header else ())

    def _refusal(self, body: Mapping[str, Any]) -> Told | None:
        for name in self.settings.refuses:
            if name in body:
                self.counts["refused"] += 1
                return _json(400, {"error": _refused(name)})
        return None

    def _soon(self, told: Told) -> Told:
        return self._jittered(replace(told, after_s=self.settings.latency_s + told.after_s))

    def _jittered(self, told: Told) -> Told:
        if not self.settings.jitter_s:
            return told
        jitter_s = self._random.uniform(0, self.settings.jitter_s)
        return replace(told, after_s=told.after_s + jitter_s)

    def _can(self, text: str) -> Told:
        told = _json(200, completion(MODEL, text, "x" * 1000, "canned"))
        return replace(told, after_s=self.settings.latency_s)


_IDENTITY = ("model", "messages", "prompt", "grammar")
"""Keys of a body that tell requests apart, beside the seed."""


def _read(asked: Asked) -> dict[str, Any] | Told:
    """A request's object, or the refusal of what is none."""
    try:
        body = json.loads(asked.body)
    except ValueError:
        return _json(400, {"error": {"message": "the body is not JSON"}})
    if not isinstance(body, dict):
        return _json(400, {"error": {"message": "the body is no object"}})
    return body


def _refused(name: str) -> dict[str, str]:
    other = {"max_tokens": " Use 'max_completion_tokens' instead."}.get(name, "")
    return {
        "message": f"Unsupported parameter: '{name}' is not supported with this model.{other}",
        "type": "invalid_request_error",
        "param": name,
        "code": "unsupported_parameter",
    }


def _json(status: int, body: object, headers: tuple[tuple[str, str], ...] = ()) -> Told:
    return Told(response(status, json.dumps(body).encode(), headers))

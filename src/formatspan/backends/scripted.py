"""Deterministic stand-ins for a model: for tests, for docs and for users' own tests.

`Scripted` answers by a function of the request. `ScriptedModel`, addressed as
``scripted:accuracy=0.8,comply=0.9``, plays a model of given rates: which examples it knows
and which replies break the asked form are drawn by hashing the script's seed with the
example's name, so that the same script always gives the same run, in any order.
"""

from __future__ import annotations

import asyncio
import dataclasses
import hashlib
import json
import re
from collections.abc import Awaitable, Callable, Sequence

from msgspec.structs import replace

from formatspan._version import __version__
from formatspan.backends.base import Capabilities, Lesson, ModelSpec
from formatspan.backends.breaks import Intent, broken, other_answer
from formatspan.backends.script import Script, read_script
from formatspan.contracts import reply as reply_as_asked
from formatspan.moments import utc_now
from formatspan.records import (
    Failure,
    FailureKind,
    Generation,
    Message,
    Request,
    as_jsonable,
)

Sleep = Callable[[float], Awaitable[None]]
Reply = str | Generation | Failure

FATAL = frozenset({FailureKind.AUTH, FailureKind.QUOTA, FailureKind.NOT_FOUND})
"""Kinds of failure that every further request to the model would meet."""

CAPABILITIES = Capabilities(
    deterministic=True,
    seed=True,
    likelihood=True,
    constraints=frozenset({"json_schema", "regex", "grammar", "choice"}),
    concurrency=64,
)

_PIECE = re.compile(r" ?\w{1,12}| ?[^\w\s]| {1,64}|\n ?|\s")


def pieces(text: str) -> list[str]:
    r"""Tokens of a text: short words and marks with a space before, runs of spaces, line ends.

    As in real tokenizers, up to 64 spaces merge into one token while a repeated ``"\n "``
    costs one each, so that equal characters are not equal tokens.
    """
    return _PIECE.findall(text)


class PieceTokenizer:
    """The tokenizer of scripted models; a message costs three tokens besides its text."""

    def count(self, messages: Sequence[Message]) -> int:
        """Prompt tokens of ``messages``."""
        return sum(len(pieces(message.content)) + 3 for message in messages)

    def split(self, text: str) -> list[str]:
        """The tokens of a reply."""
        return pieces(text)


class Scripted:
    """A backend that answers by a function of the request.

    Args:
        reply: The answer to a request. A text is wrapped in a Generation as it is; a Generation
            or a Failure is passed on under the request's id.
        capabilities: What to declare.
        latency_s: Seconds to wait before every reply.
        sleep: What waits.
    """

    def __init__(
        self,
        reply: Callable[[Request], Reply],
        *,
        capabilities: Capabilities = CAPABILITIES,
        latency_s: float = 0.0,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        self._reply, self._capabilities = reply, capabilities
        self._latency_s, self._sleep = latency_s, sleep

    @property
    def capabilities(self) -> Capabilities:
        """What was declared."""
        return self._capabilities

    def tokenizer(self) -> PieceTokenizer:
        """The tokenizer that counts this backend's tokens."""
        return PieceTokenizer()

    def describe(self) -> dict[str, str]:
        """Facts for the run's record."""
        return {"backend": "scripted", "formatspan": __version__}

    async def generate(self, request: Request) -> Generation | Failure:
        """The function's answer."""
        if self._latency_s:
            await self._sleep(self._latency_s)
        reply = self._reply(request)
        if isinstance(reply, str):
            return generation(request, reply, latency_s=self._latency_s)
        return replace(reply, request_id=request.id)

    async def aclose(self) -> None:
        """Nothing to release."""


class ScriptedModel:
    """A model of given rates; it must be coached before every request.

    Args:
        script: What it does.
        spec: Its entry, for the price.
        sleep: What waits for ``latency_s``.
    """

    def __init__(self, script: Script, spec: ModelSpec, *, sleep: Sleep = asyncio.sleep) -> None:
        self.script, self._spec, self._sleep = script, spec, sleep
        self._lessons: dict[str, Lesson] = {}

    @property
    def capabilities(self) -> Capabilities:
        """Deterministic, seeded, held to any constraint, coached."""
        return dataclasses.replace(CAPABILITIES, coached=True)

    def tokenizer(self) -> PieceTokenizer:
        """The tokenizer that counts this model's tokens."""
        return PieceTokenizer()

    def describe(self) -> dict[str, str]:
        """Facts for the run's record, the whole script among them."""
        script = json.dumps(as_jsonable(self.script), sort_keys=True)
        return {"backend": "scripted", "formatspan": __version__, "script": script}

    def coach(self, request: Request, lesson: Lesson) -> None:
        """Take the lesson for ``request``; it is forgotten once the request is answered."""
        self._lessons[request.id] = lesson

    async def generate(self, request: Request) -> Generation | Failure:
        """The reply that the script gives."""
        lesson = self._lessons.pop(request.id, None)
        if lesson is None:
            return _failure(request, FailureKind.INTERNAL, "a scripted model was not coached")
        draw = _Draw(self.script.seed, request, lesson)
        if draw("hang", lesson.wrapper) < self.script.hang:
            await asyncio.Event().wait()
        if self.script.latency_s:
            await self._sleep(self.script.latency_s)
        kind = self._failing(draw("fail", lesson.wrapper, request.seed))
        if kind is not None:
            return _failure(request, kind, f"scripted failure: {kind}")
        if request.kind == "likelihood":
            return self._scored(request, lesson, draw)
        return self._answer(request, lesson, draw)

    async def aclose(self) -> None:
        """Nothing to release."""

    def _failing(self, drawn: float) -> FailureKind | None:
        for kind, rate in self.script.fail.items():
            if drawn < rate:
                return kind
            drawn -= rate
        return None

    def _answer(self, request: Request, lesson: Lesson, draw: _Draw) -> Generation:
        script, wrapper = self.script, lesson.wrapper
        intent = self._intent(lesson, draw)
        text, cut = intent.strict, False
        if request.parent is None:
            complies = draw("comply", wrapper) < script.rate(script.comply, wrapper)
        else:
            complies = draw("repair", wrapper) < script.rate(script.repair, wrapper)
        if not complies and request.mode == "free":
            turn = int(draw("break", wrapper) * 1_000_003)
            text, cut = broken(script.breaks, turn, intent)
        text, cut = _cap(request, text, cut)
        made = generation(request, text, cut=cut, latency_s=script.latency_s)
        cost = self._spec.cost(made.prompt_tokens, made.completion_tokens)
        return replace(made, cost=cost, cost_source=None if cost is None else "price")

    def _intent(self, lesson: Lesson, draw: _Draw) -> Intent:
        """What it means to answer: the right answer where it knows it."""
        turn = int(draw("which") * 1_000_003)
        other = other_answer(lesson.space, lesson.gold, turn)
        known = draw("known") < self.script.rate(self.script.accuracy, lesson.wrapper)
        answer, rival = (lesson.gold, other) if known else (other, lesson.gold)
        return Intent(lesson.contract, lesson.space, answer, rival)

    def _scored(self, request: Request, lesson: Lesson, draw: _Draw) -> Generation:
        """A score: the answer that it means is likeliest, as a whole and by its bytes."""
        intent = self._intent(lesson, draw)
        text = request.messages[-1].content
        meant = text == reply_as_asked(intent.contract, intent.space, intent.answer)
        made = generation(replace(request, messages=request.messages[:-1]), text)
        each = (-0.5 if meant else -2.0) * len(text.encode()) / len(pieces(text))
        logprobs = (each,) * len(pieces(text))
        return replace(made, text="", logprobs=logprobs, completion_tokens=len(logprobs))


class _Draw:
    """Uniform numbers in [0, 1) that depend on names only.

    They are shared by all wrappers unless the wrapper is one of the names, and by all repeats
    of a greedy request; sampled repeats (temperature above 0) differ.
    """

    def __init__(self, seed: int, request: Request, lesson: Lesson) -> None:
        repeat = request.seed if request.sampling.temperature > 0 else None
        self._names = (seed, lesson.task, lesson.example_id, repeat)

    def __call__(self, *names: str | int) -> float:
        text = json.dumps([*self._names, *names])
        return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8]) / 2**64


def open_scripted(spec: ModelSpec) -> ScriptedModel:
    """The scripted model of an address; `read_script` says what it may hold.

    Raises:
        BackendError: A setting is unknown or out of range.
    """
    return ScriptedModel(read_script(spec), spec)


def generation(
    request: Request, text: str, *, cut: bool = False, latency_s: float = 0.0
) -> Generation:
    """A reply of ``text`` with its tokens counted, the end token among them.

    Args:
        request: What is answered.
        text: The reply.
        cut: It ended at the length cap, so without an end token.
        latency_s: Seconds to record; nominal, so that equal runs are equal records.
    """
    return Generation(
        request_id=request.id,
        text=text,
        finish_reason="length" if cut else "stop",
        finish_reason_raw="length" if cut else "stop",
        prompt_tokens=PieceTokenizer().count(request.messages),
        completion_tokens=len(pieces(text)) + (0 if cut else 1),
        served_model=request.model,
        provider="scripted",
        started_at=utc_now(),
        latency_s=latency_s,
    )


def _cap(request: Request, text: str, cut: bool) -> tuple[str, bool]:
    # Like an endpoint: stop texts end the reply, and the end token counts against the cap.
    for stop in request.sampling.stop:
        before, found, _ = text.partition(stop)
        text, cut = before, cut and not found
    tokens, cap = pieces(text), request.sampling.max_tokens
    if len(tokens) + 1 <= cap:
        return text, cut
    return "".join(tokens[:cap]), True


def _failure(request: Request, kind: FailureKind, message: str) -> Failure:
    at = utc_now()
    return Failure(request.id, kind, message, at=at, fatal=kind in FATAL)

"""Looks at models before a run: ``formatspan doctor``, and briefly at the start of every run.

A few tiny requests, through the backend as a run would send them, tell whether an endpoint can
be reached, lets us in, knows the model, follows seeds, holds to a format, counts tokens, and
who answers. Each finding says what it means for the study.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from msgspec import structs

from formatspan.backends.base import Backend, ModelSpec, Waiting
from formatspan.checks.wording import plainly
from formatspan.grid import identified
from formatspan.records import (
    Constraint,
    Failure,
    FailureKind,
    Generation,
    Message,
    Request,
    Sampling,
)
from formatspan.routing import KEY as PROVIDER
from formatspan.routing import UNPINNED, is_pinned
from formatspan.spending.purse import Purse
from formatspan.study import ModelEntry, Study

DICE = (Message("user", "Write eight random words, separated by spaces."),)
"""Asks for something that differs between draws."""
OBJECT = (Message("user", "Say in one short sentence how the weather is today."),)
"""Asks for text, so that an object shows that the format was imposed."""
SCHEMA = json.dumps(
    {
        "type": "object",
        "properties": {"answer": {"type": "string", "enum": ["A", "B"]}},
        "required": ["answer"],
        "additionalProperties": False,
    }
)
MAX_TOKENS = 32
LOOK_S = 60.0
"""Seconds that the look before a run waits for its reply; a run has its own patience."""


class Mark(StrEnum):
    """How bad a finding is."""

    GOOD = "ok"
    WARN = "warn"
    """The study can run, but a reader should know."""
    STOP = "stop"
    """The study is impossible as it stands."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of an examination."""

    model: str
    about: str
    """``reachable``, ``authorised``, ``model``, ``seed``, ``format``, ``likelihood``, ``tokens`` or
    ``provider``."""
    mark: Mark
    found: str
    """What was seen and what it means."""


@dataclass(frozen=True)
class Patient:
    """A model to look at."""

    entry: ModelEntry
    backend: Backend
    study: Study | None = None
    """The study it is in; what does not matter to it is not complained of."""

    @property
    def label(self) -> str:
        """The model's label."""
        return self.entry.name

    @property
    def spec(self) -> ModelSpec:
        """The model's entry as its backend knows it."""
        return self.entry.spec()

    @property
    def constrained(self) -> bool:
        """Whether the study constrains its decoding."""
        return self.study is not None and "constrained" in self.study.decoding

    @property
    def needs_seeds(self) -> bool:
        """Whether the study draws several times."""
        return self.study is not None and self.study.seeds > 1 and self.study.temperature > 0


async def glance(patient: Patient, purse: Purse) -> list[Finding]:
    """One tiny request, as the study's own are: can the model be asked at all, and who answers?

    Only what no further request could mend makes the study impossible here: a run has its own
    patience with the rest. Nothing is asked, and nothing found, if it does not fit the budget.

    Args:
        patient: The model.
        purse: Pays.
    """
    temperature = patient.study.temperature if patient.study else 0.0
    request = _request(patient, DICE, temperature=temperature)
    most = purse.most(patient.label, request)
    if not purse.fits(most):
        return []
    purse.hold(request.id, most)
    outcome = await _asked_briefly(patient, request)
    purse.settle(patient.label, request, outcome)
    if isinstance(outcome, Failure):
        refused = _refused(patient, outcome)
        if outcome.fatal or outcome.kind in _LASTING:
            return [refused]
        return [replace(refused, mark=Mark.WARN, found=f"{refused.found}; asked all the same")]
    return [*_tokens(patient, outcome), *_provider(patient, [outcome])]


async def examine(patient: Patient, listed: Mapping[str, object] | str | None) -> list[Finding]:
    """Everything that a few requests can tell.

    Args:
        patient: The model.
        listed: The endpoint's models by name, or why it gave no list; None where it has none.
    """
    first = await _asked(patient, _request(patient, DICE))
    if isinstance(first, Failure):
        # That there is no list either says nothing new.
        known = None if isinstance(listed, str) else listed
        return [*_listing(patient, known), _refused(patient, first)]
    second = await _asked(patient, _request(patient, DICE))
    other = await _asked(patient, _request(patient, DICE, seed=1))
    key = "the key is taken" if _has_key(patient) else "it asks for no key"
    return [
        Finding(patient.label, "reachable", Mark.GOOD, "it answers"),
        Finding(patient.label, "authorised", Mark.GOOD, key),
        *_listing(patient, listed),
        *_seed(patient, first, second, other),
        await _format(patient),
        *[found async for found in _likelihood(patient)],
        *_tokens(patient, first),
        *_provider(patient, [r for r in (first, second, other) if isinstance(r, Generation)]),
    ]


def is_fatal(findings: Sequence[Finding]) -> bool:
    """Whether one of them makes the study impossible."""
    return any(f.mark is Mark.STOP for f in findings)


def _request(
    patient: Patient,
    messages: tuple[Message, ...],
    *,
    temperature: float = 1.0,
    seed: int = 0,
    constraint: Constraint | None = None,
) -> Request:
    study = patient.study
    tokens = MAX_TOKENS if study is None else study.sampling(patient.entry).max_tokens
    return identified(
        Request(
            id="",
            model=patient.entry.model,
            endpoint="doctor",
            messages=messages,
            sampling=Sampling(max_tokens=max(MAX_TOKENS, tokens), temperature=temperature),
            seed=seed,
            mode="constrained" if constraint else "free",
            constraint=constraint,
        )
    )


async def _asked(patient: Patient, request: Request) -> Generation | Failure:
    try:
        return await patient.backend.generate(request)
    except Exception as error:  # a backend's bug is a finding, as it is a failure in a run
        return Failure(request.id, FailureKind.INTERNAL, str(error) or "no word from the backend")


async def _asked_briefly(patient: Patient, request: Request) -> Generation | Failure:
    """As `_asked`, with no more patience than a look is worth."""
    try:
        async with asyncio.timeout(LOOK_S):
            return await _asked(patient, request)
    except TimeoutError:
        backend = patient.backend
        why = backend.waiting() if isinstance(backend, Waiting) else None
        text = f"no reply within {LOOK_S:g} s" + (f", {why}" if why else "")
        return Failure(request.id, FailureKind.TIMEOUT, text)


def _has_key(patient: Patient) -> bool:
    return patient.backend.describe().get("key", "none") != "none"


_REFUSALS: Mapping[FailureKind, tuple[str, Mark, str]] = {
    FailureKind.AUTH: ("authorised", Mark.STOP, "the key is refused: set another"),
    FailureKind.QUOTA: ("authorised", Mark.STOP, "no credit or quota is left for now"),
    FailureKind.NOT_FOUND: ("model", Mark.STOP, "there is no such model or path"),
    FailureKind.CONNECTION: ("reachable", Mark.STOP, "it cannot be reached: see base_url"),
    FailureKind.CUT_OFF: ("reachable", Mark.STOP, "it breaks off before a whole reply has come"),
    FailureKind.UNTRUSTED: ("reachable", Mark.STOP, "its certificate is not trusted"),
    FailureKind.PROXY: ("reachable", Mark.STOP, "a proxy on the way lets nothing through"),
    FailureKind.REDIRECTED: ("reachable", Mark.STOP, "base_url leads elsewhere"),
    FailureKind.REFUSED: (
        "reachable",
        Mark.STOP,
        "it turns requests away: is base_url a chat endpoint, with no gateway before it?",
    ),
    FailureKind.TIMEOUT: ("reachable", Mark.STOP, "it does not answer in time"),
    FailureKind.RATE_LIMIT: ("reachable", Mark.WARN, "it asks to wait; a run will be slow"),
    FailureKind.SERVER: ("reachable", Mark.WARN, "it is in trouble; a run would try again"),
    FailureKind.REFUSED_PARAMETERS: ("model", Mark.STOP, "it refuses the request's parameters"),
    FailureKind.MALFORMED: ("reachable", Mark.STOP, "what answers is no chat endpoint"),
}


_LASTING = frozenset(
    {FailureKind.AUTH, FailureKind.QUOTA, FailureKind.NOT_FOUND, FailureKind.CONNECTION}
)


def _refused(patient: Patient, failure: Failure) -> Finding:
    default = ("reachable", Mark.WARN, "a test request failed")
    about, mark, meaning = _REFUSALS.get(failure.kind, default)
    if failure.fatal:
        mark = Mark.STOP
    return Finding(patient.label, about, mark, f"{meaning} ({plainly(failure.message)})")


def _listing(patient: Patient, listed: Mapping[str, object] | str | None) -> Iterator[Finding]:
    if listed is None:
        return
    if isinstance(listed, str):
        text = f"the endpoint gives no list of models ({plainly(listed)})"
        yield Finding(patient.label, "model", Mark.WARN, text)
    elif patient.spec.target in listed:
        yield Finding(patient.label, "model", Mark.GOOD, "it is in the endpoint's list")
    else:
        some = ", ".join(sorted(listed)[:3])
        text = f"it is not in the endpoint's list ({len(listed)} models, such as {some})"
        yield Finding(patient.label, "model", Mark.WARN, text)


def _seed(
    patient: Patient,
    first: Generation,
    second: Generation | Failure,
    other: Generation | Failure,
) -> Iterator[Finding]:
    def found(mark: Mark, text: str) -> Finding:
        return Finding(patient.label, "seed", mark, text)

    if isinstance(second, Failure) or isinstance(other, Failure):
        yield found(Mark.WARN, "not told: a test request failed")
    elif first.text != second.text:
        yield found(
            Mark.WARN,
            "ignored: the same seed gave two texts; a rerun will not give the same replies",
        )
    elif first.text == other.text:
        mark = Mark.STOP if patient.needs_seeds else Mark.WARN
        yield found(
            mark,
            "two seeds gave one text at temperature 1: replies are cached or sampling is off, so "
            "that repeats are no draws of their own",
        )
    else:
        yield found(Mark.GOOD, "respected: the same seed gave the same text, another one another")


async def _format(patient: Patient) -> Finding:
    def found(mark: Mark, text: str) -> Finding:
        return Finding(patient.label, "format", mark, text)

    if "json_schema" not in patient.backend.capabilities.constraints:
        mark = Mark.STOP if patient.constrained else Mark.GOOD
        return found(mark, "not asked for: this backend cannot constrain decoding here")
    held = Constraint("json_schema", SCHEMA)
    request = _request(patient, OBJECT, temperature=0.0, constraint=held)
    reply = await _asked(patient, request)
    bad = Mark.STOP if patient.constrained else Mark.WARN
    if isinstance(reply, Failure):
        return found(bad, f"refused: no constrained decoding ({plainly(reply.message)})")
    if reply.adaptations:
        return found(bad, f"dropped on refusal ({'; '.join(reply.adaptations)})")
    if _fits(reply.text):
        return found(Mark.GOOD, "respected: the reply is held to the schema")
    return found(bad, "ignored without a word: constrained replies would be free ones")


async def _likelihood(patient: Patient) -> AsyncIterator[Finding]:
    if not patient.backend.capabilities.likelihood:
        return
    asked = _request(patient, (*OBJECT, Message("assistant", "It is sunny.")), temperature=0.0)
    request = identified(structs.replace(asked, kind="likelihood"))
    reply = await _asked(patient, request)
    if isinstance(reply, Failure):
        text = f"not told: falsify has no likelihood arm ({plainly(reply.message)})"
        yield Finding(patient.label, "likelihood", Mark.WARN, text)
    else:
        text = "told for a given reply: falsify can score options"
        yield Finding(patient.label, "likelihood", Mark.GOOD, text)


def _fits(text: str) -> bool:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return False
    return isinstance(value, dict) and value.get("answer") in ("A", "B") and len(value) == 1


def _tokens(patient: Patient, reply: Generation) -> Iterator[Finding]:
    if reply.prompt_tokens is None or reply.completion_tokens is None:
        text = "not counted: no matched subset, no cost by price, and a budget is kept by the most"
        yield Finding(patient.label, "tokens", Mark.WARN, text)
        return
    cost = "" if reply.cost is None else f", cost told (${reply.cost:.6f} for this reply)"
    yield Finding(
        patient.label,
        "tokens",
        Mark.GOOD,
        f"counted: {reply.prompt_tokens} in, {reply.completion_tokens} out{cost}",
    )


def _provider(patient: Patient, replies: Sequence[Generation]) -> Iterator[Finding]:
    names = {name: None for r in replies if (name := r.provider or r.served_model)}
    shown = ", ".join(names) or "it does not say"
    if not is_pinned(patient.spec.scheme, patient.entry.body.get(PROVIDER)):
        text = f"{shown}; not pinned: {UNPINNED}"
        yield Finding(patient.label, "provider", Mark.WARN, text)
    else:
        yield Finding(patient.label, "provider", Mark.GOOD, shown)

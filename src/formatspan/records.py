"""The vocabulary on one page: every record that passes between the parts.

All are frozen structs: a run makes hundreds of thousands of them, and a dataclass takes five times
as long; they hold no cycles, so that the garbage collector need not look at them (``gc=False``).
``msgspec.structs.replace`` gives a changed copy. Definitions of the terms are in the method
document's section 1; where a record is stored, its fields are the columns.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Literal

from msgspec import Struct, field

Kind = Literal["choice", "boolean", "number"]
Level = Literal["strict", "normalized", "lenient", "paper"]
Mode = Literal["free", "constrained"]
Answer = str | bool | int | float
"""A typed answer: an option's label (choice), a bool (boolean), an int or float (number)."""

LEVELS: tuple[Level, ...] = ("strict", "normalized", "lenient")
"""The nested levels, from the most to the least demanding; ``paper`` stands outside."""

IMPORTED = "as imported"
"""Stands where a level would for replies that were read and scored elsewhere."""

EXTRACTOR_VERSION = "4"
"""Raised whenever a reply may be read differently than before; stored with every analysis."""


class Status(StrEnum):
    """How an extraction ended; all but ``OK`` count as unparsed and score 0."""

    OK = "ok"
    OFF_FORMAT = "off_format"  # strict only: an answer may be there, but not as asked
    NO_ANSWER = "no_answer"
    AMBIGUOUS = "ambiguous"  # two different candidates
    TRUNCATED = "truncated"  # cut off before the answer was complete
    EMPTY = "empty"
    REFUSAL = "refusal"


class Message(Struct, frozen=True, gc=False):
    """One chat message."""

    role: Literal["system", "user", "assistant"]
    content: str


class Example(Struct, frozen=True, gc=False):
    """One question of a task."""

    task: str
    """Name of the task in the study."""
    id: str
    """Unique within the task; the source's own id where it has one, else its row number."""
    question: str
    context: str
    """Passage the question is about; may be empty."""
    options: tuple[str, ...]
    """Option texts in the order shown; empty unless the kind is ``choice``."""
    gold: Answer
    """The right answer: a label of ``labels(len(options))``, a bool, or a number."""
    cluster: str
    """What the example shares with others (a passage, a twin sentence); else its own id."""
    metadata: Mapping[str, str] = field(default_factory=dict)
    """Further columns, kept for slicing."""


class Prompt(Struct, frozen=True, array_like=True, gc=False):
    """One example rendered through one wrapper, padded."""

    task: str
    example_id: str
    wrapper: str
    messages: tuple[Message, ...]
    chars: int
    """Code points over all messages, padding included."""
    pad_chars: int
    """Code points of padding among them."""
    tokens: int | None = None
    """Prompt tokens by the tokenizer used for padding; None under a character budget."""


class Sampling(Struct, frozen=True, gc=False):
    """Parameters of decoding; each one is part of a request's identity."""

    max_tokens: int = 24
    temperature: float = 0.0
    top_p: float = 1.0
    stop: tuple[str, ...] = ()


class Constraint(Struct, frozen=True, gc=False):
    """What a constrained decoder is held to, in the one form a contract yields."""

    type: Literal["json_schema", "regex", "grammar", "choice"]
    value: str
    """JSON schema as JSON, a regular expression, an EBNF grammar, or a JSON list of strings."""


class Request(Struct, frozen=True, gc=False):
    """One question to one model. Its id is a hash of everything that could change the reply."""

    id: str
    model: str
    """Canonical model address, such as ``local:smollm2-135m-instruct``; not the label."""
    endpoint: str
    """Hash of what else addresses the model: base URL, headers, extra body, revision."""
    messages: tuple[Message, ...]
    sampling: Sampling
    seed: int
    mode: Mode = "free"
    constraint: Constraint | None = None
    kind: Literal["generate", "likelihood"] = "generate"
    parent: str | None = None
    """Id of the request whose reply this one repairs."""


class Point(Struct, frozen=True, array_like=True, gc=False):
    """One place of the grid: what was to be asked of whom, and the request that asks it."""

    model: str
    """Label of the model in the study."""
    task: str
    example_id: str
    wrapper: str
    mode: Mode
    seed: int
    request_id: str
    """Points with equal content share a request, which is asked once."""
    copy_of: str | None = None
    """Request whose deterministic reply this point repeats; never an independent draw."""


class Generation(Struct, frozen=True, gc=False):
    """The raw reply to a request, as the backend gave it."""

    request_id: str
    text: str
    finish_reason: str | None
    """``stop``, ``length`` or ``content_filter``; None where the backend did not say."""
    finish_reason_raw: str | None = None
    reasoning: str | None = None
    """Reasoning text that came apart from the reply."""
    token_ids: tuple[int, ...] | None = None
    """Ids of the completion's tokens, end token included, where the backend gives them."""
    logprobs: tuple[float, ...] | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cached_tokens: int | None = None
    reasoning_tokens: int | None = None
    served_model: str | None = None
    provider: str | None = None
    fingerprint: str | None = None
    response_id: str | None = None
    attempts: int = 1
    adaptations: tuple[str, ...] = ()
    """Parameters changed because the endpoint refused them, as ``key: what was done``."""
    started_at: str = ""
    """UTC, ISO 8601."""
    first_token_s: float | None = None
    """Seconds to the first token."""
    latency_s: float | None = None
    """Seconds from asking to the whole reply, queueing in the backend included."""
    cost: float | None = None
    """US dollars; None where unknown."""
    cost_source: str | None = None
    """``endpoint``, ``price`` (tokens times a price) or None."""
    body: bytes | None = None
    """The raw response body; None for engines without one."""


class FailureKind(StrEnum):
    """Why a request got no reply."""

    RATE_LIMIT = "rate_limit"
    SERVER = "server"
    TIMEOUT = "timeout"
    CONNECTION = "connection"  # none could be made
    CUT_OFF = "cut_off"  # it ended before a whole reply had come
    UNTRUSTED = "untrusted"  # the server's certificate was refused
    PROXY = "proxy"  # lets nothing through
    REDIRECTED = "redirected"
    AUTH = "auth"
    QUOTA = "quota"
    REFUSED_PARAMETERS = "refused_parameters"
    REFUSED = "refused"  # for another reason than what was asked
    CONTEXT_OVERFLOW = "context_overflow"
    CONTENT_FILTER = "content_filter"
    MALFORMED = "malformed"
    NOT_FOUND = "not_found"
    INTERNAL = "internal"


class Failure(Struct, frozen=True, gc=False):
    """A request that got no reply after its retries. Never wrong, never unparseable."""

    request_id: str
    kind: FailureKind
    message: str
    """What the endpoint said, secrets removed."""
    attempts: int = 1
    at: str = ""
    """UTC, ISO 8601."""
    fatal: bool = False
    """True if every further request to this model would fail alike (no such key, no credit)."""


class Extraction(Struct, frozen=True, gc=False):
    """What one extraction level made of a reply."""

    status: Status
    value: Answer | None = None
    """The answer; None unless ``status`` is ``ok``."""
    span: tuple[int, int] | None = None
    """Code-point offsets ``[start, end)`` of the answer in the raw reply, where it has a place."""
    flags: tuple[str, ...] = ()
    """Side findings: ``special_token``, ``reasoning``, ``prompt_echo``, ``changed_answer``."""


class Score(Struct, frozen=True, gc=False):
    """One generation, scored at one level."""

    status: Status
    value: Answer | None
    parsed: bool
    correct: bool


def labels(n_options: int) -> tuple[str, ...]:
    """Labels of ``n_options`` options: A–Z, then 1, 2, 3…"""
    letters = tuple("ABCDEFGHIJKLMNOPQRSTUVWXYZ"[: min(n_options, 26)])
    return letters + tuple(str(i) for i in range(1, n_options - 25))


def as_jsonable(value: object) -> Any:  # noqa: ANN401 - JSON has no narrower type
    """Plain JSON form of a record's field: tuples become lists, records become objects."""
    if isinstance(value, Struct):
        return {k: as_jsonable(getattr(value, k)) for k in value.__struct_fields__}
    if hasattr(value, "__dataclass_fields__"):
        return {k: as_jsonable(getattr(value, k)) for k in value.__dataclass_fields__}
    if isinstance(value, tuple | list):
        return [as_jsonable(item) for item in value]
    if isinstance(value, Mapping):
        return {k: as_jsonable(v) for k, v in value.items()}
    return value

"""The one protocol of a backend, and what it declares about itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, runtime_checkable

from formatspan.contracts import AnswerSpace, Contract
from formatspan.records import Answer, Failure, Generation, Message, Request

ConstraintType = Literal["json_schema", "regex", "grammar", "choice"]
Dialect = Literal["response_format", "vllm", "vllm_guided", "llama_cpp", "sglang"]
"""How a server of the OpenAI kind wants constraints to be written."""


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What a backend can do; asked once, before the first request."""

    deterministic: bool = False
    """The same greedy request always gives the same text, so repeats may be copied."""
    seed: bool = False
    """Sampling follows the request's seed."""
    token_ids: bool = False
    logprobs: bool = False
    constraints: frozenset[ConstraintType] = frozenset()
    """Constraint types the decoder can be held to; empty if it cannot constrain."""
    likelihood: bool = False
    """Scores a given reply: answers requests of kind ``likelihood``."""
    concurrency: int = 16
    """Requests in flight that suit this backend."""
    exclusive: bool = False
    """It takes the whole machine: run it alone, one model after another."""
    coached: bool = False
    """It is told each request's `Lesson` right before; such a backend is `Coached`."""


@runtime_checkable
class Tokenizer(Protocol):
    """Counts the tokens of a prompt as its model will see it, chat template included."""

    def count(self, messages: Sequence[Message]) -> int:
        """Prompt tokens of ``messages``."""
        ...


@runtime_checkable
class Decoder(Protocol):
    """A tokenizer that turns the beginnings of replies' token ids back into text."""

    def decode_all(self, replies: Sequence[Sequence[int]]) -> list[str]:
        """The text of each, without special tokens."""
        ...


@runtime_checkable
class Splitter(Protocol):
    """A tokenizer that splits a reply's text as its model wrote it."""

    def split(self, text: str) -> list[str]:
        """The tokens' texts; joined they are ``text``."""
        ...


@runtime_checkable
class Backend(Protocol):
    """Answers requests. Made by a factory ``(ModelSpec) -> Backend`` from the table.

    ``generate`` may be awaited by many tasks of one event loop at a time. It never raises for
    what the endpoint did: that is a Failure. It is cancelled when a run is abandoned.
    """

    @property
    def capabilities(self) -> Capabilities:
        """What this backend can do."""
        ...

    def tokenizer(self) -> Tokenizer | None:
        """The model's tokenizer, or None where none is at hand."""
        ...

    def describe(self) -> dict[str, str]:
        """Facts for the run's record: versions, file checksum, precision, processor."""
        ...

    async def generate(self, request: Request) -> Generation | Failure:
        """Ask once (with the backend's own retries) and return the reply or the failure."""
        ...

    async def aclose(self) -> None:
        """Release connections, threads and memory."""
        ...


@dataclass(frozen=True, slots=True)
class Lesson:
    """What stands behind a request: what a stand-in for a model must know to play its part.

    A real backend never sees one; a request carries its content only.
    """

    task: str
    example_id: str
    wrapper: str
    contract: Contract
    space: AnswerSpace
    gold: Answer


@runtime_checkable
class Coached(Protocol):
    """A backend with ``capabilities.coached``: the runner coaches it before every request."""

    def coach(self, request: Request, lesson: Lesson) -> None:
        """Take the lesson for ``request``, whose ``generate`` follows at once."""
        ...


@runtime_checkable
class Waiting(Protocol):
    """A backend that may wait long before it asks again."""

    def waiting(self) -> str | None:
        """What it waits for, on one line without secrets; None while replies come."""
        ...


@runtime_checkable
class Haltable(Protocol):
    """A backend that keeps requests back until it is their turn."""

    def halt(self) -> None:
        """Send nothing more; what was sent is still answered."""
        ...


@dataclass(frozen=True, slots=True)
class ModelSpec:
    """What a backend's factory needs to know about a model; a study's model entry, resolved."""

    name: str
    """The label in tables; unique within a study."""
    address: str
    """``scheme:rest``, such as ``local:smollm2-135m-instruct`` or ``openai:gpt-4o-mini``."""
    base_url: str | None = None
    api_key_env: str | None = None
    """Name of the environment variable that holds the key; never the key itself."""
    headers: Mapping[str, str] = field(default_factory=dict)
    extra_body: Mapping[str, Any] = field(default_factory=dict)
    revision: str | None = None
    concurrency: int | None = None
    """Requests in flight; None takes the backend's own figure."""
    price: Mapping[str, float] | None = None
    """US dollars per million tokens: ``prompt``, ``completion``."""
    constrain: Dialect | None = None
    """How the endpoint wants constraints to be written, where that cannot be told."""

    @property
    def scheme(self) -> str:
        """The part of the address that names the backend."""
        return self.address.partition(":")[0]

    @property
    def target(self) -> str:
        """The part of the address that the backend reads."""
        return self.address.partition(":")[2]

    def cost(self, prompt_tokens: int | None, completion_tokens: int | None) -> float | None:
        """US dollars by ``price``; None without a price or where a count is missing."""
        if self.price is None or prompt_tokens is None or completion_tokens is None:
            return None
        dollars = prompt_tokens * self.price.get("prompt", 0.0)
        dollars += completion_tokens * self.price.get("completion", 0.0)
        return dollars / 1e6

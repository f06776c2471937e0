"""What a reader finds, and what the levels ask of a reader."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from formatspan.records import Answer


class Hit(NamedTuple):
    """An answer in a text, or two that exclude each other."""

    value: Answer | None
    """None where two different candidates stand side by side."""
    start: int
    end: int


class Finding(NamedTuple):
    """A hit with what the levels need to know about it."""

    hit: Hit
    explicit: bool = True
    """False for evidence that a longer reply could still overturn, such as the last number."""
    changed: bool = False
    """Whether an earlier answer differs."""


class Reader(Protocol):
    """Reads the answers of one kind. One instance serves every reply to an answer space.

    All positions are offsets into the text given. A hit is returned only for an answer of
    the space; None means that there is none here.
    """

    def exact(self, body: str) -> Answer | None:
        """The answer that ``body`` is, letter by letter as the contract asks."""
        ...

    def exact_json(self, value: object) -> Answer | None:
        """The answer that a JSON value of the asked type is."""
        ...

    def whole(self, text: str, start: int, end: int) -> Hit | None:
        """The answer that ``text[start:end]`` is after normalisation."""
        ...

    def whole_leniently(self, text: str, start: int, end: int) -> Hit | None:
        """The answer that ``text[start:end]`` is, in any usual way of writing it."""
        ...

    def json_value(self, value: object) -> Answer | None:
        """The answer that a JSON scalar other than a string stands for."""
        ...

    def after_cue(self, text: str, start: int) -> Hit | None:
        """The answer that stands right behind a cue ending at ``start``."""
        ...

    def prose(self, text: str) -> str:
        """The text, of the same length, with echoes of the prompt blanked out."""
        ...

    def anywhere(self, text: str) -> Finding | None:
        """The only answer that a text without cue or box gives."""
        ...


def agree(hits: list[Hit]) -> Hit | None:
    """The last of hits that agree, a conflict if they do not, None if there are none."""
    if not hits:
        return None
    last = hits[-1]
    if all(hit.value == hits[0].value for hit in hits):
        return last
    return Hit(None, hits[0].start, last.end)

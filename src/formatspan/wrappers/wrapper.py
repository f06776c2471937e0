"""A wrapper: message templates and the contract of the reply, both plain data.

Templates are Jinja2 in a sandbox (`formatspan.wrappers.sandbox`) and see ``instruction``,
``context``, ``question``, ``options`` (each with ``label``, empty where the option's text is
asked for, and ``text``), ``answer`` and ``quoted_answer`` (the answer vocabulary, bare and as
JSON) and ``padding``.
Values are filled in verbatim: a template never escapes, strips or repeats content.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from formatspan.contracts import Contract, Form
from formatspan.errors import WrapperError
from formatspan.records import Kind, Message, labels
from formatspan.wrappers.sandbox import fill

SLOT = "\U0010ffff"
"""Stands for the padding while a template is rendered: a noncharacter, so never in a text."""


@dataclass(frozen=True, slots=True)
class Wrapper:
    """The shell around a question."""

    name: str
    messages: tuple[Message, ...]
    """Templates in the place of contents."""
    contract: Contract


@dataclass(frozen=True, slots=True)
class Content:
    """What a wrapper is filled with: the same for all wrappers."""

    instruction: str
    question: str
    context: str
    options: tuple[str, ...]
    kind: Kind
    form: Form = "label"
    words: tuple[str, str] | None = None


@dataclass(frozen=True, slots=True)
class Rendered:
    """A filled wrapper whose padding slot is still open."""

    messages: tuple[Message, ...]
    """Contents hold ``SLOT`` once, in the message at ``slot``."""
    slot: int
    """Index of the message with the padding slot."""

    @property
    def chars(self) -> int:
        """Code points over all messages without padding."""
        return sum(len(m.content) for m in self.messages) - len(SLOT)

    def padded(self, padding: str) -> tuple[Message, ...]:
        """The messages with ``padding`` in the slot."""
        return tuple(
            Message(m.role, m.content.replace(SLOT, padding)) if i == self.slot else m
            for i, m in enumerate(self.messages)
        )


def render(wrapper: Wrapper, content: Content) -> Rendered:
    """Fill ``wrapper`` with ``content``, leaving the padding slot open.

    Raises:
        WrapperError: The template fails, or does not hold the padding slot exactly once.
    """
    values = _values(content)
    messages = tuple(
        Message(m.role, _fill(wrapper.name, m.content, values)) for m in wrapper.messages
    )
    slots = [i for i, m in enumerate(messages) if SLOT in m.content]
    if len(slots) != 1 or messages[slots[0]].content.count(SLOT) != 1:
        raise WrapperError(f"wrapper {wrapper.name!r}: expected {{{{ padding }}}} exactly once")
    return Rendered(messages, slots[0])


def vocabulary(content: Content, *, quoted: bool = False) -> str:
    """The answers a prompt names, such as ``A, B, C or D``; as JSON values if ``quoted``."""
    if content.kind == "number":
        return "a number"
    if content.kind == "choice" and content.form == "text":
        return "one of the options" + (" as a string" if quoted else "")
    if content.kind == "choice":
        words: Sequence[str] = labels(len(content.options))
    else:
        words = content.words or ("yes", "no")
    bare = content.kind == "boolean" and tuple(words) == ("true", "false")
    shown = [json.dumps(w) if quoted and not bare else w for w in words]
    return ", ".join(shown[:-1]) + " or " + shown[-1] if len(shown) > 1 else shown[0]


@lru_cache(maxsize=64)
def _values(content: Content) -> Mapping[str, Any]:
    """What templates see; the same for all wrappers of an example, which come one by one."""
    named = labels(len(content.options)) if content.form == "label" else [""] * 99
    return {
        "instruction": content.instruction,
        "question": content.question,
        "context": content.context,
        "options": [
            {"label": label, "text": text}
            for label, text in zip(named, content.options, strict=False)
        ],
        "answer": vocabulary(content),
        "quoted_answer": vocabulary(content, quoted=True),
        "padding": SLOT,
    }


def _fill(name: str, source: str, values: Mapping[str, Any]) -> str:
    try:
        return fill(source, values)
    except WrapperError as error:
        raise WrapperError(f"wrapper {name!r}: template: {error}") from None

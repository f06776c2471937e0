"""Secrets: held so that no representation shows them, and taken out of what comes back.

An endpoint, or a proxy before it, may echo a request's headers in an error text or a reply.
Whatever is stored, raised or logged goes through a `Redactor` first.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Generic, TypeVar

MIN_LENGTH = 8
"""Characters from which a value counts as a secret. Servers without keys are given dummies such
as ``EMPTY`` or ``x``; taking those out would damage replies that hold them by chance."""

MASK = "[secret]"

T = TypeVar("T")


class Secret(Generic[T]):
    """A value that no representation shows."""

    __slots__ = ("_value",)

    def __init__(self, value: T) -> None:
        self._value = value

    def reveal(self) -> T:
        """The value itself, for the one place that sends it."""
        return self._value

    def __repr__(self) -> str:
        return f"Secret({MASK})"


class Redactor:
    """Takes given secrets out of texts and bodies, also where they are escaped.

    Args:
        secrets: ASCII texts that must not come out; those shorter than `MIN_LENGTH` are left
            alone.
    """

    __slots__ = ("_body", "_text")

    def __init__(self, secrets: Iterable[Secret[str]]) -> None:
        texts = {s.reveal() for s in secrets if len(s.reveal()) >= MIN_LENGTH}
        # The longest first: one secret may hold another.
        spellings = [_spellings(text) for text in sorted(texts, key=len, reverse=True)]
        pattern = "|".join(spellings) or r"(?!)"
        self._text = Secret(re.compile(pattern))
        self._body = Secret(re.compile(pattern.encode()))

    def text(self, text: str) -> str:
        """``text`` with every secret masked."""
        return self._text.reveal().sub(MASK, text)

    def body(self, body: bytes) -> bytes:
        """``body`` (UTF-8) with every secret masked."""
        return self._body.reveal().sub(MASK.encode(), body)


def _spellings(text: str) -> str:
    r"""A pattern for a text as it is, inside JSON (``\/``, ``\u002d``) and inside a URL (``%2D``).

    JSON inside a JSON string doubles the backslashes, hence up to four.
    """
    pattern = ""
    for i, char in enumerate(text):
        code = f"{ord(char):02x}"
        # A backslash before a first letter belongs to what stands before, such as a line end.
        escape = "" if i == 0 and char.isalnum() else r"\\{0,4}"
        pattern += rf"(?:{escape}{re.escape(char)}|\\{{1,4}}u00(?i:{code})|%(?i:{code}))"
    return pattern

r"""Secrets: held so that no representation shows them, and taken out of what comes back.

An endpoint, or a proxy before it, may echo a request's headers in an error text or a reply.
Whatever is stored, raised or logged goes through a `Redactor` first. It knows a secret as it is,
inside JSON (``\/``, ``\u002d``), inside a URL (``%2D``) and HTML (``&#45;``), in base64 and in
hexadecimal; where one shows in a spelling that cannot be cut out, cut in pieces for example, the
whole text is withheld.
"""

from __future__ import annotations

import base64
import html
import re
from collections.abc import Iterable
from typing import Generic, TypeVar
from urllib.parse import unquote

MIN_LENGTH = 8
"""Characters from which a value counts as a secret. Servers without keys are given dummies such
as ``EMPTY`` or ``x``; taking those out would damage replies that hold them by chance."""

SURE_LENGTH = 16
"""Letters and digits from which a secret is recognised without what stands between them."""

MASK = "[secret]"
WITHHELD = "[withheld: it held a secret]"

T = TypeVar("T")

_BETWEEN = bytes(i for i in range(256) if not chr(i).isascii() or not chr(i).isalnum())
_ESCAPES = re.compile(r"\\{1,4}u00([0-9a-fA-F]{2})")
_ROUNDS = 3
"""Layers of escapes that are undone in search of a secret."""


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

    __slots__ = ("_hints", "_pattern", "_sure")

    def __init__(self, secrets: Iterable[Secret[str]]) -> None:
        texts = {s.reveal() for s in secrets if len(s.reveal()) >= MIN_LENGTH}
        # The longest first: one secret may hold another.
        ordered = sorted(texts, key=len, reverse=True)
        spellings = [_spellings(text) for text in ordered]
        spellings += [re.escape(code) for text in ordered for code in _codes(text)]
        self._pattern = Secret(re.compile("|".join(spellings)) if spellings else None)
        self._hints = Secret(tuple(n for text in ordered for n in _needles(text)))
        # A dummy such as ``not-needed`` would be found in any text that says it is not needed.
        sure = [text for text in ordered if sum(map(str.isalnum, text)) >= SURE_LENGTH]
        self._sure = Secret(tuple(n for text in sure for n in _needles(text)))

    def text(self, text: str) -> str:
        """``text`` with every secret masked."""
        pattern = self._pattern.reveal()
        if pattern is None or not self._suspects(text.encode("utf-8", "replace")):
            return text
        masked = pattern.sub(MASK, text)
        return WITHHELD if self._shows(masked) else masked

    def body(self, body: bytes) -> bytes:
        """``body`` with every secret masked; all but plain UTF-8 is kept as it is otherwise."""
        if self._pattern.reveal() is None or not self._suspects(body):
            return body
        text = body.decode("utf-8", "surrogateescape")
        masked = self.text(text)
        return body if masked == text else masked.encode("utf-8", "surrogateescape")

    def _suspects(self, body: bytes) -> bool:
        """Whether a closer look is due: cheap, since every reply goes through it."""
        # By `bytes.find`: ``in`` takes its left side for a number first, and makes an error of it.
        find = body.find
        escaped = find(b"\\") >= 0
        if (escaped and find(b"\\u00") >= 0) or find(b"%") >= 0 or find(b"&#") >= 0:
            return True
        find = (_squeezed(body) if escaped else body.translate(None, _BETWEEN)).find
        for needle in self._hints.reveal():  # noqa: SIM110 - any() costs three times as much
            if find(needle) >= 0:
                return True
        return False

    def _shows(self, text: str) -> bool:
        """Whether a secret is there after every escape is undone and all between is left out."""
        for _ in range(_ROUNDS):
            squeezed = _squeezed(text.encode("utf-8", "replace"))
            if any(needle in squeezed for needle in self._sure.reveal()):
                return True
            plain = html.unescape(unquote(_ESCAPES.sub(_unescaped, text)))
            if plain == text:
                return False
            text = plain
        return False


def _squeezed(body: bytes) -> bytes:
    """Letters and digits only; those of escaped line ends are none."""
    for escape in (b"\\n", b"\\r", b"\\t"):
        body = body.replace(escape, b"")
    return body.translate(None, _BETWEEN)


def _unescaped(match: re.Match[str]) -> str:
    return chr(int(match[1], 16))


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


def _codes(text: str) -> list[str]:
    """What is sure to show of a text in base64, at each of its three alignments, and in hex."""
    raw, codes = text.encode(), [text.encode().hex(), text.encode().hex().upper()]
    for lead in range(3):
        # The first and the last characters also depend on what stands around.
        encoded = base64.b64encode(b"\0" * lead + raw).rstrip(b"=").decode()
        inner = encoded[(0, 2, 3)[lead] : -1 if (lead + len(raw)) % 3 else None]
        codes += [inner, inner.replace("+", "-").replace("/", "_")]
    return codes


def _needles(text: str) -> list[bytes]:
    """What to look for where everything but letters and digits is left out."""
    needles = (spelled.encode().translate(None, _BETWEEN) for spelled in (text, *_codes(text)))
    return list(dict.fromkeys(needles))

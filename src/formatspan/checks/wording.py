"""What endpoints say, without what only their programmers read."""

from __future__ import annotations

import re

_CLASS = r"(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Failure|Warning)"
_NAMED = re.compile(rf"\b{_CLASS}\b(?:\s*(?::|-)\s+|\s*\((?=[^()]*\)$))?")
"""A class of exceptions, with what ties it to the message."""
_NUMBERED = re.compile(r"\s*\(os error \d+\)")
_KEYED = re.compile(r"(?:code|type|param|provider|reasons)\s*")
"""A key of an error object whose value was nothing but a class."""


def plainly(message: str) -> str:
    """``message`` on one line, each part once, without names of exception classes.

    A message that is nothing else stays as it is.
    """
    text = _NUMBERED.sub("", " ".join(message.split()))
    parts: list[str] = []
    for part in text.split("; "):
        clean = _NAMED.sub("", part).strip(" :-")
        again = re.compile(rf"(?<!\w){re.escape(clean.removeprefix('code '))}(?!\w)")
        repeated = any(again.search(earlier) for earlier in parts)
        if clean and not _KEYED.fullmatch(clean) and not repeated:
            parts.append(clean)
    return "; ".join(parts) or text

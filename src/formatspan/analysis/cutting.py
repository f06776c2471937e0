"""Replies as they would have been at a smaller length cap: their first tokens.

Exact where the backend gave token ids and the model's tokenizer is at hand, or where that
tokenizer splits the text into as many tokens as were counted. Else the counted tokens are
spread evenly over the words and marks of the text, and the result says so.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from enum import StrEnum

from formatspan.backends.base import Decoder, ModelSpec, Splitter
from formatspan.backends.table import open_backend
from formatspan.errors import FormatspanError
from formatspan.table import RawReply

OFFLINE = ("local", "scripted")
"""Schemes whose tokenizer can be opened without asking anybody."""
Beginnings = dict[int, str]
_PIECE = re.compile(r"\s*(?:[^\W\d_]{1,6}|\d{1,3}|[^\w\s]|_)|\s+")


class How(StrEnum):
    """By what a reply is cut, the best first."""

    TOKEN_IDS = "the backend's token ids"
    TOKENIZER = "the model's tokenizer"
    ESTIMATE = "an estimate: counted tokens spread over words and marks"

    @property
    def exact(self) -> bool:
        """Whether the cut is where the model would have stopped."""
        return self is not How.ESTIMATE


class Cuttable:
    """One reply and what is left of it at smaller caps; made by `cuttables`.

    Args:
        reply: With a text.
        beginnings: Its beginnings by number of tokens, where they were decoded.
        tokenizer: Of its model, where it is at hand.
    """

    def __init__(self, reply: RawReply, beginnings: Beginnings, tokenizer: object) -> None:
        self.text = reply.text or ""
        self._end = int(reply.finish_reason != "length")  # the end token counts as well
        self._beginnings = beginnings
        counted = max(beginnings) if beginnings else reply.completion_tokens
        split = tokenizer.split(self.text) if isinstance(tokenizer, Splitter) else None
        if split is not None and counted in (None, len(split) + self._end):
            self.how, self._pieces = How.TOKENIZER, split
        else:
            self.how = How.TOKEN_IDS if beginnings else How.ESTIMATE
            self._pieces = _PIECE.findall(self.text)
        self.tokens = len(self._pieces) + self._end if counted is None else counted
        """Of the reply, with its end token if it has one."""

    def first(self, tokens: int) -> str:
        """The text of the first tokens, of fewer than it has and at one of the caps."""
        if self._beginnings:
            return self._beginnings[tokens]
        written = max(1, self.tokens - self._end)
        pieces = min(len(self._pieces), tokens * len(self._pieces) // written)
        return "".join(self._pieces[:pieces])


def cuttables(
    replies: Sequence[RawReply], tokenizer: object, caps: Sequence[int]
) -> list[Cuttable]:
    """Replies of one model, ready to be cut at any of the caps."""
    decoded = _decoded(replies, tokenizer, caps)
    return [Cuttable(r, b, tokenizer) for r, b in zip(replies, decoded, strict=True)]


def _decoded(
    replies: Sequence[RawReply], tokenizer: object, caps: Sequence[int]
) -> list[Beginnings]:
    """Beginnings of every reply; none where another tokenizer than theirs is at hand."""
    if not isinstance(tokenizer, Decoder):
        return [{} for _ in replies]
    ids: list[list[int]] = [json.loads(r.token_ids or "[]") for r in replies]
    kept = [[*(cap for cap in caps if cap < len(i)), len(i)] for i in ids]
    # All in one call, which costs hardly more than decoding one.
    said = iter(tokenizer.decode_all([i[:n] for i, ns in zip(ids, kept, strict=True) for n in ns]))
    found = []
    for reply, ns in zip(replies, kept, strict=True):
        text, texts = reply.text or "", [next(said) for _ in ns]
        # A character that is cut in its middle decodes to a mark that the reply does not hold.
        begun = {n: text[: _agree(t, text)] for n, t in zip(ns, texts, strict=True)}
        found.append(begun if ns[-1] and texts[-1].startswith(text) else {})
    return found


def _agree(a: str, b: str) -> int:
    """How many characters two texts begin with alike."""
    if b.startswith(a):
        return len(a)
    return next(i for i, c in enumerate(a) if i >= len(b) or b[i] != c)


def tokenizer_of(spec: ModelSpec) -> object:
    """The model's tokenizer, if it can be had on this machine without asking anybody."""
    if spec.scheme not in OFFLINE:
        return None
    try:
        return open_backend(spec).tokenizer()
    except (FormatspanError, OSError, RuntimeError):  # say, its file is on another machine
        return None

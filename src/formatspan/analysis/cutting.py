"""Replies as they would have been at a smaller length cap: their first tokens.

Exact where the backend gave token ids and the model's tokenizer is at hand, or where that
tokenizer splits the text into as many tokens as were counted. Else the counted tokens are
spread evenly over the words and marks of the text, and the result says so.
"""

from __future__ import annotations

import json
import re
from enum import StrEnum

from formatspan.backends.base import Decoder, ModelSpec, Splitter
from formatspan.backends.table import open_backend
from formatspan.errors import FormatspanError
from formatspan.table import RawReply

OFFLINE = ("local", "scripted")
"""Schemes whose tokenizer can be opened without asking anybody."""
_REPLACEMENT = "\ufffd"
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
    """One reply that can be cut.

    Args:
        reply: With a text.
        tokenizer: Of its model, where it is at hand.
    """

    def __init__(self, reply: RawReply, tokenizer: object) -> None:
        self.text = reply.text or ""
        self._end = int(reply.finish_reason != "length")  # the end token counts as well
        self._ids = _ids(reply, self.text, tokenizer)
        self._decoder = tokenizer if isinstance(tokenizer, Decoder) else None
        counted = len(self._ids) if self._ids else reply.completion_tokens
        split = tokenizer.split(self.text) if isinstance(tokenizer, Splitter) else None
        if split is not None and counted in (None, len(split) + self._end):
            self.how, self._pieces = How.TOKENIZER, split
        else:
            self.how = How.TOKEN_IDS if self._ids else How.ESTIMATE
            self._pieces = [] if self._ids else _PIECE.findall(self.text)
        self.length = len(self._pieces) + self._end if counted is None else counted
        """Tokens, the end token among them."""

    def first(self, tokens: int) -> str:
        """The text of the first tokens; of fewer than it has."""
        if self._ids and self._decoder:
            said = self._decoder.decode(self._ids[:tokens]).rstrip(_REPLACEMENT)
            return self.text[: _agree(said, self.text)]
        written = max(1, self.length - self._end)
        pieces = min(len(self._pieces), tokens * len(self._pieces) // written)
        return "".join(self._pieces[:pieces])


def _agree(a: str, b: str) -> int:
    """How many characters two texts begin with alike."""
    if b.startswith(a):
        return len(a)
    return next(i for i, c in enumerate(a) if i >= len(b) or b[i] != c)


def _ids(reply: RawReply, text: str, tokenizer: object) -> list[int]:
    """Token ids that give the text back; none where another tokenizer than theirs is at hand."""
    if reply.token_ids is None or not isinstance(tokenizer, Decoder):
        return []
    ids: list[int] = json.loads(reply.token_ids)
    whole = tokenizer.decode(ids)
    return ids if whole.startswith(text.rstrip(_REPLACEMENT)) else []


def tokenizer_of(spec: ModelSpec) -> object:
    """The model's tokenizer, if it can be had on this machine without asking anybody."""
    if spec.scheme not in OFFLINE:
        return None
    try:
        return open_backend(spec).tokenizer()
    except (FormatspanError, OSError, RuntimeError):  # say, its file is on another machine
        return None

"""What a stub says of given tokens, as vLLM and llama.cpp's server do.

Words stand for tokens. A log-probability is drawn from a hash of all tokens up to its own, so
that both ways of asking score a reply alike.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from formatspan.stub.replies import draw

_PIECE = re.compile(r"\s?\w+|\s?[^\w\s]|\s")
_NUMBERS = re.compile(r"<\[(\d+)\]>")
VOCABULARY = 1 << 20
LEAST = -4.0
"""Smallest log-probability that is drawn."""


def template(messages: object) -> str:
    """The prompt of a chat, up to where the reply begins."""
    given = messages if isinstance(messages, list) else []
    said = [f"[{m.get('role')}] {m.get('content')}" for m in given if isinstance(m, Mapping)]
    return "\n".join([*said, "[assistant] "])


def pieces(text: str) -> list[str]:
    """A text's tokens; joined they are the text."""
    return _PIECE.findall(text)


def number_of(piece: str) -> int:
    """A token's id."""
    return draw(piece) % VOCABULARY


def tokenized(body: Mapping[str, Any]) -> dict[str, Any]:
    """What ``/tokenize`` says."""
    return {"tokens": [number_of(piece) for piece in pieces(str(body.get("content")))]}


def scores_in(body: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a reply that hold log-probabilities, where they were asked for."""
    if body.get("prompt_logprobs"):
        return {"prompt_logprobs": _of_prompt(body.get("messages"))}
    prompt, wanted = body.get("prompt"), _NUMBERS.findall(str(body.get("grammar")))
    if not isinstance(prompt, list) or not wanted:
        return {}
    numbers = [int(number) for number in wanted]
    values = list(_logprobs([*prompt, *numbers]))[len(prompt) :]
    told = [{"id": i, "logprob": value} for i, value in zip(numbers, values, strict=True)]
    return {"completion_probabilities": told, "tokens_evaluated": len(prompt)}


def _of_prompt(messages: object) -> list[dict[str, Any] | None]:
    """What vLLM says of a prompt whose last message goes on; nothing of its first token."""
    *before, last = messages if isinstance(messages, list) and messages else [{}]
    text = last.get("content") if isinstance(last, Mapping) else ""
    words = [*pieces(template(before)), *pieces(str(text))]
    found: list[dict[str, Any] | None] = []
    for word, value in zip(words, _logprobs([number_of(w) for w in words]), strict=True):
        other = {"logprob": value / 2, "rank": 1, "decoded_token": " likelier"}
        told = {"logprob": value, "rank": 2, "decoded_token": word}
        found.append({str(number_of(word)): told, str(VOCABULARY): other} if found else None)
    return found


def _logprobs(numbers: Sequence[int]) -> Iterator[float]:
    known = hashlib.blake2b(digest_size=8)
    for number in numbers:
        known.update(b"%d " % number)
        yield LEAST * int.from_bytes(known.digest()) / 2**64

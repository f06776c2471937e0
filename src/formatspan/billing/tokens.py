"""How many tokens a prompt will be: by the tokenizer where one is at hand, else from characters.

The ratios are those of SmolLM2's tokenizer on prompts of the seven data sets under all five
wrappers, rounded to the dear side; other tokenizers differ by a fifth or so. Where a run has
replies already, the endpoint's own counts mend the estimate.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

from formatspan.backends.base import Tokenizer
from formatspan.records import Message, Prompt
from formatspan.store import Store

TEXT_CHARS = 4.5
"""Characters of text in a token."""
PAD_CHARS = 40.0
"""Spaces of padding in a token: runs of them merge."""
TEMPLATE_TOKENS = 45.0
"""Tokens that a chat template adds to a prompt."""

Counted = Literal["tokenizer", "replies", "characters"]


def from_characters(text_chars: float, pad_chars: float, prompts: float = 1.0) -> float:
    """Tokens of prompts with so many characters in all."""
    return text_chars / TEXT_CHARS + pad_chars / PAD_CHARS + prompts * TEMPLATE_TOKENS


class Stored(NamedTuple):
    """What the replies of one model to one wrapper's prompts in a run came to."""

    replies: int
    prompt_tokens: int
    """Of the replies that count them."""
    text_chars: int
    """Of the same replies' prompts."""
    pad_chars: int
    counted: int
    """Replies that count their prompt's tokens."""
    completion_tokens: int
    completed: int
    """Replies that count their own tokens."""
    cached_tokens: int
    latency_s: float
    timed: int
    """Replies whose latency is known; ``latency_s`` is their sum."""
    cost: float
    priced: int
    """Replies whose cost is known; ``cost`` is their sum, in US dollars."""


NOTHING = Stored(0, 0, 0, 0, 0, 0, 0, 0, 0.0, 0, 0.0, 0)

_STORED = """
SELECT p.model, p.wrapper, count(*), sum(g.prompt_tokens),
  sum(CASE WHEN g.prompt_tokens IS NULL THEN 0 ELSE q.chars - q.pad_chars END),
  sum(CASE WHEN g.prompt_tokens IS NULL THEN 0 ELSE q.pad_chars END),
  count(g.prompt_tokens), sum(g.completion_tokens), count(g.completion_tokens),
  sum(g.cached_tokens), sum(g.latency_s), count(g.latency_s), sum(g.cost), count(g.cost)
FROM points p JOIN prompts q USING (tokenizer, task, example_id, wrapper)
JOIN generations g USING (request)
WHERE p.copy_of IS NULL AND p.id = (SELECT min(id) FROM points WHERE request = p.request)
GROUP BY 1, 2 ORDER BY min(p.id)
"""


def stored_replies(store: Store) -> dict[tuple[str, str], Stored]:
    """What is in a run's store, by (model, wrapper), in the order of asking; each request once."""
    rows = store.connection.execute(_STORED)
    return {(m, w): Stored(*(value or 0 for value in figures)) for m, w, *figures in rows}


def added(parts: list[Stored]) -> Stored:
    """Several wrappers' replies together."""
    return Stored(*map(sum, zip(NOTHING, *parts, strict=True))) if parts else NOTHING


@dataclass(frozen=True)
class TokenCount:
    """Counts the prompt tokens of one model."""

    tokenizer: Tokenizer | None
    factor: float = 1.0
    """Tokens that the endpoint counted over those estimated from the same characters."""
    measured: bool = False
    """Whether ``factor`` is from replies."""

    @classmethod
    def of(cls, tokenizer: Tokenizer | None, before: Stored) -> TokenCount:
        """The counter of a model with these replies so far."""
        estimate = from_characters(before.text_chars, before.pad_chars, before.counted)
        if not before.counted or tokenizer is not None:
            return cls(tokenizer)
        return cls(None, before.prompt_tokens / estimate, measured=True)

    @property
    def source(self) -> Counted:
        """What the figures rest on."""
        if self.tokenizer is not None:
            return "tokenizer"
        return "replies" if self.measured else "characters"

    def of_prompt(self, prompt: Prompt, system: tuple[Message, ...]) -> float:
        """Tokens of one prompt with the messages before it."""
        if self.tokenizer is not None:
            return self.tokenizer.count((*system, *prompt.messages))
        chars = prompt.chars - prompt.pad_chars + sum(len(m.content) for m in system)
        return self.of_chars(chars, prompt.pad_chars)

    def of_chars(self, text_chars: float, pad_chars: float) -> float:
        """Tokens of a prompt of which only the length is known."""
        return self.factor * from_characters(text_chars, pad_chars)

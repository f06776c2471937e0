"""Translates a request into the engine's own terms, and back."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from formatspan.backends.local.gguf_file import Facts
from formatspan.backends.local.runtime import genai
from formatspan.contracts import escaped
from formatspan.records import Constraint, Message, Request

TOKENIZER_LIMIT = 8192
"""Tokens at which the engine's tokenizer cuts a text off, whatever it is told."""

_CACHED_COUNTS = 1 << 16


class ChatTokenizer:
    """The model's tokenizer and chat template: what `formatspan.backends.base.Tokenizer` asks.

    Args:
        engine_tokenizer: The engine's tokenizer; any number of threads may use it.
        facts: Facts of the model file.
    """

    def __init__(self, engine_tokenizer: Any, facts: Facts) -> None:  # noqa: ANN401
        self._tokenizer = engine_tokenizer
        self._add_bos = facts.add_bos
        self._bos = str(engine_tokenizer.get_bos_token())
        self._count = lru_cache(_CACHED_COUNTS)(self._count_uncached)

    def count(self, messages: Sequence[Message]) -> int:
        """Prompt tokens of ``messages``, exactly as the model is given them.

        Counts end at `TOKENIZER_LIMIT`; such prompts are never given to a model.
        """
        return self._count(tuple(messages))

    def render(self, messages: Sequence[Message]) -> str:
        """The prompt's text: the chat template, open for the assistant's turn."""
        chat = [{"role": m.role, "content": m.content} for m in messages]
        return str(self._tokenizer.apply_chat_template(chat, add_generation_prompt=True))

    def encode(self, messages: Sequence[Message]) -> Any:  # noqa: ANN401
        """Prompt tokens as the engine's tensor of shape (1, tokens)."""
        text = self.render(messages)
        # Most templates write the first token themselves; two of it would change replies.
        special = self._add_bos and not text.startswith(self._bos)
        return self._tokenizer.encode(text, add_special_tokens=special).input_ids

    def encode_reply(self, reply: str) -> tuple[int, ...]:
        """Tokens of a reply by itself, as a model would write it behind its prompt."""
        ids = self._tokenizer.encode(reply, add_special_tokens=False).input_ids
        return tuple(int(i) for i in ids.data[0])

    def decode(self, token_ids: Sequence[int]) -> str:
        """Text of a reply, without special tokens."""
        return str(self._tokenizer.decode(list(token_ids), skip_special_tokens=True))

    def decode_all(self, replies: Sequence[Sequence[int]]) -> list[str]:
        """Texts of several replies, without special tokens; one call is much faster than many."""
        filled = [list(ids) for ids in replies if ids]
        if not filled:
            return [""] * len(replies)
        texts = iter(self._tokenizer.decode(filled, skip_special_tokens=True))
        return [str(next(texts)) if ids else "" for ids in replies]

    def _count_uncached(self, messages: tuple[Message, ...]) -> int:
        return int(self.encode(messages).shape[1])


def generation_config(request: Request, stop_ids: Sequence[int]) -> Any:  # noqa: ANN401
    """The engine's parameters of a request: greedy at temperature 0, else seeded sampling."""
    sampling = request.sampling
    config = genai().GenerationConfig()
    config.apply_chat_template = False  # done, so that the tokens counted are those given
    config.max_new_tokens = sampling.max_tokens
    config.set_eos_token_id(stop_ids[0])
    config.stop_token_ids = set(stop_ids)
    config.logprobs = 1
    if sampling.stop:
        config.stop_strings = set(sampling.stop)
    if sampling.temperature > 0:
        config.do_sample = True
        config.temperature = sampling.temperature
        config.top_p = sampling.top_p
        config.rng_seed = request.seed
    if request.constraint is not None:
        config.structured_output_config = _structured(request.constraint)
    config.validate()
    return config


class Reply(NamedTuple):
    """What the engine made of a request."""

    text: str
    finish_reason: str | None
    finish_reason_raw: str
    token_ids: tuple[int, ...]
    logprobs: tuple[float, ...]


def read_reply(tokenizer: ChatTokenizer, stop: Sequence[str], output: Any) -> Reply:  # noqa: ANN401
    """The reply in the engine's output."""
    ids = tuple(int(i) for i in output.generated_ids)
    raw = str(output.finish_reason.name)
    return Reply(
        text=_before(tokenizer.decode(ids), stop),
        finish_reason={"STOP": "stop", "LENGTH": "length"}.get(raw),
        finish_reason_raw=raw,
        token_ids=ids,
        logprobs=tuple(float(p) for p in output.generated_log_probs),
    )


def _before(text: str, stop: Sequence[str]) -> str:
    """``text`` up to the first stop string, which may end inside a token."""
    return text[: min([at for s in stop if (at := text.find(s)) >= 0], default=len(text))]


def _structured(constraint: Constraint) -> Any:  # noqa: ANN401
    config = genai().StructuredOutputConfig()
    if constraint.type == "choice":
        config.regex = "|".join(f"(?:{escaped(text)})" for text in json.loads(constraint.value))
    else:
        setattr(config, constraint.type, constraint.value)
    return config

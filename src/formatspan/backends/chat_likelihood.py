"""The likelihood of a given reply, from servers that tell log-probabilities of given tokens.

vLLM scores a prompt's own tokens (``prompt_logprobs``,
https://docs.vllm.ai/en/latest/serving/openai_compatible_server.html): the reply is sent as an
unfinished assistant message, and its tokens end the prompt. llama.cpp's server scores what it
writes, before a grammar takes effect, so it is held to the reply's tokens, one by one
(https://github.com/ggml-org/llama.cpp/blob/master/grammars/README.md, "Tokens"); a grammar of
the reply's characters would be met in tokens that the model would not choose.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, NamedTuple

from formatspan.backends.base import Dialect, ModelSpec
from formatspan.backends.chat_fault import Fault, clip
from formatspan.backends.chat_reply import Usage
from formatspan.backends.chat_request import chat_body
from formatspan.records import FailureKind, Request

CHAT = ""
"""Stands for the endpoint's own path, which chats are asked at."""


class Told(NamedTuple):
    """One whole response."""

    parsed: Mapping[str, Any]
    body: bytes


class Scores(NamedTuple):
    """What a server said of a reply's tokens."""

    logprobs: tuple[float, ...]
    """Natural logarithms, one a token of the reply."""
    token_ids: tuple[int, ...]
    usage: Usage
    """The prompt without the reply, and the reply."""
    served_model: str | None
    body: bytes
    """The response that holds the log-probabilities."""


Post = Callable[[str, dict[str, Any]], Awaitable[Told | Fault]]
"""Sends a body to `CHAT`, or to a path below the server's root."""

Scorer = Callable[[ModelSpec, Request, Post], Awaitable[Scores | Fault]]


async def _vllm(spec: ModelSpec, request: Request, post: Post) -> Scores | Fault:
    asked = chat_body(spec, request) | {
        "max_tokens": 1,
        "prompt_logprobs": 1,  # 0 counts as unset in some versions
        "add_generation_prompt": False,
        "continue_final_message": True,
    }
    told = await post(CHAT, asked)
    if isinstance(told, Fault):
        return told
    tokens = _prompt_tokens(told.parsed.get("prompt_logprobs"))
    if tokens is None:
        text = "no prompt_logprobs came back: the server does not score prompts"
        return Fault(FailureKind.REFUSED_PARAMETERS, text, fatal=True)
    count = _tail(tokens, request.messages[-1].content)
    if count is None:
        end = "".join(token.text for token in tokens[-8:])
        text = f"the prompt that was scored does not end in the reply, but in {end!r}"
        return _malformed(text)
    prompt, reply = len(tokens) + 1 - count, tokens[-count:]
    usage = Usage(prompt_tokens=prompt, completion_tokens=count)
    logprobs = tuple(token.logprob for token in reply)
    ids = tuple(token.id for token in reply)
    return Scores(logprobs, ids, usage, _string(told.parsed.get("model")), told.body)


async def _llama_cpp(spec: ModelSpec, request: Request, post: Post) -> Scores | Fault:
    *messages, answer = request.messages
    shell = {"messages": [{"role": m.role, "content": m.content} for m in messages]}
    if (settings := spec.extra_body.get("chat_template_kwargs")) is not None:
        shell["chat_template_kwargs"] = settings
    told = await post("/apply-template", {"model": spec.target, **shell})
    if isinstance(told, Fault):
        return told
    ids = []
    for text, special in ((told.parsed.get("prompt"), True), (answer.content, False)):
        asked = {"content": text, "add_special": special, "parse_special": special}
        told = await post("/tokenize", {"model": spec.target, **asked})
        if isinstance(told, Fault):
            return told
        found = _ids(told.parsed.get("tokens"))
        if not found:
            return _malformed(f"/tokenize gave {told.parsed.get('tokens')!r}")
        ids.append(found)
    prompt, reply = ids
    asked = {
        "prompt": prompt,
        "n_predict": len(reply),
        "grammar": "root ::= " + " ".join(f"<[{i}]>" for i in reply),
        "n_probs": 1,
        "temperature": 0.0,
        "cache_prompt": True,
        "response_fields": ["completion_probabilities", "tokens_evaluated", "stop_type"],
    }
    told = await post("/completion", {"model": spec.target, **asked})
    if isinstance(told, Fault):
        return told
    scored = _scored(told.parsed.get("completion_probabilities"))
    if scored is None or [i for i, _ in scored] != reply:
        text = "other tokens were scored than the reply's: the server is no llama.cpp, or too old"
        return _malformed(text)
    usage = Usage(prompt_tokens=len(prompt), completion_tokens=len(reply))
    return Scores(tuple(p for _, p in scored), tuple(reply), usage, None, told.body)


SCORERS: Mapping[Dialect, Scorer] = {
    "vllm": _vllm,
    "vllm_guided": _vllm,
    "llama_cpp": _llama_cpp,
}
"""How each dialect scores a given reply; the others cannot."""


class _Token(NamedTuple):
    """A token of a prompt as vLLM tells of it."""

    id: int
    text: str
    logprob: float


def _prompt_tokens(told: object) -> list[_Token] | None:
    """The prompt's tokens but the first, which nothing predicts; None if they are not there.

    Beside each stands the likeliest token of its place, where that is another one.
    """
    if not isinstance(told, list) or len(told) < 2:
        return None
    found = []
    for place in told[1:]:
        read = [_token(*entry) for entry in place.items()] if isinstance(place, dict) else []
        known = [token for token in read if token is not None]
        if not known:
            return None
        found.append(min(known, key=lambda token: token.logprob))
    return found


def _token(name: str, told: object) -> _Token | None:
    found = told if isinstance(told, dict) else {}
    value, text = _logprob(found.get("logprob")), found.get("decoded_token")
    if value is None or not (name.isdecimal() and isinstance(text, str)):
        return None
    return _Token(int(name), text, value)


def _tail(tokens: Sequence[_Token], reply: str) -> int | None:
    """How many tokens at the end spell ``reply``; spaces aside, which some decoders drop."""
    wanted, spelt = "".join(reply.split()), ""
    for count, token in enumerate(reversed(tokens), 1):
        spelt = "".join(token.text.split()) + spelt
        if spelt == wanted:
            return count
        if not wanted.endswith(spelt):
            return None
    return None


def _ids(told: object) -> list[int] | None:
    if not isinstance(told, list) or not all(type(i) is int and i >= 0 for i in told):
        return None
    return told


def _scored(told: object) -> list[tuple[int, float]] | None:
    """Ids and log-probabilities of the tokens that llama.cpp wrote."""
    found = []
    for entry in told if isinstance(told, list) else []:
        known = entry if isinstance(entry, dict) else {}
        number, value = known.get("id"), _logprob(known.get("logprob"))
        if type(number) is not int or value is None:
            return None
        found.append((number, value))
    return found or None


def _logprob(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if math.isfinite(value) and value <= 0 else None


def _malformed(text: str) -> Fault:
    return Fault(FailureKind.MALFORMED, clip(f"a likelihood cannot be read: {text}"))


def _string(value: object) -> str | None:
    return value if isinstance(value, str) else None

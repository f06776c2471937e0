"""What a stub replies to a prompt: an answer in the shape that the prompt asks for.

The stub knows no right answers. Its answer is drawn from a hash of the prompt, so that equal
prompts always get equal replies; one in eight is wrapped in talk, as small models do.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from typing import Any

CREATED = 1_767_225_600
_OPTION = re.compile(r"^(?:option )?([A-Z])[):] ", re.MULTILINE)
_TAIL = 400


def prompt_of(asked: Mapping[str, Any]) -> str:
    """The last message's text of a request's body."""
    messages = asked.get("messages")
    last = messages[-1] if isinstance(messages, list) and messages else {}
    content = last.get("content") if isinstance(last, Mapping) else ""
    return content if isinstance(content, str) else json.dumps(content)


def draw(*names: object) -> int:
    """A whole number that depends on names only."""
    text = "\x1f".join(map(str, names))
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=8).digest())


def answer_to(prompt: str, seed: int) -> str:
    """The text of a reply."""
    number = draw(seed, " ".join(prompt.split()))
    labels = _OPTION.findall(prompt)
    tail = prompt[-_TAIL:]
    if labels:
        value = labels[number % len(labels)]
    elif re.search(r"\byes\b", tail):
        value = ("yes", "no")[number % 2]
    elif re.search(r"\btrue\b", tail):
        value = ("true", "false")[number % 2]
    else:
        value = str(number % 20)
    if number // 64 % 8 == 0:
        return f"Looking at it closely, I would say {value}, all in all."
    return _shaped(value, tail)


def _shaped(value: str, tail: str) -> str:
    if "JSON" in tail:
        bare = value in ("true", "false") or value.isdigit()
        return f'{{"answer": {value if bare else json.dumps(value)}}}'
    if "<answer>" in tail:
        return f"<answer>{value}</answer>"
    if 'key "answer"' in tail:
        return f"answer: {value}"
    if '"Answer: "' in tail:
        return f"The rest does not fit.\nAnswer: {value}"
    return value


def completion(model: object, text: str, prompt: str, name: str) -> dict[str, Any]:
    """A whole chat completion."""
    tokens = {"prompt_tokens": len(prompt) // 4 + 3, "completion_tokens": len(text) // 4 + 1}
    return {
        "id": f"stub-{name}",
        "object": "chat.completion",
        "created": CREATED,
        "model": model,
        "system_fingerprint": "stub",
        "choices": [
            {
                "index": 0,
                "finish_reason": "stop",
                "message": {"role": "assistant", "content": text},
            }
        ],
        "usage": {**tokens, "total_tokens": sum(tokens.values())},
    }

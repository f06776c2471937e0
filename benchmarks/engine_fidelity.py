"""Do the embedded engine's greedy replies equal llama.cpp's on the same model file?

    python benchmarks/engine_fidelity.py [--model local:smollm2-135m-instruct] [--show]

Needs the extras ``local`` and ``bench``. Both programs complete the same prompt text, which
each also renders by itself from the file's chat template; llama.cpp runs with one slot and
without a prompt cache, since its replies vary otherwise. Unequal replies should part after a
common beginning, by rounding: where they part is printed. Last line:
``equal greedy replies: 34 of 40 (0.85)``.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import urllib.request
from typing import Any

from formatspan.backends.base import ModelSpec
from formatspan.backends.local import models, open_model
from formatspan.backends.local.backend import LocalBackend
from formatspan.records import Generation, Message, Request, Sampling

TOPICS = (
    "the capital of France", "the largest planet", "the opposite of hot", "the colour of grass",
    "the number of legs of a spider", "the month after June", "the animal that barks",
    "the season after winter", "the day before Friday", "the tool that drives nails",
    "the insect that makes honey", "the shape with three sides", "the sense of the ears",
    "the currency of Japan", "the organ that pumps blood", "the language of Brazil",
    "the metal in a thermometer", "the bird on a penny farthing", "the sum of 7 and 8",
    "the first letter of the alphabet",
)  # fmt: skip
SHELLS = (
    "What is {topic}? Reply with only the answer.",
    "You are given a riddle. Think of {topic}, then write one short sentence about it and "
    "end with a line that begins with ANSWER: and names it.\n\nRiddle: what is {topic}?",
)
MAX_TOKENS = 24


def main() -> None:
    """Ask both, compare, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="local:smollm2-135m-instruct")
    parser.add_argument("--show", action="store_true", help="print unequal replies")
    given = parser.parse_args()
    spec = ModelSpec("model", given.model)
    chats = [[Message("user", s.format(topic=t))] for s in SHELLS for t in TOPICS]
    ours, texts = asyncio.run(_ours(open_model(spec), chats))
    other = LlamaCpp(str(models.find(spec).path))
    rendered = sum(other.render(c) == t for c, t in zip(chats, texts, strict=True))
    print(f"equal prompt texts: {rendered} of {len(chats)}")
    theirs = [other.complete(text) for text in texts]
    pairs = list(zip(ours, theirs, strict=True))
    for one, two in pairs:
        if one != two:
            at = len(os.path.commonprefix([one, two]))
            print(f"part after {at} of {len(two)} characters")
            if given.show:
                print(f"  formatspan: {one!r}\n  llama.cpp:  {two!r}")
    equal = sum(one == two for one, two in pairs)
    print(f"equal greedy replies: {equal} of {len(pairs)} ({equal / len(pairs):.2f})")


async def _ours(backend: LocalBackend, chats: list[list[Message]]) -> tuple[list[str], list[str]]:
    tokenizer = backend.tokenizer()
    requests = [
        Request(str(i), "model", "", tuple(chat), Sampling(max_tokens=MAX_TOKENS), seed=0)
        for i, chat in enumerate(chats)
    ]
    replies = await asyncio.gather(*(backend.generate(request) for request in requests))
    await backend.aclose()
    found = [reply.text if isinstance(reply, Generation) else repr(reply) for reply in replies]
    return found, [tokenizer.render(chat) for chat in chats]


class LlamaCpp:
    """llama.cpp's server in this process: one slot, no cache, greedy."""

    def __init__(self, path: str) -> None:
        import xllamacpp

        options = xllamacpp.CommonParams()
        options.model.path = path
        options.n_parallel, options.n_ctx, options.verbosity = 1, 2048, -1
        options.cache_prompt, options.warmup, options.use_jinja = False, False, True
        options.cache_ram_mib = 0
        self._server = xllamacpp.Server(options)

    def complete(self, prompt: str) -> str:
        """The greedy reply to a rendered prompt."""
        asked = {"temperature": 0, "n_predict": MAX_TOKENS, "cache_prompt": False}
        reply = self._server.handle_completions(
            {"prompt": prompt, "max_tokens": MAX_TOKENS, **asked}
        )
        return str(reply["choices"][0]["text"])

    def render(self, chat: list[Message]) -> str:
        """The prompt text that llama.cpp makes of a chat."""
        body = {"messages": [{"role": m.role, "content": m.content} for m in chat]}
        request = urllib.request.Request(
            f"{self._server.listening_address}/apply-template",
            json.dumps(body).encode(),
            {"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request) as response:
            found: dict[str, Any] = json.load(response)
        return str(found["prompt"])


if __name__ == "__main__":
    main()

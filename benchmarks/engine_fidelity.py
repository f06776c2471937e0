"""Do the embedded engine's greedy replies equal llama.cpp's on the same model file?

    python benchmarks/engine_fidelity.py [--model local:smollm2-135m-instruct] [--show]

Needs the extras ``local`` and ``bench``. The prompts are the demo suite's first questions under
the five built-in wrappers. Both programs complete the same prompt text, which each also renders
by itself from the file's chat template; llama.cpp runs with one slot and without a prompt
cache, since its replies vary otherwise. With quantised weights llama.cpp also rounds the
activations to eight bits, so a third party shows what part of the difference that is: llama.cpp
on the same weights, re-encoded as F16. Unequal replies should part after a common beginning.
Last line: ``equal greedy replies: 34 of 40 (0.85)``.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import tempfile
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from formatspan.backends.base import ModelSpec
from formatspan.backends.local import open_model
from formatspan.backends.local.gguf_file import ModelFile
from formatspan.backends.local.models import find
from formatspan.grid import content, sample
from formatspan.records import Generation, Message, Request, Sampling
from formatspan.study import Study
from formatspan.tasks import get_task, load
from formatspan.wrappers import FAMILIES, family, render

QUESTIONS = {"demo_choice": 3, "demo_boolean": 3, "demo_number": 2}
"""Questions of each task; every one is asked under every wrapper."""

MAX_TOKENS = 24


class Replies(NamedTuple):
    """Greedy replies, and the prompt texts they complete."""

    texts: list[str]
    prompts: list[str]


def main() -> None:
    """Ask all three, compare, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="local:smollm2-135m-instruct")
    parser.add_argument("--show", action="store_true", help="print unequal replies")
    given = parser.parse_args()
    spec = ModelSpec("model", given.model)
    path, chats = find(spec).path, prompts()
    ours = asyncio.run(formatspan_replies(spec, chats))
    other = LlamaCpp(path)
    rendered = [other.render(chat) for chat in chats]
    print(f"equal prompt texts: {agreeing(ours.prompts, rendered)}")
    theirs = [other.complete(prompt) for prompt in ours.prompts]
    unquantised = f16_replies(path, ours.prompts)
    print(f"llama.cpp on the file and on its weights as F16: {agreeing(theirs, unquantised)}")
    print(f"formatspan and llama.cpp on the weights as F16: {agreeing(ours.texts, unquantised)}")
    for one, two in zip(ours.texts, theirs, strict=True):
        if one != two and given.show:
            print(f"part after {common(one, two)} characters: {one!r}, llama.cpp {two!r}")
    print(f"equal greedy replies: {agreeing(ours.texts, theirs)}")


def prompts() -> list[tuple[Message, ...]]:
    """The demo suite's first questions under the five wrappers."""
    chats = []
    for name, count in QUESTIONS.items():
        data = load(get_task(name))
        study = Study.build({"models": ["scripted:"], "tasks": [name], "examples": count})
        for example in sample(study, data):
            filled = content(data.task, example)
            chats += [render(family(wrapper), filled).padded("") for wrapper in FAMILIES]
    return chats


async def formatspan_replies(spec: ModelSpec, chats: Sequence[tuple[Message, ...]]) -> Replies:
    """What the embedded engine says."""
    backend = open_model(spec)
    sampling = Sampling(max_tokens=MAX_TOKENS)
    requests = [Request(str(i), "", "", chat, sampling, seed=0) for i, chat in enumerate(chats)]
    found = await asyncio.gather(*(backend.generate(request) for request in requests))
    await backend.aclose()
    texts = [reply.text if isinstance(reply, Generation) else repr(reply) for reply in found]
    return Replies(texts, [backend.tokenizer().render(chat) for chat in chats])


def f16_replies(path: Path, texts: Sequence[str]) -> list[str]:
    """What llama.cpp says with the file's weights in F16."""
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "f16.gguf"
        ModelFile(path).write_f16(target, lambda done, total: None)
        other = LlamaCpp(target)
        return [other.complete(text) for text in texts]


class LlamaCpp:
    """llama.cpp's server in this process: one slot, no cache, greedy."""

    def __init__(self, path: Path) -> None:
        import xllamacpp

        options = xllamacpp.CommonParams()
        options.model.path = str(path)
        options.n_parallel, options.n_ctx, options.verbosity = 1, 2048, -1
        options.cache_prompt, options.cache_ram_mib = False, 0
        options.warmup, options.use_jinja = False, True
        self._server = xllamacpp.Server(options)

    def complete(self, prompt: str) -> str:
        """The greedy reply to a rendered prompt."""
        asked = {"temperature": 0, "max_tokens": MAX_TOKENS, "cache_prompt": False}
        reply = self._server.handle_completions({"prompt": prompt, **asked})
        return str(reply["choices"][0]["text"])

    def render(self, chat: Sequence[Message]) -> str:
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


def agreeing(ones: Sequence[str], twos: Sequence[str]) -> str:
    """How many are equal, as ``34 of 40 (0.85)``."""
    equal = sum(one == two for one, two in zip(ones, twos, strict=True))
    return f"{equal} of {len(ones)} ({equal / len(ones):.2f})"


def common(one: str, two: str) -> int:
    """Characters of the common beginning."""
    return next((i for i, (a, b) in enumerate(zip(one, two, strict=False)) if a != b), len(one))


if __name__ == "__main__":
    main()

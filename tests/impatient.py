"""Endpoint models that wait for nothing: for tests of whole runs under faults.

As a script it runs a study file like ``formatspan run``, for tests that kill it.
"""

from __future__ import annotations

import asyncio
import sys

from formatspan.backends import openai_chat, table
from formatspan.backends.base import ModelSpec
from formatspan.backends.openai_chat import Limits, OpenAIChat

LIMITS = Limits(whole_s=1.5, first_byte_s=1.0, body_bytes=100_000)
"""Short, yet long enough for a machine that is busy: a timeout is a fault that nobody planted."""


async def no_sleep(_: float) -> None:
    await asyncio.sleep(0)


def open_impatient(spec: ModelSpec) -> OpenAIChat:
    assert spec.base_url is not None
    return OpenAIChat(spec, spec.base_url, spec.api_key_env, limits=LIMITS, sleep=no_sleep)


def main() -> None:
    """Run the study file in the folder given."""
    from formatspan.session import run
    from formatspan.study import Study

    openai_chat.open_openai = open_impatient
    assert table.BACKENDS["openai"].endswith(":open_openai")
    done = run(Study.from_file(sys.argv[1]), out=sys.argv[2])
    sys.exit(0 if done.complete else 1)


if __name__ == "__main__":
    main()

"""Replies read per second on one core, by level and kind.

Run with ``python benchmarks/extraction_speed.py``; the replies are one-liners as models write
them. Readers are warm, as they are after the first replies of a run.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import get_args

from formatspan.contracts import CONTRACTS, AnswerSpace, Contract
from formatspan.extraction import extract_with
from formatspan.records import Kind, Level

ROUNDS = 1000
REPEATS = 5
"""The best of these counts, as the others were disturbed."""
OPTIONS = ("Jupiter", "Saturn", "Mars", "Venus")


@dataclass(frozen=True)
class Sample:
    """Replies of one kind, each with the contract it answers to."""

    space: AnswerSpace
    replies: tuple[tuple[str, str], ...]


SAMPLES: dict[Kind, Sample] = {
    "choice": Sample(
        AnswerSpace.of_options("choice", OPTIONS),
        (
            ("letter_only", "B"),
            ("answer_line", "ANSWER: B"),
            ("json", '{"answer": "B"}'),
            ("letter_only", "**B**"),
            ("letter_only", "The answer is B."),
        ),
    ),
    "boolean": Sample(
        AnswerSpace("boolean"),
        (
            ("bare", "yes"),
            ("answer_line", "ANSWER: no"),
            ("json", '{"answer": true}'),
            ("bare", "**True**"),
            ("bare", "The answer is yes."),
        ),
    ),
    "number": Sample(
        AnswerSpace("number"),
        (
            ("bare", "42"),
            ("hash", "#### 42"),
            ("json", '{"answer": 42}'),
            ("bare", "**$1,250.00**"),
            ("bare", "The answer is 42."),
        ),
    ),
}


def rate(kinds: tuple[Kind, ...], level: Level) -> float:
    """Replies per second of processor time over the samples of some kinds."""
    work: list[tuple[Contract, AnswerSpace, str]] = [
        (CONTRACTS[name], SAMPLES[kind].space, text)
        for kind in kinds
        for name, text in SAMPLES[kind].replies
    ]
    for contract, space, text in work:
        extract_with(contract, space, text, "stop", level)
    return max(_timed(work, level) for _ in range(REPEATS))


def _timed(work: list[tuple[Contract, AnswerSpace, str]], level: Level) -> float:
    started = time.process_time()
    for _ in range(ROUNDS):
        for contract, space, text in work:
            extract_with(contract, space, text, "stop", level)
    return ROUNDS * len(work) / (time.process_time() - started)


def main() -> None:
    """Print the table and, last, the figure for the default level."""
    kinds: tuple[Kind, ...] = get_args(Kind)
    print(f"{'level':<12}" + "".join(f"{kind:>10}" for kind in kinds))
    for level in get_args(Level):
        print(f"{level:<12}" + "".join(f"{rate((kind,), level):>10,.0f}" for kind in kinds))
    print(f"replies per second at normalized: {rate(kinds, 'normalized'):.0f}")


if __name__ == "__main__":
    main()

"""Which replies a page embeds: a balanced choice of whole questions, flips first.

A question is chosen with its replies under all wrappers, so that they can be compared. Each
model and task gets the same number of places; within them come first, for every wrapper and
status, up to `OF_EACH` questions with such a reply, then flips, then the rest, each in an order
fixed by a hash of the question's name, so that neither the file's order nor chance decides.
"""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import polars as pl

OF_EACH = 2
"""Questions for each wrapper and status before flips and others follow."""


@dataclass(frozen=True, slots=True)
class Question:
    """The replies of one model to one example under all wrappers, at one seed."""

    model: str
    task: str
    example: str
    mode: str
    seed: int
    outcomes: tuple[tuple[str, str], ...]
    """(wrapper, status) of its replies."""
    flip: bool


def selected(table: pl.DataFrame, replies: int) -> list[Question]:
    """Up to ``replies`` replies' worth of questions out of a scored table."""
    strata: dict[tuple[str, str, str], list[Question]] = defaultdict(list)
    for question in _questions(table):
        strata[question.model, question.mode, question.task].append(question)
    ranked = [_ranked(strata[key]) for key in sorted(strata)]
    return list(_dealt(ranked, replies))


def _dealt(ranked: Sequence[Sequence[Question]], replies: int) -> Iterator[Question]:
    """One question of each stratum in turn, until the places are used up."""
    left = replies
    for turn in range(max(map(len, ranked), default=0)):
        for stratum in ranked:
            if turn < len(stratum):
                left -= len(stratum[turn].outcomes)
                if left < 0:
                    return
                yield stratum[turn]


def _ranked(questions: Sequence[Question]) -> list[Question]:
    ordered = sorted(questions, key=lambda q: (not q.flip, _shuffled(q)))
    seen: Counter[tuple[str, str]] = Counter()
    first: list[Question] = []
    rest: list[Question] = []
    for question in ordered:
        wanted = any(seen[outcome] < OF_EACH for outcome in question.outcomes)
        (first if wanted else rest).append(question)
        if wanted:
            seen.update(question.outcomes)
    return first + rest


def _shuffled(question: Question) -> str:
    name = f"{question.task}\0{question.example}\0{question.seed}"
    return hashlib.sha256(name.encode("utf-8", "replace")).hexdigest()


def _questions(table: pl.DataFrame) -> Iterator[Question]:
    import polars as pl

    grouped = (
        table.filter(~pl.col("copy") & pl.col("status").is_not_null())
        .with_columns(pl.col("model", "task", "wrapper", "mode", "status").cast(pl.String))
        .group_by("model", "task", "example", "mode", "seed", maintain_order=True)
        .agg(
            pl.struct("wrapper", "status").alias("outcomes"),
            (pl.col("correct").any() & (~pl.col("correct")).any()).alias("flip"),
        )
    )
    for model, task, example, mode, seed, outcomes, flip in grouped.iter_rows():
        pairs = tuple(sorted((o["wrapper"], o["status"]) for o in outcomes))
        yield Question(model, task, example, mode, seed, pairs, bool(flip))

"""Every reply scored at every length cap; scored again only where the cut changes it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, islice
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from formatspan.analysis.cutting import Cuttable, How, cuttables, tokenizer_of
from formatspan.records import Level
from formatspan.scoring import score
from formatspan.store import Store
from formatspan.study import Study
from formatspan.table import Asked, RawReply, asked_of, raw_replies

if TYPE_CHECKING:
    import polars as pl

Flags = NDArray[np.bool_]
_CHUNK = 2_000
"""Replies made ready at a time."""


@dataclass
class Rescored:
    """Every row of the table at every cap; arrays stand in the table's order."""

    caps: tuple[int, ...]
    where: pl.DataFrame
    """model, mode and wrapper of each row."""
    tokens: NDArray[np.int64]
    """0 without a reply and for copies."""
    ended: Flags
    """Whether a reply ended before the cap of the run."""
    correct: list[Flags]
    """By cap."""
    parsed: list[Flags]
    how: dict[str, How]
    """By model: the worst of its replies."""
    hidden: set[str]
    """Models with reasoning tokens that the reply does not hold."""

    def lengths(self, rows: Flags, most: int) -> NDArray[np.int64]:
        """Tokens with the end token; a reply that the run's cap ``most`` cut off is longer."""
        return np.where(self.ended[rows], self.tokens[rows], most + 1)

    def rows_of(self, **keys: str) -> Flags:
        """The replies of, say, one model and mode."""
        import polars as pl

        chosen = [pl.col(key).cast(pl.String) == value for key, value in keys.items()]
        flags: Flags = self.where.select(pl.all_horizontal(chosen)).to_series().to_numpy()
        return flags & (self.tokens > 0)


def rescored(
    store: Store, study: Study, level: Level, table: pl.DataFrame, caps: tuple[int, ...]
) -> Rescored:
    """Cut every reply at every cap that it is longer than, and score those again.

    Args:
        store: Of the run.
        study: Of the run.
        level: Extraction level.
        table: The run scored at ``level``, whose scores replies within a cap keep.
        caps: In ascending order.
    """
    base = [table[c].fill_null(value=False).to_numpy() for c in ("correct", "parsed")]
    made = Rescored(
        caps,
        table.select("model", "mode", "wrapper"),
        np.zeros(len(table), dtype=np.int64),
        np.zeros(len(table), dtype=bool),
        correct=[base[0].copy() for _ in caps],
        parsed=[base[1].copy() for _ in caps],
        how={},
        hidden=set(),
    )
    scorer, look_up = _Scorer(level), asked_of(store, study)
    for i, reply, cuttable in _with_text(store, study, caps):
        if reply.reasoning_tokens:
            made.hidden.add(reply.model)
        made.tokens[i], made.ended[i] = cuttable.tokens, reply.finish_reason != "length"
        made.how[reply.model] = _worse(made.how.get(reply.model), cuttable.how)
        asked = look_up(reply.task, reply.example_id, reply.wrapper)
        for c, result in scorer.below(cuttable, reply, asked, caps):
            made.correct[c][i], made.parsed[c][i] = result
    return made


def _with_text(
    store: Store, study: Study, caps: Sequence[int]
) -> Iterator[tuple[int, RawReply, Cuttable]]:
    """Every reply that is no copy with its row in the table; a chunk is made ready at a time."""
    tokenizers = {m.name: tokenizer_of(m.spec()) for m in study.models}
    rows = ((i, r) for i, r in enumerate(raw_replies(store)) if r.text is not None and not r.copy)
    for model, group in groupby(rows, key=lambda row: row[1].model):
        while chunk := list(islice(group, _CHUNK)):
            ready = cuttables([reply for _, reply in chunk], tokenizers[model], caps)
            for (i, reply), cuttable in zip(chunk, ready, strict=True):
                yield i, reply, cuttable


def _worse(known: How | None, found: How) -> How:
    ranked = list(How)
    return found if known is None else max(known, found, key=ranked.index)


class _Scorer:
    """Scores beginnings of replies, each text once for neighbours that share it (seeds)."""

    def __init__(self, level: Level) -> None:
        self._level: Level = level
        self._of: object = None
        self._known: dict[str, tuple[bool, bool]] = {}

    def below(
        self, cuttable: Cuttable, reply: RawReply, asked: Asked, caps: Sequence[int]
    ) -> Iterator[tuple[int, tuple[bool, bool]]]:
        """(Correct, parsed) by the place of every cap that cuts the reply off."""
        place = (reply.task, reply.example_id, reply.wrapper)
        if place != self._of:
            self._of, self._known = place, {}
        for c, cap in enumerate(caps):
            if cap >= cuttable.tokens:
                return
            yield c, self._score(cuttable.first(cap), asked)

    def _score(self, text: str, asked: Asked) -> tuple[bool, bool]:
        if text not in self._known:
            contract, space, example = asked
            question, gold = example.question, example.gold
            found = score(text, "length", contract, space, gold, self._level, question)
            self._known[text] = (found.correct, found.parsed)
        return self._known[text]

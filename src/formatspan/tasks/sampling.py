"""Samples: one order per task, of which every sample is the beginning.

The order depends on the seed and on the rows' ids alone: not on other tasks, not on the
order of the file, not on the process. A larger sample therefore holds every smaller one,
and a row that is dropped leaves the others in their order.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

from formatspan.records import Example
from formatspan.tasks.task import TaskData


class Coverage(NamedTuple):
    """How many values of a task's `stratify` column a sample holds."""

    column: str | None
    """None where the task is not stratified, which counts as a single value."""
    covered: int
    total: int
    missing: tuple[str, ...]
    """Values that the sample lacks, sorted."""

    def __str__(self) -> str:
        """A line for the run's summary."""
        if self.column is None:
            return "not stratified"
        line = f"covers {self.covered} of {self.total} values of {self.column!r}"
        return line + (f"; without {', '.join(self.missing)}" if self.missing else "")


def order(data: TaskData, sample_seed: int) -> tuple[int, ...]:
    """Positions in ``data.examples``, in the order in which samples take them.

    Without strata, rows are sorted by SHA-256 of seed and id. With strata (the task's
    `stratify` column), the r-th row (from 0) of a stratum of m rows, ranked by that hash,
    stands at (r + u)/m, ties by the hash; u in [0, 1) is the stratum's own, from a hash of
    its value. Up to any place t each stratum has thus ⌊m·t⌋ or ⌈m·t⌉ rows: samples hold it
    in proportion, a stratum too small for a place in each sample gets one by chance, and of
    equally large strata none is taken a second time before all are taken once.
    """
    hashes = [_hash(sample_seed, example.id) for example in data.examples]
    ranked = sorted(range(len(hashes)), key=lambda i: hashes[i])
    column = data.task.stratify
    if column is None:
        return tuple(ranked)
    places = _places([_stratum(data.examples[i], column) for i in ranked], sample_seed)
    by_place = sorted(zip(places, ranked, strict=True), key=lambda p: (p[0], hashes[p[1]]))
    return tuple(i for _, i in by_place)


def coverage(data: TaskData, sample: Sequence[int]) -> Coverage:
    """How well ``sample`` (positions in ``data.examples``) covers the task's strata."""
    column = data.task.stratify
    if column is None:
        return Coverage(None, min(1, len(sample)), 1, ())
    every = {_stratum(example, column) for example in data.examples}
    held = {_stratum(data.examples[i], column) for i in sample}
    return Coverage(column, len(held), len(every), tuple(sorted(every - held)))


def _hash(sample_seed: int, name: str) -> bytes:
    return hashlib.sha256(f"{sample_seed}\0{name}".encode()).digest()


def _stratum(example: Example, column: str) -> str:
    """Rows without a value are a stratum of their own."""
    return example.metadata.get(column, "")


def _places(strata: Sequence[str], sample_seed: int) -> list[float]:
    """(rank within the stratum + its offset) / its size, for each item in turn."""
    sizes: dict[str, int] = defaultdict(int)
    ranks = []
    for stratum in strata:
        ranks.append(sizes[stratum])
        sizes[stratum] += 1
    offsets = {stratum: _offset(sample_seed, stratum) for stratum in sizes}
    return [(r + offsets[s]) / sizes[s] for r, s in zip(ranks, strata, strict=True)]


def _offset(sample_seed: int, stratum: str) -> float:
    """A number in [0, 1) that looks random: 48 bits, so that it never rounds to 1."""
    return int.from_bytes(_hash(sample_seed, f"\0{stratum}")[:6]) / 2**48

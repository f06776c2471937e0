"""The one input of the statistics: counts of replies by task, model, example and wrapper.

Everything is for one extraction level and one decoding mode (the method document, section 7).
Another level, mode or subset of examples is another panel. Copies of deterministic replies are
left out before: the arrays hold real draws only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from formatspan.stats.indices import Array, Counts

Array32 = NDArray[np.float32]
Mask = NDArray[np.bool_]

CONFIDENCE = 0.95
SAME = 1e-9
"""Rates closer than this are equal: far above rounding, far below one reply in a million."""


@dataclass(frozen=True)
class Missing:
    """There is no such figure, and why."""

    reason: str


class Means(NamedTuple):
    """Means over the indexed examples of one task, by model."""

    n: Counts
    """Indexed examples, shape (models,)."""
    accuracy: Array
    """A, shape (models, wrappers), fractions of 1; 0 where n = 0."""
    parseability: Array
    """P, as A."""


@dataclass(frozen=True)
class TaskCounts:
    """Replies of all models on one task.

    Arrays of shape (models, examples, wrappers); the examples stand in one order that does not
    depend on the order in which replies came, and are the same for every model.
    """

    name: str
    correct: Counts
    """Replies that are correct."""
    parsed: Counts
    """Replies that parsed, at least as many as are correct."""
    replies: Counts
    """Replies that exist and are no copies; 0 where all failed or the model never saw it."""
    clusters: Counts
    """Cluster of each example, shape (examples,): equal codes belong together."""
    credit: float = 0.0
    """What an unparsed reply scores: 0, or the task's chance under partial credit."""

    def __post_init__(self) -> None:
        shapes = {self.correct.shape, self.parsed.shape, self.replies.shape}
        if len(shapes) != 1 or self.correct.ndim != 3:
            raise ValueError(
                f"task {self.name}: expected three arrays of one shape "
                f"(models, examples, wrappers), got {sorted(shapes)}"
            )
        if self.clusters.shape != self.correct.shape[1:2]:
            raise ValueError(
                f"task {self.name}: expected {self.correct.shape[1]} cluster codes, "
                f"got shape {self.clusters.shape}"
            )
        ordered = (self.correct >= 0) & (self.correct <= self.parsed)
        if not (ordered & (self.parsed <= self.replies)).all():
            raise ValueError(f"task {self.name}: expected 0 <= correct <= parsed <= replies")

    @cached_property
    def indexed(self) -> Mask:
        """Examples with a reply under every wrapper; shape (models, examples)."""
        some = self.replies.shape[2] > 0
        return np.asarray((self.replies > 0).all(axis=2) & some)

    @cached_property
    def y(self) -> Array:
        """Y: mean score by model, example and wrapper; 0 where not indexed."""
        return self._rate(self.correct + self.credit * (self.replies - self.parsed))

    @cached_property
    def z(self) -> Array:
        """Z: mean of parsed, as Y."""
        return self._rate(self.parsed)

    def _rate(self, totals: Array | Counts) -> Array:
        rate = totals / np.maximum(self.replies, 1)
        return np.asarray(np.where(self.indexed[:, :, None], rate, 0.0))

    @cached_property
    def means(self) -> Means:
        """n, A and P of every model."""
        n = self.indexed.sum(axis=1)
        shared = np.maximum(n, 1)[:, None]
        return Means(n, self.y.sum(axis=1) / shared, self.z.sum(axis=1) / shared)

    @cached_property
    def groups(self) -> Counts:
        """Clusters as codes 0, 1, 2, …; shape (examples,)."""
        return np.asarray(np.unique(self.clusters, return_inverse=True)[1]).reshape(-1)

    def keep(self, examples: Mask) -> TaskCounts:
        """The same task with only some examples indexed, of shape (models, examples)."""
        return self._mapped(lambda counts: np.where(examples[:, :, None], counts, 0))

    def on(self, wrappers: Sequence[int]) -> TaskCounts:
        """The same task under some of the wrappers."""
        return self._mapped(lambda counts: counts[:, :, list(wrappers)])

    def _mapped(self, change: Callable[[Counts], Counts]) -> TaskCounts:
        parts = (change(self.correct), change(self.parsed), change(self.replies))
        return TaskCounts(self.name, *parts, clusters=self.clusters, credit=self.credit)

    def missing(self, model: int, wrappers: Sequence[str]) -> Missing | None:
        """Why a model has no indices here, or None if it has."""
        if self.replies.shape[1] == 0:
            return Missing("no examples")
        if not wrappers:
            return Missing("no wrappers")
        if self.means.n[model]:
            return None
        some = self.replies[model].any(axis=0)
        without = [w for w, any_reply in zip(wrappers, some, strict=True) if not any_reply]
        if without:
            return Missing(f"not indexed: no replies under {', '.join(without)}")
        return Missing("not indexed: no example has replies under every wrapper")


@dataclass(frozen=True)
class Panel:
    """Replies of some models on some tasks under the same wrappers, for one level and mode."""

    models: tuple[str, ...]
    wrappers: tuple[str, ...]
    tasks: tuple[TaskCounts, ...]

    def __post_init__(self) -> None:
        for task in self.tasks:
            models, _, wrappers = task.correct.shape
            if (models, wrappers) != (len(self.models), len(self.wrappers)):
                raise ValueError(
                    f"task {task.name}: expected {len(self.models)} models and "
                    f"{len(self.wrappers)} wrappers, got {models} and {wrappers}"
                )

    @cached_property
    def indexed(self) -> Mask:
        """Pairs with indices; shape (models, tasks)."""
        shape = (len(self.tasks), len(self.models))
        return np.array([t.means.n > 0 for t in self.tasks], dtype=bool).reshape(shape).T

    def missing(self, model: int, task: int) -> Missing | None:
        """Why a pair has no range over wrappers, or None if it has."""
        if len(self.wrappers) == 1:
            return Missing("one wrapper: there is no range")
        return self.tasks[task].missing(model, self.wrappers)

    def keep(self, examples: Sequence[Mask]) -> Panel:
        """The panel with only some examples indexed: by task, shape (models, examples)."""
        kept = [t.keep(e) for t, e in zip(self.tasks, examples, strict=True)]
        return Panel(self.models, self.wrappers, tuple(kept))

    def common(self) -> Panel:
        """The panel on the examples that are indexed for all models that are indexed at all."""
        there = np.asarray(self.indexed.any(axis=1))[:, None]
        return self.keep([there & (t.indexed | ~there).all(axis=0) for t in self.tasks])

    def on(self, wrappers: Sequence[str]) -> Panel:
        """The panel recomputed on fewer wrappers, as comparing wrapper sets needs."""
        at = [self.wrappers.index(w) for w in wrappers]
        return Panel(self.models, tuple(wrappers), tuple(t.on(at) for t in self.tasks))

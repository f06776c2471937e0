"""One joint resampling of examples, from which all simultaneous limits are read.

The example (its cluster) is what is drawn; its seeds move with it. A resample is the same for
all models of a task, and tasks are independent (the method document, section 7, "Interval of a
range"). No loop runs over resamples: a chunk of them is one matrix of weights, and all means of
all models are one product with it.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from formatspan.stats.indices import Array
from formatspan.stats.panel import Array32, Mask, Panel, TaskCounts

RESAMPLES = 10_000
CHUNK = 2_000_000
"""Weights held at once."""
MOST_NOISE = 12
"""Larger Poisson counts have a probability below 10^-9."""
SAME32 = 1e-6
"""Resampled means closer than this are equal; they are held in single precision."""


class Resamples(NamedTuple):
    """Resampled deviations by task; everything that uses the same ones is paired."""

    accuracy: tuple[Array32, ...]
    """A*_f - A_f + noise by task, shape (wrappers, resamples, models); 0 where not indexed."""
    parseability: tuple[Array32, ...]
    """As accuracy, of P."""
    best: tuple[Array, ...]
    """Bootstrap probability that a wrapper has the highest A, ties shared, without the noise;
    by task, shape (models, wrappers)."""


class _Totals(NamedTuple):
    """What a cluster brings to the means of one task; columns are wrappers × models."""

    y: Array32
    z: Array32
    indexed: Array32
    """Indexed examples, shape (clusters, models)."""


def resample(panel: Panel, rng: np.random.Generator, *, resamples: int = RESAMPLES) -> Resamples:
    """Resample one panel; see `resample_together`."""
    return resample_together([panel], rng, resamples=resamples)[0]


def resample_together(
    panels: Sequence[Panel],
    rng: np.random.Generator,
    *,
    resamples: int = RESAMPLES,
    as_alone: bool = False,
) -> list[Resamples]:
    """Draw the same examples for several panels, say the arms of one comparison.

    Args:
        panels: Of the same tasks and examples; models and wrappers may differ.
        rng: Source of randomness.
        resamples: How many.
        as_alone: Give every panel the noise that it gets when it is drawn alone, instead of one of
            its own. Panels of one shape that are `drawn_alike` are then drawn as they are alone.

    Raises:
        ValueError: The panels do not hold the same tasks, examples and clusters.
    """
    if not panels:
        return []
    _check_same_examples(panels)
    drawn = [
        _resample_task([p.tasks[i] for p in panels], rng, resamples, as_alone=as_alone)
        for i in range(len(panels[0].tasks))
    ]
    return [Resamples(*_by_figure([task[i] for task in drawn])) for i in range(len(panels))]


def drawn_alike(a: Panel, b: Panel) -> bool:
    """Whether the same examples are drawn from both panels when each is drawn alone."""
    pairs = zip(a.tasks, b.tasks, strict=True)
    return all(np.array_equal(s.indexed.any(axis=0), t.indexed.any(axis=0)) for s, t in pairs)


def _by_figure(
    drawn: Sequence[tuple[Array32, Array32, Array]],
) -> tuple[tuple[Array32, ...], tuple[Array32, ...], tuple[Array, ...]]:
    return (
        tuple(d[0] for d in drawn),
        tuple(d[1] for d in drawn),
        tuple(d[2] for d in drawn),
    )


def _check_same_examples(panels: Sequence[Panel]) -> None:
    first = panels[0]
    for panel in panels[1:]:
        if [t.name for t in panel.tasks] != [t.name for t in first.tasks]:
            raise ValueError("panels resampled together need the same tasks in the same order")
        for here, there in zip(first.tasks, panel.tasks, strict=True):
            if not np.array_equal(here.clusters, there.clusters):
                raise ValueError(f"task {here.name}: the panels hold different examples")


def _resample_task(
    tasks: Sequence[TaskCounts], rng: np.random.Generator, resamples: int, *, as_alone: bool
) -> list[tuple[Array32, Array32, Array]]:
    """Deviations of A and of P and the probability of being best, a triple for each panel."""
    drawable = np.asarray(np.concatenate([t.indexed for t in tasks]).any(axis=0))
    totals = [_totals(t, drawable) for t in tasks]
    found = [_empty(t, resamples) for t in tasks]
    clusters = len(totals[0].indexed)
    for start, weights in _weights(clusters, resamples, rng):
        here = slice(start, start + len(weights))
        for task, total, (accuracy, parseability, best) in zip(tasks, totals, found, strict=True):
            count = weights @ total.indexed
            accuracy[:, here] = _centred(weights @ total.y, count, task.means.accuracy)
            parseability[:, here] = _centred(weights @ total.z, count, task.means.parseability)
            best += _best(accuracy[:, here], task.means.accuracy) / resamples
    sources = [rng, *(copy.deepcopy(rng) if as_alone else rng for _ in tasks[1:])]
    for total, source, (accuracy, parseability, _) in zip(totals, sources, found, strict=True):
        scale = _noise_scale(total)
        for deviations in (accuracy, parseability):
            noise = _noise(source, deviations.shape)
            noise *= scale
            deviations += noise
    return found


def _empty(task: TaskCounts, resamples: int) -> tuple[Array32, Array32, Array]:
    models, _, wrappers = task.correct.shape
    shape = (wrappers, resamples, models)
    return (
        np.zeros(shape, dtype=np.float32),
        np.zeros(shape, dtype=np.float32),
        np.zeros((models, wrappers)),
    )


def _totals(task: TaskCounts, drawable: Mask) -> _Totals:
    """Totals by cluster, of the clusters from which anything is indexed."""
    groups = np.unique(task.groups[drawable], return_inverse=True)[1].reshape(-1)
    clusters = int(groups.max()) + 1 if len(groups) else 0

    def total(values: Array) -> Array32:
        columns = values.shape[0] * values.shape[2]
        flat = values[:, drawable].transpose(1, 2, 0).reshape(len(groups), columns)
        summed = np.zeros((clusters, flat.shape[1]))
        np.add.at(summed, groups, flat)
        return summed.astype(np.float32)

    return _Totals(total(task.y), total(task.z), total(task.indexed[:, :, None].astype(float)))


def _weights(
    clusters: int, resamples: int, rng: np.random.Generator
) -> Iterator[tuple[int, Array32]]:
    """How often each cluster is drawn, in chunks of shape (resamples, clusters)."""
    if clusters == 0:
        return
    step = max(1, CHUNK // clusters)
    for start in range(0, resamples, step):
        rows = min(step, resamples - start)
        picks = rng.integers(clusters, size=(rows, clusters))
        picks += np.arange(rows)[:, None] * clusters
        counts = np.bincount(picks.ravel(), minlength=rows * clusters)
        yield start, counts.reshape(rows, clusters).astype(np.float32)


def _centred(sums: Array32, count: Array32, centre: Array) -> Array32:
    """Resampled means less the observed ones, shape (wrappers, resamples, models).

    A resample without any indexed example of a model says nothing about it: deviation 0.
    """
    rows, models = count.shape
    means = sums.reshape(rows, centre.shape[1], models) / np.maximum(count, 1)[:, None, :]
    centred = (means - centre.T.astype(np.float32)) * (count > 0)[:, None, :]
    return np.asarray(centred.transpose(1, 0, 2))


def _best(deviations: Array32, centre: Array) -> Array:
    """Summed shares of being best, shape (models, wrappers)."""
    means = deviations + centre.T.astype(np.float32)[:, None, :]
    hit = means >= means.max(axis=0, initial=-1.0) - SAME32
    share = hit / np.maximum(hit.sum(axis=0), 1)
    return np.asarray(share.sum(axis=1).T, dtype=np.float64)


def _noise_scale(total: _Totals) -> Array32:
    """1/n by model, n in clusters; 0 where nothing is indexed."""
    n = (total.indexed > 0).sum(axis=0)
    return np.asarray(np.where(n > 0, 1 / np.maximum(n, 1), 0.0), dtype=np.float32)


def _noise_quantiles() -> Array32:
    """Poisson(1) - Poisson(1) at 2^16 evenly spaced probabilities, which draws it fast."""
    poisson = np.array([math.exp(-1) / math.factorial(k) for k in range(MOST_NOISE + 1)])
    below = np.cumsum(np.convolve(poisson, poisson[::-1]))
    places = np.searchsorted(below, (np.arange(2**16) + 0.5) / 2**16)
    return (places - MOST_NOISE).astype(np.float32)


NOISE = _noise_quantiles()


def _noise(rng: np.random.Generator, shape: tuple[int, ...]) -> Array32:
    """Poisson(1) - Poisson(1): keeps an honest width for cells without any variation."""
    return np.asarray(NOISE[rng.integers(2**16, size=shape, dtype=np.uint16)])

"""What a number of examples can tell: the half width of the max-T interval before asking.

A world without any effect is drawn and resampled as the method does (section 7, "Interval of a
range"): an observed FSI above the half width is told from noise. Assumed are an accuracy of one
half, where noise is largest, and that some of the replies take their luck from the example, as
difficulty makes them do.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from formatspan.stats.intervals import mean_over, pair_intervals, spans
from formatspan.stats.panel import Panel, TaskCounts
from formatspan.stats.resampling import resample

ACCURACY = 0.5
SHARED = 0.6
"""Share of the replies whose luck is the example's own."""
WORLDS, RESAMPLES = 12, 400
MOST = 20_000
"""Examples a task beyond which the width is taken to shrink with one over the root."""
ROUNDS = 2


class Design(NamedTuple):
    """What a study asks, as far as noise goes."""

    examples: tuple[int, ...]
    """By task."""
    wrappers: int
    draws: int = 1
    """Replies to one prompt that are draws of their own."""


class Width(NamedTuple):
    """Half widths of the 95% max-T interval, as fractions of 1."""

    task: float
    """Of the FSI on one task; the largest of them."""
    mean: float
    """Of the mean FSI over the tasks."""


def half_width(design: Design, rng: np.random.Generator) -> Width | None:
    """The smallest FSI that is told from noise; None where there is no range or no example."""
    if design.wrappers < 2 or not design.examples or min(design.examples) < 1:
        return None
    panel = _world(design, rng)
    found = spans(panel, resample(panel, rng, resamples=RESAMPLES))
    pairs = pair_intervals(found)
    there = found.there
    by_task = np.array(
        [[pairs[m, t.name].margin for t in panel.tasks] for m in panel.models]  # type: ignore[union-attr]
    )
    means = [mean_over(found, i, there[i]).margin for i in range(len(panel.models))]
    return Width(float(by_task.mean(axis=0).max()), float(np.mean(means)))


def examples_for(design: Design, fsi: float, rng: np.random.Generator) -> tuple[int, int] | None:
    """Examples a task for which ``fsi`` is told from noise: on one task, and as the mean.

    The width shrinks about as one over the root of the examples; the guess is simulated and
    mended a few times.
    """
    now = half_width(design, rng)
    if now is None or not 0 < fsi < 1:
        return None
    largest = max(design.examples)
    alone = _needed(design._replace(examples=(largest,)), fsi, now.task, largest, rng)
    if len(design.examples) == 1:
        return alone, alone
    return alone, _needed(design, fsi, now.mean, largest, rng)


def _needed(
    design: Design, fsi: float, width: float, examples: int, rng: np.random.Generator
) -> int:
    for _ in range(ROUNDS):
        guess = max(2, math.ceil(examples * (width / fsi) ** 2))
        if guess > MOST:
            return guess
        tried = half_width(design._replace(examples=(guess,) * len(design.examples)), rng)
        assert tried is not None
        examples, width = guess, tried.mean
    return max(2, math.ceil(examples * (width / fsi) ** 2))


def _world(design: Design, rng: np.random.Generator) -> Panel:
    """Some worlds without an effect, as the models of one panel."""
    tasks = [_task(f"task{i}", n, design, rng) for i, n in enumerate(design.examples)]
    models, wrappers = (_names(n) for n in (WORLDS, design.wrappers))
    return Panel(models, wrappers, tuple(tasks))


def _task(name: str, examples: int, design: Design, rng: np.random.Generator) -> TaskCounts:
    shape = (WORLDS, examples, design.wrappers, design.draws)
    common = rng.random((WORLDS, examples, 1, 1))
    luck = np.where(rng.random(shape) < SHARED, common, rng.random(shape))
    correct = (luck < ACCURACY).sum(axis=3)
    replies = np.full_like(correct, design.draws)
    return TaskCounts(name, correct, replies, replies, np.arange(examples))


def _names(count: int) -> tuple[str, ...]:
    return tuple(map(str, range(count)))


def seeded() -> np.random.Generator:
    """The generator of a plan's power: the same plan prints the same figures."""
    return np.random.default_rng(0)


def design_of(examples: Sequence[int], wrappers: int, draws: int) -> Design:
    """A design from counts; tasks without examples are left out."""
    return Design(tuple(n for n in examples if n > 0), wrappers, max(1, draws))

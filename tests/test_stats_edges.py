"""No panel, however poor, raises an error or gives a figure that is not a number."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from formatspan.stats.consistency import consistency
from formatspan.stats.decomposition import decompositions, model_parts
from formatspan.stats.forced import forced
from formatspan.stats.generation import generation_regression
from formatspan.stats.intervals import (
    contrast,
    differences,
    equal_accuracy,
    mean_intervals,
    pair_intervals,
    spans,
)
from formatspan.stats.pairwise import wrapper_pairs
from formatspan.stats.panel import Panel, TaskCounts
from formatspan.stats.permutation import noise_floor
from formatspan.stats.ranking import rankings
from formatspan.stats.regression import accuracy_on_parseability
from formatspan.stats.relations import fsi_with_psi
from formatspan.stats.resampling import resample
from formatspan.stats.variance import wrapper_variance
from formatspan.stats.verdict import Sides, verdicts


@st.composite
def panels(draw: st.DrawFn) -> Panel:
    """Small panels: failures, nothing right, nothing parsed, no rows, one of anything."""
    models, wrappers = draw(st.integers(0, 3)), draw(st.integers(0, 4))
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    tasks = []
    for t in range(draw(st.integers(0, 3))):
        shape = (models, draw(st.sampled_from([0, 1, 2, 7])), wrappers)
        least, most = draw(st.sampled_from([(0, 1), (1, 1), (0, 3), (3, 3)]))
        replies = rng.integers(least, most + 1, size=shape)
        parsed = rng.binomial(replies, draw(st.sampled_from([0.0, 0.5, 1.0])))
        correct = rng.binomial(parsed, draw(st.sampled_from([0.0, 0.5, 1.0])))
        clusters = np.arange(shape[1]) // draw(st.sampled_from([1, 2, 10]))
        credit = draw(st.sampled_from([0.0, 0.25]))
        tasks.append(TaskCounts(f"t{t}", correct, parsed, replies, clusters, credit))
    return Panel(tuple(f"m{i}" for i in range(models)), tuple("abcd"[:wrappers]), tuple(tasks))


def _figures(panel: Panel) -> Iterator[Any]:
    rng = np.random.default_rng(0)
    drawn = resample(panel, rng, resamples=30)
    fsi, psi = spans(panel, drawn), spans(panel, drawn, "parseability")
    means = mean_intervals(fsi)
    yield from (drawn, fsi, psi, pair_intervals(fsi), pair_intervals(psi), means)
    yield from (differences(fsi), contrast(means), equal_accuracy(fsi), verdicts(Sides(fsi, fsi)))
    yield noise_floor(panel, rng, count=20)
    parts = decompositions(panel)
    yield from (parts, *(model_parts(parts, m) for m in panel.models))
    yield from (forced(panel), wrapper_variance(panel), wrapper_pairs(panel))
    yield consistency(panel, [np.minimum(t.correct, 1) for t in panel.tasks])
    yield from (accuracy_on_parseability(panel, rng), generation_regression(panel))
    yield fsi_with_psi(fsi, psi)
    common = panel.common()
    yield rankings(common, resample(common, rng, resamples=30))


def _numbers(value: object) -> Iterator[float]:
    if isinstance(value, float | int):
        yield float(value)
    elif isinstance(value, np.ndarray):
        yield from (float(v) for v in value.ravel())
    elif isinstance(value, dict):
        yield from (n for v in value.values() for n in _numbers(v))
    elif isinstance(value, tuple | list):
        yield from (n for v in value for n in _numbers(v))
    elif is_dataclass(value):
        yield from (n for f in fields(value) for n in _numbers(getattr(value, f.name)))


@settings(max_examples=60, deadline=None)
@given(panels())
def test_every_figure_is_a_number_or_a_reason(panel: Panel) -> None:
    for figure in _figures(panel):
        assert all(math.isfinite(n) for n in _numbers(figure)), figure

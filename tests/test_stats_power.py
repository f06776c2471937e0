"""What a number of examples can tell, held against a finer simulation of the same worlds."""

from __future__ import annotations

import numpy as np
import pytest

from formatspan.stats.intervals import Estimate, pair_intervals, spans
from formatspan.stats.power import Design, examples_for, half_width, seeded
from formatspan.stats.resampling import resample
from test_stats_panel import panel, simulated


@pytest.mark.parametrize("examples", [50, 200])
def test_the_width_is_that_of_the_interval(examples: int) -> None:
    rng = np.random.default_rng(5)
    world = panel(simulated(rng, [0.5] * 5, models=40, examples=examples))
    found = pair_intervals(spans(world, resample(world, rng, resamples=2000)))
    margins = [e.margin for e in found.values() if isinstance(e, Estimate)]
    width = half_width(Design((examples,), 5), seeded())
    assert width is not None
    assert width.task == pytest.approx(np.mean(margins), rel=0.06)
    assert width.mean == pytest.approx(width.task)


def test_more_examples_tasks_and_draws_tell_more() -> None:
    def mean(design: Design) -> float:
        width = half_width(design, seeded())
        assert width is not None
        return width.mean

    assert mean(Design((400,), 5)) < mean(Design((100,), 5))
    assert mean(Design((100,) * 6, 5)) < mean(Design((100,), 5))
    assert mean(Design((100,), 5, draws=5)) < mean(Design((100,), 5))
    assert mean(Design((100,), 3)) < mean(Design((100,), 8))


def test_the_examples_needed_have_that_width() -> None:
    needed = examples_for(Design((100,) * 3, 5), 0.08, seeded())
    assert needed is not None
    for count, tasks in zip(needed, (1, 3), strict=True):
        width = half_width(Design((count,) * tasks, 5), np.random.default_rng(9))
        assert width is not None
        assert width.mean == pytest.approx(0.08, rel=0.08)


def test_there_is_no_range_of_one_wrapper() -> None:
    assert half_width(Design((100,), 1), seeded()) is None
    assert half_width(Design((), 5), seeded()) is None
    assert examples_for(Design((100,), 1), 0.05, seeded()) is None

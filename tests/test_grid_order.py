"""The order of asking, which decides what a prefix cache can reuse."""

from __future__ import annotations

from collections.abc import Callable

from formatspan.grid import CHUNK, Budgets, OpenModel, Planned, TaskGrid
from formatspan.planning import load_tasks
from formatspan.study import Study


def _planned(study: Study) -> list[Planned]:
    (data,) = load_tasks(study, None)
    models = [OpenModel(entry, "", None, "", copies=False) for entry in study.models]
    return list(TaskGrid(study, data, models, Budgets({})).planned())


def test_repeats_of_a_prompt_are_far_apart(small_study: Callable[..., Study]) -> None:
    planned = _planned(small_study(seeds=3, temperature=1.0))
    prompts = 10 * 5
    assert [p.point.seed for p in planned] == [0] * prompts + [1] * prompts + [2] * prompts
    wrappers = [p.point.wrapper for p in planned[:prompts]]
    assert wrappers == sorted(wrappers, key=wrappers.index), "one wrapper after the other"


def test_a_few_examples_are_whole_before_the_next_begin() -> None:
    study = Study.build(
        {"models": ["scripted:"], "tasks": ["demo_number"], "examples": CHUNK + 3, "seeds": 2}
    )
    planned = _planned(study)
    first = planned[: CHUNK * 5 * 2]
    assert len({p.point.example_id for p in first}) == CHUNK
    rest = {p.point.example_id for p in planned[len(first) :]}
    assert not rest & {p.point.example_id for p in first}

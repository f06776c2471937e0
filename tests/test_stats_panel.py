"""The panel, and the small worlds that the other tests of statistics are made of."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import ArrayLike, NDArray

from formatspan.stats.panel import Missing, Panel, TaskCounts

WRAPPERS = ["plain", "json", "structured", "delim", "deliberate", "f", "g", "h", "i", "j"]


def counts(
    correct: ArrayLike,
    parsed: ArrayLike | None = None,
    replies: ArrayLike | None = None,
    *,
    clusters: Sequence[int] | None = None,
    name: str = "task",
) -> TaskCounts:
    """A task; arrays of examples × wrappers stand for one model. All parsed unless given."""
    right = _three(correct)
    made = np.ones_like(right) if replies is None else _three(replies)
    good = made if parsed is None else _three(parsed)
    codes = np.arange(right.shape[1]) if clusters is None else np.array(clusters)
    return TaskCounts(name, right, good, made, codes)


def _three(values: ArrayLike) -> NDArray[np.int64]:
    array = np.asarray(values, dtype=np.int64)
    return array[None] if array.ndim == 2 else array


def panel(*tasks: TaskCounts) -> Panel:
    """A panel with made-up names."""
    models, _, wrappers = tasks[0].correct.shape
    return Panel(
        tuple(f"model{i}" for i in range(models)), tuple(WRAPPERS[:wrappers]), tuple(tasks)
    )


def simulated(
    rng: np.random.Generator,
    accuracy: Sequence[float],
    *,
    models: int = 1,
    examples: int = 200,
    seeds: int = 1,
    shared: float = 0.6,
    parse: Sequence[float] | None = None,
    name: str = "task",
) -> TaskCounts:
    """Draws with known accuracy (and parseability) by wrapper, the same for all models.

    A reply is right if its luck is below the accuracy. With probability ``shared`` the luck is
    the example's own, else the reply's: that correlates wrappers and seeds as difficulty does.
    """
    shape = (models, examples, len(accuracy), seeds)
    example = rng.random((models, examples, 1, 1))
    luck = np.where(rng.random(shape) < shared, example, rng.random(shape))
    right = (luck < np.asarray(accuracy)[:, None]).sum(axis=3)
    share = np.ones(len(accuracy)) if parse is None else np.asarray(parse)
    parsed = (luck < share[:, None]).sum(axis=3)
    replies = np.full(right.shape, seeds)
    return TaskCounts(name, right, parsed, replies, np.arange(examples))


def test_means_by_hand() -> None:
    # Example 2 has no reply under the second wrapper, so it is not indexed.
    task = counts([[2, 0], [1, 0], [1, 1]], [[2, 1], [1, 0], [2, 1]], [[2, 2], [1, 0], [2, 1]])
    assert task.indexed.tolist() == [[True, False, True]]
    assert task.means.n.tolist() == [2]
    assert task.means.accuracy[0] == pytest.approx([0.75, 0.5])
    assert task.means.parseability[0] == pytest.approx([1.0, 0.75])
    assert panel(task).missing(0, 0) is None


def test_wrong_shapes_are_refused() -> None:
    ones = np.ones((1, 3, 2), dtype=np.int64)
    with pytest.raises(ValueError, match="three arrays of one shape"):
        TaskCounts("t", ones, ones[:, :2], ones, np.arange(3))
    with pytest.raises(ValueError, match="3 cluster codes"):
        TaskCounts("t", ones, ones, ones, np.arange(2))
    with pytest.raises(ValueError, match="correct <= parsed <= replies"):
        TaskCounts("t", ones, ones * 0, ones, np.arange(3))
    with pytest.raises(ValueError, match="expected 2 models"):
        Panel(("a", "b"), ("f", "g"), (counts([[1, 0]]),))


def test_every_gap_has_a_reason() -> None:
    none = np.zeros((0, 2), dtype=np.int64)
    cases = {
        "no examples": counts(none),
        "not indexed: no replies under json": counts([[1, 0]], replies=[[1, 0]], parsed=[[1, 0]]),
        "not indexed: no example has replies under every wrapper": counts(
            [[1, 0], [0, 1]], [[1, 0], [0, 1]], [[1, 0], [0, 1]]
        ),
        "one wrapper: there is no range": counts([[1], [0]]),
    }
    for reason, task in cases.items():
        assert panel(task).missing(0, 0) == Missing(reason)
    assert Panel(("m",), (), (counts(np.zeros((3, 0))),)).missing(0, 0) == Missing("no wrappers")


def test_common_examples_ignore_a_model_without_any() -> None:
    replies = np.ones((3, 4, 2), dtype=np.int64)
    replies[0, 0, 0] = 0
    replies[1, 3, 1] = 0
    replies[2] = 0
    shared = panel(counts(replies * 0, replies * 0, replies)).common()
    assert shared.indexed.tolist() == [[True], [True], [False]]
    assert shared.tasks[0].indexed[:2].tolist() == [[False, True, True, False]] * 2


def test_fewer_wrappers_index_more_examples() -> None:
    world = panel(counts([[1, 0, 0], [1, 0, 0]], [[1, 0, 0]] * 2, [[1, 1, 0], [1, 1, 1]]))
    fewer = world.on(["json", "plain"])
    assert world.tasks[0].means.n.tolist() == [1]
    assert fewer.wrappers == ("json", "plain")
    assert fewer.tasks[0].means.n.tolist() == [2]
    assert fewer.tasks[0].means.accuracy[0] == pytest.approx([0.0, 1.0])

"""One order per task: fixed by seed and ids, nested, spread over strata."""

import subprocess
import sys
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formatspan.records import Example
from formatspan.tasks import Task, TaskData, coverage, order
from formatspan.tasks.rows import example

IDS = st.lists(st.text(max_size=4), unique=True, min_size=1, max_size=40)
SEEDS = st.integers(min_value=0, max_value=2**31)


def data_of(rows: list[tuple[str, str]], stratify: str | None = None) -> TaskData:
    """Task data with the given (id, category) rows."""

    def parse(row: object, i: int) -> Example:
        raise NotImplementedError

    task = Task("t", "number", "Count.", parse, stratify=stratify)
    made = tuple(example("t", id, "q", 1, metadata={"category": c}) for id, c in rows)
    return TaskData(task, made, "memory", None)


def ids_in_order(data: TaskData, seed: int) -> list[str]:
    return [data.examples[i].id for i in order(data, seed)]


@given(IDS, SEEDS, st.sampled_from([None, "category"]))
def test_order_is_a_permutation(ids: list[str], seed: int, stratify: str | None) -> None:
    data = data_of([(i, i[:1]) for i in ids], stratify)
    assert sorted(order(data, seed)) == list(range(len(ids)))


@given(IDS, SEEDS, st.sampled_from([None, "category"]), st.randoms())
def test_order_does_not_depend_on_the_order_of_the_file(
    ids: list[str], seed: int, stratify: str | None, random: object
) -> None:
    rows = [(i, i[:1]) for i in ids]
    shuffled = list(rows)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    expected = ids_in_order(data_of(rows, stratify), seed)
    assert ids_in_order(data_of(shuffled, stratify), seed) == expected


@given(IDS, SEEDS, st.data())
def test_a_dropped_row_leaves_the_others_in_order(
    ids: list[str], seed: int, draw: st.DataObject
) -> None:
    dropped = draw.draw(st.sampled_from(ids))
    whole = ids_in_order(data_of([(i, "") for i in ids]), seed)
    rest = ids_in_order(data_of([(i, "") for i in ids if i != dropped]), seed)
    assert rest == [i for i in whole if i != dropped]


@given(st.integers(2, 20), st.integers(1, 12), SEEDS, st.data())
def test_equal_strata_are_taken_in_turn(
    strata: int, size: int, seed: int, draw: st.DataObject
) -> None:
    rows = [(f"{s}/{i}", str(s)) for s in range(strata) for i in range(size)]
    data = data_of(rows, "category")
    n = draw.draw(st.integers(0, len(rows)))
    held = Counter(data.examples[i].metadata["category"] for i in order(data, seed)[:n])
    counts = [held[str(s)] for s in range(strata)]
    assert max(counts) - min(counts) <= 1


def test_unequal_strata_are_held_in_proportion() -> None:
    sizes = {"large": 600, "middle": 300, "small": 100}
    rows = [(f"{s}{i}", s) for s, size in sizes.items() for i in range(size)]
    data = data_of(rows, "category")
    for seed in range(5):
        for n in (10, 50, 333, 800):
            held = Counter(data.examples[i].metadata["category"] for i in order(data, seed)[:n])
            assert all(abs(held[s] - size * n / 1000) < 2 for s, size in sizes.items())


def test_strata_of_one_row_get_their_places_by_chance() -> None:
    rows = [(f"l{i}", "large") for i in range(500)] + [(f"s{i}", f"s{i}") for i in range(500)]
    data = data_of(rows, "category")
    held = [sum(i >= 500 for i in order(data, seed)[:100]) for seed in range(40)]
    # Each of 500 single rows is among the first 100 with probability 1/10.
    assert 45 < sum(held) / len(held) < 55


def test_thirty_of_fourteen_categories_in_file_order() -> None:
    """Field case c016 (ai-dynamo/aiperf#1204): a limit that covered the first category only."""
    data = data_of([(f"{c}-{i}", f"c{c:02}") for c in range(14) for i in range(100)], "category")
    sample = order(data, 0)[:30]
    found = coverage(data, sample)
    assert (found.column, found.covered, found.total, found.missing) == ("category", 14, 14, ())
    assert str(found) == "covers 14 of 14 values of 'category'"
    few = coverage(data, range(30))  # the first rows of the file
    assert few.covered == 1
    assert str(few).startswith("covers 1 of 14 values of 'category'; without c01, c02")


def test_coverage_without_strata() -> None:
    data = data_of([("a", "x"), ("b", "y")])
    assert coverage(data, (0,)) == (None, 1, 1, ())
    assert str(coverage(data, (0,))) == "not stratified"


def test_seeds_give_different_samples() -> None:
    data = data_of([(str(i), "") for i in range(100)])
    assert len({order(data, seed)[:10] for seed in range(20)}) == 20


@pytest.mark.parametrize("hash_seed", ["0", "1"])
def test_order_is_the_same_in_every_process(hash_seed: str) -> None:
    code = (
        "import sys; sys.path.insert(0, 'tests')\n"
        "from test_tasks_sampling import data_of, order\n"
        "data = data_of([(str(i), str(i % 3)) for i in range(12)], 'category')\n"
        "print(*order(data, 7))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True,
        env={"PYTHONHASHSEED": hash_seed, "PYTHONPATH": ":".join(sys.path)},
    )  # fmt: skip
    data = data_of([(str(i), str(i % 3)) for i in range(12)], "category")
    assert done.stdout.split() == [str(i) for i in order(data, 7)]


def test_order_is_kept_between_versions() -> None:
    """Another order would ask other questions when a run grows.

    Expected: ``printf "0\\000$i" | sha256sum`` for i = 0…7, sorted; with strata a calculation
    with fractions.
    """
    rows = [(str(i), str(i % 3)) for i in range(8)]
    assert order(data_of(rows), 0) == (1, 4, 5, 0, 3, 2, 7, 6)
    assert order(data_of(rows, "category"), 0) == (1, 0, 5, 4, 3, 7, 2, 6)

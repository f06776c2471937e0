"""WinoGrande: which of two names or things fills the blank.

Source: https://huggingface.co/datasets/allenai/winogrande (config winogrande_xl, split
validation, 1,267 rows; Sakaguchi et al. 2019, arXiv 1907.10641). Licence: CC BY.

A row in the hub's layout (invented)::

    {"sentence": "The cup did not fit into the box because the _ was too small.",
     "option1": "cup", "option2": "box", "answer": "2"}

Rows have no ids, so the 0-based row number is the id. Many rows have a *twin* beside them
that differs in a word or two and in the answer; twins are one cluster.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from formatspan.records import Example
from formatspan.tasks import golds, rows
from formatspan.tasks.golds import Options
from formatspan.tasks.task import HubSource, Row, Task

TWIN_OVERLAP = 0.7
"""Least word overlap of twins; in the data, neighbours on the same options lie above 0.76."""


def parse(row: Row, i: int) -> Example:
    """Row ``i`` as an example."""
    options = (rows.text(row, "option1"), rows.text(row, "option2"))
    answer = rows.key(row.get("answer"), "answer")
    return rows.example(
        "winogrande",
        str(i),
        rows.text(row, "sentence"),
        golds.source_label(Options(options, ("1", "2")), answer, "answer"),
        options=options,
    )


def twins(a: Example, b: Example) -> bool:
    """Whether ``a`` and ``b`` are twin sentences.

    They offer the same two options, the right one differs, and their words overlap:
    2·common / (words of a + words of b) ≥ 0.7, counting repeated words.
    """
    if set(a.options) != set(b.options) or _right(a) == _right(b):
        return False
    words_a, words_b = Counter(a.question.split()), Counter(b.question.split())
    common = (words_a & words_b).total()
    return 2 * common >= TWIN_OVERLAP * (words_a.total() + words_b.total())


def clusters(examples: Sequence[Example]) -> list[str]:
    """Cluster of each example: the id of the first of a run of neighbouring twins."""
    found: list[str] = []
    for i, example in enumerate(examples):
        twin = i > 0 and twins(examples[i - 1], example)
        found.append(found[-1] if twin else example.id)
    return found


def _right(example: Example) -> str:
    return example.options["AB".index(str(example.gold))]


TASK = Task(
    name="winogrande",
    kind="choice",
    instruction="Choose the option that fills the blank _ in the sentence.",
    parse=parse,
    cluster=clusters,
    hub=HubSource(
        "allenai/winogrande",
        "winogrande_xl",
        "validation",
        "01e74176c63542e6b0bcb004dcdea22d94fb67b5",
        ("winogrande_xl/validation-00000-of-00001.parquet",),
    ),
)

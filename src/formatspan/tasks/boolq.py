"""BoolQ: naturally asked yes/no questions, each about a passage.

Source: https://huggingface.co/datasets/google/boolq (config default, split validation, 3,270
rows; Clark et al. 2019, arXiv 1905.10044). Licence: CC BY-SA 3.0.

A row in the hub's layout (invented)::

    {"question": "can penguins fly", "answer": false,
     "passage": "Penguins are sea birds. Their wings have become flippers, ..."}

Rows have no ids, so the 0-based row number is the id. Questions on one passage are one
cluster.
"""

from __future__ import annotations

import hashlib

from formatspan.records import Example
from formatspan.tasks import golds, rows
from formatspan.tasks.task import HubSource, Row, Task


def parse(row: Row, i: int) -> Example:
    """Row ``i`` as an example; its cluster is a hash of the passage."""
    passage = rows.text(row, "passage")
    return rows.example(
        "boolq",
        str(i),
        rows.text(row, "question"),
        golds.boolean(row.get("answer")),
        context=passage,
        cluster=hashlib.sha256(passage.encode()).hexdigest()[:16],
    )


TASK = Task(
    name="boolq",
    kind="boolean",
    instruction="Answer the question from the passage.",
    parse=parse,
    words=("yes", "no"),
    hub=HubSource(
        "google/boolq",
        "default",
        "validation",
        "35b264d03638db9f4ce671b711558bf7ff0f80d5",
        ("data/validation-00000-of-00001.parquet",),
    ),
)

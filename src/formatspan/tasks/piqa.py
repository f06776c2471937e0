"""PIQA: which of two ways reaches an everyday physical goal.

Source: https://huggingface.co/datasets/ybisk/piqa (config plain_text, split validation, 1,838
rows; Bisk et al. 2020, arXiv 1911.11641). Licence: AFL 3.0.

A row in the hub's layout (invented)::

    {"goal": "Keep a door open.", "sol1": "Put a feather under it.",
     "sol2": "Put a wedge under it.", "label": 1}

Rows have no ids, so the 0-based row number is the id; goals repeat. The data set's own
branch holds a loader script, so the pinned commit is one of ``refs/convert/parquet``.
"""

from __future__ import annotations

from formatspan.records import Example
from formatspan.tasks import golds, rows
from formatspan.tasks.golds import Options
from formatspan.tasks.task import HubSource, Row, Task


def parse(row: Row, i: int) -> Example:
    """Row ``i`` as an example; the options are the two solutions."""
    solutions = (rows.text(row, "sol1"), rows.text(row, "sol2"))
    label = rows.key(row.get("label"), "label")
    return rows.example(
        "piqa",
        str(i),
        rows.text(row, "goal"),
        golds.source_label(Options(solutions, ("0", "1")), label, "label"),
        options=solutions,
    )


TASK = Task(
    name="piqa",
    kind="choice",
    instruction="Choose the better way to reach the goal.",
    parse=parse,
    hub=HubSource(
        "ybisk/piqa",
        "plain_text",
        "validation",
        "142c51238b3ca2bc61e9a075913871b8b600e8e1",
        ("plain_text/validation/0000.parquet",),
    ),
)

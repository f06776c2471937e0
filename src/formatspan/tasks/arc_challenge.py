"""ARC-Challenge: grade-school science questions that simple look-up methods miss.

Source: https://huggingface.co/datasets/allenai/ai2_arc (config ARC-Challenge, split test,
1,172 rows; Clark et al. 2018, arXiv 1803.05457). Licence: CC BY-SA 4.0.

A row in the hub's layout (invented)::

    {"id": "Example_7", "question": "Which of these melts at room temperature?",
     "choices": {"text": ["ice", "iron", "quartz"], "label": ["A", "B", "C"]},
     "answerKey": "A"}

Rows have 3 to 5 options, and some are labelled 1, 2, 3… at the source; the gold answer is
found by its position among those labels.
"""

from __future__ import annotations

from formatspan.records import Example
from formatspan.tasks import golds, rows
from formatspan.tasks.task import HubSource, Row, Task


def parse(row: Row, i: int) -> Example:
    """One row as an example; its id is the source's."""
    options = rows.labelled(row)
    return rows.example(
        "arc_challenge",
        rows.text(row, "id"),
        rows.text(row, "question"),
        golds.source_label(options, row.get("answerKey"), "answerKey"),
        options=options.texts,
    )


TASK = Task(
    name="arc_challenge",
    kind="choice",
    instruction="Choose the best answer to the science question.",
    parse=parse,
    hub=HubSource(
        "allenai/ai2_arc",
        "ARC-Challenge",
        "test",
        "210d026faf9955653af8916fad021475a3f00453",
        ("ARC-Challenge/test-00000-of-00001.parquet",),
    ),
)

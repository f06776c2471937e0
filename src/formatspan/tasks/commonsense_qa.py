"""CommonsenseQA: everyday questions with five options each.

Source: https://huggingface.co/datasets/tau/commonsense_qa (config default, split validation,
1,221 rows; Talmor et al. 2019, arXiv 1811.00937). Licence: MIT according to the hub's card.

A row in the hub's layout (invented)::

    {"id": "0123abcd", "question": "Where would you hang a wet coat?",
     "question_concept": "coat",
     "choices": {"label": ["A", "B", "C", "D", "E"],
                 "text": ["hook", "oven", "pond", "library", "letter"]},
     "answerKey": "A"}

Some rows repeat an option's text, so the gold answer is found by its label, never by text.
"""

from __future__ import annotations

from formatspan.records import Example
from formatspan.tasks import golds, rows
from formatspan.tasks.task import HubSource, Row, Task


def parse(row: Row, i: int) -> Example:
    """One row as an example; its id is the source's."""
    options = rows.labelled(row)
    return rows.example(
        "commonsense_qa",
        rows.text(row, "id"),
        rows.text(row, "question"),
        golds.source_label(options, row.get("answerKey"), "answerKey"),
        options=options.texts,
        metadata=rows.metadata(row, "question_concept"),
    )


TASK = Task(
    name="commonsense_qa",
    kind="choice",
    instruction="Choose the best answer to the common-sense question.",
    parse=parse,
    hub=HubSource(
        "tau/commonsense_qa",
        "default",
        "validation",
        "94630fe30dad47192a8546eb75f094926d47e155",
        ("data/validation-00000-of-00001.parquet",),
    ),
)

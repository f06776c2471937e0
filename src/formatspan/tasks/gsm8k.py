r"""GSM8K: grade-school word problems whose answer is a number.

Source: https://huggingface.co/datasets/openai/gsm8k (config main, split test, 1,319 rows;
Cobbe et al. 2021, arXiv 2110.14168). Licence: MIT.

A row in the hub's layout (invented)::

    {"question": "Ana has 3 bags of 400 beads and finds 34 more. How many beads has she?",
     "answer": "The bags hold 3 * 400 = <<3*400=1200>>1200 beads.\nIn all ...\n#### 1,234"}

The gold number stands after the only ``####``; it may have thousands commas or a minus
sign. Rows have no ids, so the 0-based row number is the id.
"""

from __future__ import annotations

from formatspan.records import Example
from formatspan.tasks import golds, rows
from formatspan.tasks.task import HubSource, Row, RowError, Task

MARK = "\n#### "


def parse(row: Row, i: int) -> Example:
    """Row ``i`` as an example."""
    return rows.example(
        "gsm8k", str(i), rows.text(row, "question"), final(rows.text(row, "answer"))
    )


def final(solution: str) -> int | float:
    """The number that a worked solution ends in.

    Raises:
        RowError: The mark is missing or not the only one, or no number follows it.
    """
    if solution.count("####") != 1 or MARK not in solution:
        raise RowError("answer", "expected a last line '#### NUMBER', and no other '####'")
    return golds.number(solution.partition(MARK)[2])


TASK = Task(
    name="gsm8k",
    kind="number",
    instruction="Solve the math word problem.",
    parse=parse,
    hub=HubSource(
        "openai/gsm8k",
        "main",
        "test",
        "740312add88f781978c0658806c59bc2815b9866",
        ("main/test-00000-of-00001.parquet",),
    ),
)

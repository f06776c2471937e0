"""HellaSwag: which of four endings continues a scene.

Source: https://huggingface.co/datasets/Rowan/hellaswag (config default, split validation,
10,042 rows; Zellers et al. 2019, arXiv 1905.07830). Licence: MIT.

A row in the hub's layout (invented)::

    {"ind": 5, "activity_label": "Making tea", "ctx_a": "A kettle is boiling.",
     "ctx_b": "a woman", "ctx": "A kettle is boiling. a woman",
     "endings": ["pours the water into a pot.", "paints the wall.", "digs a hole.",
                 "sails away."],
     "source_id": "activitynet~v_example", "split": "val", "split_type": "indomain",
     "label": "0"}

``ind`` counts the rows of each source (ActivityNet, WikiHow) on its own, so the two ranges
overlap; the id is the source's name with ``ind``.
"""

from __future__ import annotations

from formatspan.records import Example
from formatspan.tasks import golds, rows
from formatspan.tasks.golds import Options
from formatspan.tasks.task import HubSource, Row, Task


def parse(row: Row, i: int) -> Example:
    """Row ``i`` as an example; the options are the endings."""
    endings = rows.texts(row.get("endings"), "endings")
    positions = tuple(str(p) for p in range(len(endings)))
    origin = rows.text(row, "source_id").partition("~")[0]
    return rows.example(
        "hellaswag",
        f"{origin}-{rows.key(row.get('ind'), 'ind') or i}",
        rows.text(row, "ctx"),
        golds.source_label(
            Options(endings, positions), rows.key(row.get("label"), "label"), "label"
        ),
        options=endings,
        metadata=rows.metadata(row, "activity_label", "source_id", "split_type"),
    )


TASK = Task(
    name="hellaswag",
    kind="choice",
    instruction="Choose the most plausible continuation of the text.",
    parse=parse,
    hub=HubSource(
        "Rowan/hellaswag",
        "default",
        "validation",
        "218ec52e09a7e7462a5400043bb9a69a41d06b76",
        ("data/validation-00000-of-00001.parquet",),
    ),
)

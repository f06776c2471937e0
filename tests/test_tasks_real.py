"""The real files, where they are at hand: all rows load, unchanged.

Expected counts are those that the folder's SOURCES.md lists, which another program made.
"""

import json
import os
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from formatspan.tasks import coverage, file_task, load, order

FOLDER = Path(
    os.environ.get("FORMATSPAN_DATA") or Path(__file__).parents[1].parent / "shared" / "data"
)

pytestmark = pytest.mark.skipif(
    not (FOLDER / "SOURCES.md").is_file(), reason=f"no real data files at {FOLDER}"
)

GOLDS: dict[str, dict[Any, int]] = {
    "arc_challenge": {"A": 218, "B": 276, "C": 272, "D": 234},
    "boolq": {True: 625, False: 375},
    "commonsense_qa": {"A": 200, "B": 211, "C": 204, "D": 197, "E": 188},
    "hellaswag": {"A": 267, "B": 228, "C": 266, "D": 239},
    "piqa": {"A": 492, "B": 508},
    "winogrande": {"A": 493, "B": 507},
    "arc_easy": {"A": 116, "B": 132, "C": 135, "D": 117},
    "openbookqa": {"A": 126, "B": 138, "C": 110, "D": 126},
    "mmlu": {"A": 149, "B": 144, "C": 139, "D": 138},
}

CLUSTERS = {"boolq": 951, "winogrande": 773}
"""WinoGrande: 227 pairs of neighbours on the same two options, all of them twins."""

FILES: dict[str, dict[str, Any]] = {
    "arc_easy": {"columns": {"options": "choices", "answer": "answerKey"}},
    "openbookqa": {
        "columns": {"question": "question_stem", "options": "choices", "answer": "answerKey"}
    },
    "mmlu": {"columns": {"options": "choices"}, "answer_is": "index"},
}
"""Those that are no task of the table, read as a user's file."""


def raw_rows(name: str) -> list[dict[str, Any]]:
    lines = (FOLDER / f"{name}.jsonl").read_text(encoding="utf-8").split("\n")
    return [json.loads(line) for line in lines if line]


@pytest.mark.parametrize("name", [n for n in GOLDS if n not in FILES])
def test_tasks_of_the_table(name: str) -> None:
    data = load(name, data_dir=FOLDER)
    assert len(data.examples) == 1000
    assert Counter(e.gold for e in data.examples) == GOLDS[name]
    assert len({e.cluster for e in data.examples}) == CLUSTERS.get(name, 1000)
    assert data.notes == ()


def test_gsm8k() -> None:
    data = load("gsm8k", data_dir=FOLDER)
    numbers = [e.gold for e in data.examples]
    assert len(numbers) == 1000
    assert all(isinstance(n, int) for n in numbers)
    assert (min(numbers), max(numbers)) == (-10, 2880000)
    assert numbers[489] == -10
    assert Counter(numbers).most_common(1) == [(4, 32)]


@pytest.mark.parametrize("name", sorted(FILES))
def test_other_files(name: str) -> None:
    data = file_task(FOLDER / f"{name}.jsonl", **FILES[name])
    assert data.task.kind == "choice"
    assert len(data.examples) == sum(GOLDS[name].values())
    assert Counter(e.gold for e in data.examples) == GOLDS[name]


def test_mmlu_samples_cover_the_subjects() -> None:
    data = file_task(FOLDER / "mmlu.jsonl", **FILES["mmlu"])
    assert coverage(data, order(data, 0)[:57])[:3] == ("subject", 57, 57)


def test_texts_are_verbatim() -> None:
    for name, fields in {
        "piqa": ("goal", "sol1", "sol2"),
        "boolq": ("question", "passage"),
    }.items():
        for row, example in zip(raw_rows(name), load(name, data_dir=FOLDER).examples, strict=True):
            texts = (example.question, example.context, *example.options)
            assert [row[f] for f in fields] == [t for t in texts if t]
    for row, example in zip(
        raw_rows("commonsense_qa"), load("commonsense_qa", data_dir=FOLDER).examples, strict=True
    ):
        assert tuple(row["choices"]["text"]) == example.options
        assert "ABCDE".index(row["answerKey"]) == "ABCDE".index(str(example.gold))


def test_odd_rows_of_arc() -> None:
    found = {e.id: e for e in load("arc_challenge", data_dir=FOLDER).examples}
    assert len(found["NYSEDREGENTS_2010_4_4"].options) == 3
    assert len(found["TIMSS_1995_8_J7"].options) == 5
    assert Counter(len(e.options) for e in found.values()) == {4: 995, 3: 3, 5: 2}

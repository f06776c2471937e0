"""Every reported failure of public tools in the field cases comes out as it should.

The cases lie beside the project, or in the folder that FORMATSPAN_CASES names.
"""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from formatspan.contracts import CONTRACTS, Contract
from formatspan.extraction import extract
from formatspan.records import Answer, Extraction, Level

FOLDER = Path(
    os.environ.get("FORMATSPAN_CASES", Path(__file__).parents[1] / ".." / "shared" / "cases")
)
FILE = FOLDER / "extraction.jsonl"
KINDS = {"mc": "choice", "bool": "boolean", "number": "number"}


def _cases() -> list[Any]:
    if not FILE.is_file():
        reason = f"no extraction.jsonl in {FOLDER}; set FORMATSPAN_CASES to a folder with it"
        return [pytest.param({}, id="absent", marks=pytest.mark.skip(reason=reason))]
    lines = FILE.read_text(encoding="utf-8").splitlines()
    return [_param(json.loads(line)) for line in lines if line.strip()]


def _param(case: dict[str, Any]) -> Any:  # noqa: ANN401 - pytest's ParameterSet is private
    kind = case["input"]["kind"]
    marks = []
    if kind not in KINDS or case["input"].get("multi"):
        reason = "several answers at once: multi" if kind in KINDS else f"kind {kind}"
        marks = [pytest.mark.skip(reason=f"{case['id']}: not supported: {reason}")]
    return pytest.param(case, id=case["id"], marks=marks)


def _contract(given: dict[str, Any]) -> Contract:
    contract = CONTRACTS[given["asked"]]
    return replace(contract, before=f"{given['cue']}: ") if "cue" in given else contract


def _extract(given: dict[str, Any], level: Level) -> Extraction:
    return extract(
        given["output"],
        contract=_contract(given),
        kind=KINDS[given["kind"]],  # type: ignore[arg-type]
        labels=given.get("labels"),
        options=given.get("options"),
        level=level,
        finish_reason=given.get("finish_reason", "stop"),
        question=given.get("item_question"),
    )


def _gold(given: dict[str, Any]) -> Answer:
    gold = given["gold"]
    if "dataset_labels" in given:
        gold = given["labels"][given["dataset_labels"].index(gold)]
    assert isinstance(gold, str | bool | int | float)
    return gold


def _allowed(case: dict[str, Any], expected: dict[str, Any]) -> set[tuple[str, str | None]]:
    allowed = {(expected["status"], _shown(expected["value"]))}
    for other in expected.get("also_ok", ()):
        status, _, value = other.partition(":")
        allowed.add((status, value or None))
    return allowed


def _shown(value: Answer | None) -> str | None:
    return None if value is None else str(value)


@pytest.mark.parametrize("level", ["strict", "lenient"])
@pytest.mark.parametrize("case", _cases())
def test_case(case: dict[str, Any], level: Level) -> None:
    expected = case[f"expected_{level}"]
    got = _extract(case["input"], level)
    assert (got.status.value, _shown(got.value)) in _allowed(case, expected), case["symptom"]
    if got.status == expected["status"]:
        correct = got.value is not None and got.value == _gold(case["input"])
        assert correct == expected["correct"]
    assert got.value is None or not any(
        type(got.value) is type(never) and got.value == never for never in expected.get("never", ())
    )
    assert (got.value is None) == (got.status != "ok")

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any, cast

import pytest

import formatspan


def test_public_names_are_listed_once_and_there() -> None:
    # That they are sorted is the linter's business (RUF022).
    assert len(set(formatspan.__all__)) == len(formatspan.__all__)
    for name in formatspan.__all__:
        assert getattr(formatspan, name) is not None


def test_unknown_name_is_an_attribute_error() -> None:
    assert not hasattr(formatspan, "no_such_name")


def test_help_loads_nothing_heavy() -> None:
    code = (
        "import sys, formatspan.cli; "
        "heavy = {'polars', 'numpy', 'pydantic', 'aiohttp', 'openvino', 'jinja2', 'yaml'}; "
        "print(sorted(heavy & sys.modules.keys()))"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"text": None}, "text: expected a reply as text, got NoneType"),
        ({"text": b"A"}, "text: expected a reply as text, got bytes"),
        ({"labels": [1, 2]}, r"labels: expected a list of texts, got \[1, 2\]"),
        ({"labels": 5}, "labels: expected a list of texts"),
        ({"options": [None, "x"]}, "options: expected a list of texts"),
        ({"options": {1: "x"}}, "options: expected a list of texts"),
        ({"level": "foo"}, "level 'foo': expected strict, normalized, lenient or paper"),
        ({"level": None}, "level None: expected strict"),
        ({"kind": "foo"}, "kind 'foo': expected choice, boolean or number"),
        ({"contract": "foo"}, "contract 'foo': expected letter_only"),
        ({"contract": ["x"]}, "expected letter_only"),
        ({"finish_reason": 5}, "finish_reason: expected text or None, got int"),
        ({"question": 5}, "question: expected text or None, got int"),
    ],
)
def test_extract_says_which_argument_is_wrong(keys: dict[str, Any], said: str) -> None:
    given: dict[str, Any] = {"text": "A", "contract": "letter_only", "kind": "choice"}
    given |= {"labels": "AB"} | keys
    with pytest.raises(formatspan.UserError, match=said):
        formatspan.extract(given.pop("text"), **given)


def test_run_and_analyze_say_what_they_expect(tmp_path: Path) -> None:
    wrong: Any = {"models": ["scripted:"], "tasks": ["boolq"]}
    with pytest.raises(formatspan.StudyError, match=r"expected a Study, got dict: .*Study\.build"):
        formatspan.run(wrong)
    study = formatspan.Study.build(wrong)
    for name in ("out", "data_dir", "cache"):
        with pytest.raises(formatspan.StudyError, match=f"{name}: expected a path, got int"):
            formatspan.run(study, **{name: cast(Any, 5)})
    with pytest.raises(formatspan.RunError, match="expected a run or the path of its folder"):
        formatspan.analyze(cast(Any, None))
    assert list(tmp_path.iterdir()) == []

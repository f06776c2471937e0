"""Shared by all tests: where outside material is, and small studies to run."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from formatspan.study import Study

settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")

ROOT = Path(__file__).parent.parent


def cases_folder() -> Path:
    """Folder with the field cases; it may be absent."""
    return Path(os.environ.get("FORMATSPAN_CASES", ROOT.parent / "shared" / "cases"))


def data_folder() -> Path:
    """Folder with real rows of the seven data sets; it may be absent."""
    return Path(os.environ.get("FORMATSPAN_DATA", ROOT.parent / "shared" / "data"))


@pytest.fixture
def rows_file(tmp_path: Path) -> Path:
    """A data file of the user's: 12 arithmetic questions."""
    path = tmp_path / "sums.jsonl"
    lines = [f'{{"question": "What is {i} + {i + 1}?", "answer": {2 * i + 1}}}' for i in range(12)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


@pytest.fixture
def small_study(rows_file: Path) -> Callable[..., Study]:
    """A study of one scripted model on the user's file; keywords replace its keys."""

    def build(**keys: Any) -> Study:  # noqa: ANN401 - study keys are of many types
        script = {"accuracy": 0.8, "comply": {"json": 0.2}, "break": ["silence"]}
        data: dict[str, Any] = {
            "name": "small",
            "models": [{"model": "scripted:", "name": "script", "extra_body": script}],
            "tasks": [str(rows_file)],
            "examples": 10,
        }
        return Study.build({**data, **keys})

    return build

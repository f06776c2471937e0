"""The scored table: its order, and how often a reply is read."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

import formatspan.table
from formatspan.scoring import score
from formatspan.session import run
from formatspan.store import Store
from formatspan.study import Study
from formatspan.table import scored

KEY = ["model", "task", "example", "wrapper", "mode", "seed"]
ONE = {"model": "scripted:accuracy=0.7", "name": "one"}
TWO = {"model": "scripted:comply=0.5", "name": "Two"}


def _table(folder: Path, study: Study) -> pl.DataFrame:
    with Store.read(folder / "run.sqlite") as store:
        return scored(store, study, "normalized")


def test_the_table_does_not_depend_on_how_a_run_grew(
    small_study: Callable[..., Study], tmp_path: Path
) -> None:
    whole = small_study(models=[TWO, ONE], examples=10)
    run(whole, out=tmp_path / "whole")
    for step in (
        small_study(models=[ONE], examples=4),
        small_study(models=[ONE], examples=10),
        whole,
    ):
        run(step, out=tmp_path / "grown")
    found = _table(tmp_path / "grown", whole)
    assert found.equals(_table(tmp_path / "whole", whole))
    keys = [tuple(map(str, row)) for row in found.select(KEY).iter_rows()]
    assert keys == sorted(keys)
    assert len(found) == 2 * 5 * 10


def test_equal_replies_to_a_prompt_are_scored_once(
    small_study: Callable[..., Study], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    twins = [{"model": "scripted:", "name": f"m{i}"} for i in range(3)]
    study = small_study(models=twins, examples=6, seeds=4)
    run(study, out=tmp_path / "run")
    read: list[str] = []

    def counted(text: str, *rest: object) -> object:
        read.append(text)
        return score(text, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(formatspan.table, "score", counted)
    found = _table(tmp_path / "run", study)
    assert len(found) == 3 * 4 * 5 * 6
    assert found["correct"].all()
    assert len(read) == 5 * 6, "three models and four repeats gave one reply to each prompt"

"""Imports go one way; see the drawing in CONTRIBUTING.md."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "src" / "formatspan"

ORDER = (
    ("errors", "interrupts", "loops", "counting", "moments", "_version"),
    ("records", "atomic", "connection", "mistakes", "paths", "quoting", "stub"),
    ("contracts", "locking"),
    ("constraints",),
    ("wrappers", "extraction", "backends", "schema", "stored", "stats", "routing"),
    ("tasks",),
    ("scoring", "store", "study_file", "study_values", "folder"),
    ("study",),
    ("grid", "growth", "spending"),
    ("planning",),
    ("runner", "checks"),
    ("batches", "asking", "building"),
    ("session", "billing", "show", "table", "inference"),
    ("analysis",),
    ("imported",),
    ("comparison", "falsifier"),
    ("report",),
    ("progress",),
    ("cli",),
    ("__main__",),
)
LEVEL = {room: level for level, rooms in enumerate(ORDER) for room in rooms}


def _room(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def _imports(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("formatspan."):
            found.add((node.module or "").split(".")[1])
    return found


FILES = sorted(p for p in PACKAGE.rglob("*.py") if p != PACKAGE / "__init__.py")


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_arrows_go_one_way(path: Path) -> None:
    here = _room(path)
    for there in _imports(path) - {here}:
        assert LEVEL[there] < LEVEL[here], f"{here} must not import {there}"


def test_every_room_is_drawn() -> None:
    assert {_room(p) for p in FILES} == LEVEL.keys()


def test_statistics_know_only_arrays() -> None:
    for path in (PACKAGE / "stats").glob("*.py"):
        assert _imports(path) <= {"stats", "errors", "counting"}

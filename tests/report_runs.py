"""Runs and analyses for the tests of reports: scripted models on the demo tasks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import formatspan
from formatspan.analysis import Analysis
from formatspan.study import Study

WRAPPERS = ("plain", "json", "structured", "structured_delim", "deliberate")
TASKS = ("demo_choice", "demo_boolean", "demo_number")
MODELS: tuple[tuple[str, dict[str, Any], float], ...] = (
    ("steady", {"accuracy": 0.8}, 7.0),
    ("clumsy", {"accuracy": 0.7, "comply": {"json": 0.1, "structured": 0.6}}, 3.0),
    ("fickle", {"accuracy": {"default": 0.75, "deliberate": 0.4}, "comply": 0.9}, 1.5),
)


def study(**keys: Any) -> Study:  # noqa: ANN401 - study keys are of many types
    """Three scripted models on the demo tasks."""
    models = [
        {"model": "scripted:", "name": name, "extra_body": {**script, "seed": i}, "size_b": size}
        for i, (name, script, size) in enumerate(MODELS)
    ]
    data: dict[str, Any] = {"name": "which-format", "models": models, "tasks": list(TASKS)}
    return Study.build({**data, "examples": 40, **keys})


def run(out: Path, **keys: Any) -> Path:  # noqa: ANN401 - study keys are of many types
    """Run that study; returns the run's folder."""
    return formatspan.run(study(**keys), out=out).folder


def full(folder: Path) -> Analysis:
    """The analysis of a run with every frame that a report can show."""
    return formatspan.analyze(folder, levels=True, caps=True)

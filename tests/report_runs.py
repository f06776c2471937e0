"""Runs and analyses for the tests of reports: scripted models, and figures as planned.

`full` adds to a real analysis every column and frame that a report can show, with invented but
consistent figures, so that all sections have content.
"""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import polars as pl

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
    """The analysis of a run with every figure that a report can show."""
    found = formatspan.analyze(folder)
    frames: dict[str, Any] = {k: getattr(found, k) for k in found.__dataclass_fields__}
    frames["pairs"] = _pairs(found.pairs)
    frames["models"] = _models(found.models)
    frames |= _further(found) | {"to_json": found.to_json}
    return cast("Analysis", SimpleNamespace(**frames))


def _limits(index: str) -> list[pl.Expr]:
    return [
        (pl.col(index) - 0.06).clip(0, 1).alias(f"{index}_low"),
        (pl.col(index) + 0.06).clip(0, 1).alias(f"{index}_high"),
    ]


def _parts() -> list[pl.Expr]:
    return [
        (pl.col("fsi") * 0.9).alias("compliance_part"),
        (pl.col("fsi") * 0.1).alias("conditional_part"),
    ]


def _pairs(pairs: pl.DataFrame) -> pl.DataFrame:
    significant = pl.when(pl.col("fsi") > 0.12).then(0.0004).otherwise(0.4)
    return pairs.with_columns(
        *_limits("fsi"),
        *_limits("psi"),
        *_parts(),
        significant.alias("p_holm"),
        noise_floor=pl.lit(0.05),
    )


def _models(models: pl.DataFrame) -> pl.DataFrame:
    return models.with_columns(
        *_limits("fsi"),
        *_limits("psi"),
        *_parts(),
        noise_floor=pl.lit(0.05),
        compliance_share=pl.lit(0.9),
        p_equal_min_holm=pl.when(pl.col("fsi") > 0.12).then(0.0004).otherwise(0.4),
        rank_low=pl.lit(1),
        rank_high=pl.lit(3),
    )


def _further(found: Analysis) -> dict[str, Any]:
    names = [m for m, _, _ in MODELS]
    spreads = [(m, "demo_number", f"e{i}", (i % 11) / 100) for m in names for i in range(60)]
    ranks = [
        (m, w, 1 + (i + j) % 3, 0.7) for i, m in enumerate(names) for j, w in enumerate(WRAPPERS)
    ]
    caps = [(m, c, 0.9 / c, 0.7 / c, True) for m in names for c in (1, 2, 4, 8, 16, 24)]
    turned = [("steady", "fickle", "deliberate", "plain", 0.12)]
    against = [(m, "plain", w, 0.2, 0.1, 0.3, 0.001) for m in names for w in WRAPPERS[1:]]
    return {
        "spreads": _named(spreads, "model task example spread"),
        "ranks": _named(ranks, "model wrapper rank accuracy"),
        "caps": _named(caps, "model cap fsi psi exact"),
        "reversals": _named(turned, "model_a model_b wrapper_for wrapper_against gap"),
        "wrapper_pairs": _named(against, "model wrapper_a wrapper_b difference low high p_holm"),
        "facts": {
            "kendall_w": 0.61,
            "correlation": {"r": 0.83, "r if only parsing varied": 0.79},
            "regression": {"beta": 0.81, "low": 0.7, "high": 0.92, "clusters": 15, "note": None},
        },
    }


def _named(rows: list[tuple[Any, ...]], columns: str) -> pl.DataFrame:
    return pl.DataFrame(rows, schema=columns.split(), orient="row")

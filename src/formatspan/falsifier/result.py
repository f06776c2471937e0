"""What the falsifier finds, as frozen frames; no drawing and no asking."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from formatspan._version import __version__
from formatspan.records import EXTRACTOR_VERSION

if TYPE_CHECKING:
    import polars as pl

SCHEMA_VERSION = 1
"""Of the JSON form; raised when a key changes its meaning."""

ARMS = (
    "normalized",
    "paper",
    "strict",
    "lenient",
    "partial credit",
    "constrained",
    "likelihood",
    "likelihood by bytes",
)
"""Every arm, the reference first; the last three need replies of their own."""

REFERENCE = "normalized"


def asked_as(arm: str) -> str:
    """The arm whose requests give this one too."""
    return "likelihood" if arm.startswith("likelihood") else arm


@dataclass(frozen=True)
class Falsification:
    """Whether the span survives another way of scoring or decoding. Fractions of 1."""

    study: str
    arms: pl.DataFrame
    """A row a model and arm: mean FSI and PSI with limits, parts, the difference, the finding."""
    relations: pl.DataFrame
    """A row an arm: r and β of accuracy on parseability, beside what scoring alone forces."""
    ability: pl.DataFrame
    """A row a model, arm and wrapper: accuracy, the mean over the tasks that all arms have."""
    absent: Mapping[str, str]
    """Arms that are not there, and why."""
    policies: pl.DataFrame
    """A row a model and repair policy: what it gains and what it costs; empty if none ran."""
    unfinished: Mapping[str, str] = field(default_factory=dict)
    """What was asked just now and still lacks replies, by arm, and why."""

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON: no NaN, undefined figures are null."""
        return {
            "schema_version": SCHEMA_VERSION,
            "formatspan_version": __version__,
            "extractor_version": EXTRACTOR_VERSION,
            "study": self.study,
            "arms": self.arms.to_dicts(),
            "relations": self.relations.to_dicts(),
            "ability": self.ability.to_dicts(),
            "policies": self.policies.to_dicts(),
            "absent": dict(self.absent),
            "unfinished": dict(self.unfinished),
        }

    def to_json(self) -> str:
        """The findings as JSON, indented."""
        return json.dumps(self.to_dict(), indent=2, ensure_ascii=False, allow_nan=False)

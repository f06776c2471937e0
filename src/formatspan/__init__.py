"""Measures how far the formatting shell around a question moves a model's score.

The names listed in ``__all__`` are public; they are loaded when first used, so that importing
the package is fast.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from formatspan._version import __version__

if TYPE_CHECKING:
    from formatspan.analysis import Analysis, analyze
    from formatspan.billing.bill import Plan
    from formatspan.billing.planner import plan
    from formatspan.comparison import Comparison, compare
    from formatspan.contracts import CONTRACTS, Contract
    from formatspan.errors import (
        BackendError,
        DataError,
        FormatspanError,
        RunError,
        StorageError,
        StudyError,
        UserError,
        WrapperError,
    )
    from formatspan.extraction import extract
    from formatspan.falsifier.command import falsify
    from formatspan.falsifier.result import Falsification
    from formatspan.folder import Run
    from formatspan.imported import analyze_table
    from formatspan.records import Extraction, Generation, Status
    from formatspan.session import run
    from formatspan.study import Study

__all__ = [
    "CONTRACTS",
    "Analysis",
    "BackendError",
    "Comparison",
    "Contract",
    "DataError",
    "Extraction",
    "Falsification",
    "FormatspanError",
    "Generation",
    "Plan",
    "Run",
    "RunError",
    "Status",
    "StorageError",
    "Study",
    "StudyError",
    "UserError",
    "WrapperError",
    "__version__",
    "analyze",
    "analyze_table",
    "compare",
    "extract",
    "falsify",
    "plan",
    "run",
]

_HOMES = {
    "analysis": ("Analysis", "analyze"),
    "billing.bill": ("Plan",),
    "comparison": ("Comparison", "compare"),
    "contracts": ("CONTRACTS", "Contract"),
    "errors": (
        "BackendError",
        "DataError",
        "FormatspanError",
        "RunError",
        "StorageError",
        "StudyError",
        "UserError",
        "WrapperError",
    ),
    "extraction": ("extract",),
    "falsifier.command": ("falsify",),
    "falsifier.result": ("Falsification",),
    "folder": ("Run",),
    "imported": ("analyze_table",),
    "billing.planner": ("plan",),
    "records": ("Extraction", "Generation", "Status"),
    "session": ("run",),
    "study": ("Study",),
}


def __getattr__(name: str) -> object:
    for module, names in _HOMES.items():
        if name in names:
            return getattr(import_module(f"formatspan.{module}"), name)
    raise AttributeError(f"module 'formatspan' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)

"""Results of the statistics as plain data: columns of a row, or what JSON can hold."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from formatspan.stats.intervals import Estimate
from formatspan.stats.panel import Missing


def columns(found: object, **names: str) -> dict[str, Any]:
    """Some fields of a result under the names of columns; None for each if it is missing."""
    missing = isinstance(found, Missing)
    return {new: None if missing else getattr(found, old) for old, new in names.items()}


def limits(prefix: str, found: Estimate | Missing) -> dict[str, Any]:
    """Both limits of an estimate as columns."""
    return columns(found, low=f"{prefix}_low", high=f"{prefix}_high")


def plain_data(value: object) -> Any:  # noqa: ANN401 - JSON has no narrower type
    """Results of the statistics as JSON can hold them; a missing figure is its reason."""
    if isinstance(value, Missing):
        reason = value.reason.removeprefix("not estimable: ")
        return f"not estimable: {reason}"
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return {k: plain_data(v) for k, v in value._asdict().items()}
    if isinstance(value, Mapping):
        return {
            " / ".join(k) if isinstance(k, tuple) else str(k): plain_data(v)
            for k, v in value.items()
        }
    if isinstance(value, np.ndarray):
        return plain_data(value.tolist())
    if isinstance(value, tuple | list):
        return [plain_data(v) for v in value]
    return value.item() if isinstance(value, np.generic) else value

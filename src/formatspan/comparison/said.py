"""What a comparison allows to be said in a sentence, and what counts as worse."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from formatspan.comparison.missing import Absent

FEW = 20
"""Fewer examples than this, over all tasks, are too few for a word about sensitivity."""


def conclusion(row: Mapping[str, Any]) -> str:
    """The sentences about one pair of models, no stronger than the intervals allow."""
    if row["note"]:
        return f"Cannot be compared: {row['note']}."
    if row["n"] < FEW:
        return f"Too few common examples to say anything: {row['n']}."
    return f"{_sensitivity(row)} {_accuracy(row)}"


def _sensitivity(row: Mapping[str, Any]) -> str:
    low, high = row["fsi_change_low"], row["fsi_change_high"]
    if low <= 0 <= high:
        return (
            "No difference in sensitivity to the wrapper beyond noise "
            f"(FSI {_signed(row['fsi_change'])} points, 95% interval {_within(low, high)})."
        )
    word = "more" if low > 0 else "less"
    return (
        f"B is {word} sensitive to the wrapper: FSI {_points(row['fsi_a'])} in A, "
        f"{_points(row['fsi_b'])} in B ({_signed(row['fsi_change'])} points, 95% interval "
        f"{_within(low, high)})."
    )


def _accuracy(row: Mapping[str, Any]) -> str:
    low, high = row["accuracy_change_low"], row["accuracy_change_high"]
    moved = f"{_signed(row['accuracy_change'])} points, 95% interval {_within(low, high)}"
    if low <= 0 <= high:
        text = f"No difference in mean accuracy beyond noise ({moved})"
    else:
        text = f"B is {'more' if low > 0 else 'less'} accurate on average ({moved})"
    fell = [w["wrapper"] for w in row["wrappers"] if w["change_high"] < 0]
    rose = [w["wrapper"] for w in row["wrappers"] if w["change_low"] > 0]
    parts = [
        f"{way} beyond noise under {', '.join(names)}"
        for way, names in (("lower", fell), ("higher", rose))
        if names
    ]
    unseen = max(-w["change_low"] for w in row["wrappers"])
    if not fell and unseen > 0:
        parts.append(f"a drop of up to {_points(unseen)} points under one wrapper is not ruled out")
    return "; ".join([text, *parts]) + "."


def losses(row: Mapping[str, Any], points: float) -> Iterator[str]:
    """What is worse by more than ``points`` beyond noise, or could not be compared."""
    models = row["model_a"] if row["model_a"] == row["model_b"] else _versus(row)
    name = models if row["mode"] == "free" else f"{models} ({row['mode']})"
    if row["note"]:
        yield f"{name}: cannot be compared: {row['note']}"
        return
    most = points / 100
    for wrapper in row["wrappers"]:
        if -wrapper["change_high"] > most:
            yield (
                f"{name}: accuracy under {wrapper['wrapper']} fell from "
                f"{_points(wrapper['accuracy_a'])}% to {_points(wrapper['accuracy_b'])}%, by "
                f"{_points(-wrapper['change_high'])} points at least"
            )
    if row["fsi_change_low"] > most:
        yield (
            f"{name}: FSI rose from {_points(row['fsi_a'])} to {_points(row['fsi_b'])} points, by "
            f"{_points(row['fsi_change_low'])} at least"
        )


def absence(gone: Absent) -> str:
    """What the newer side's lack of something means for a gate."""
    name = shlex.quote(gone.name)
    return f"{gone.text}: cannot be compared (--dropped {name} if that is meant)"


def _versus(row: Mapping[str, Any]) -> str:
    return f"{row['model_a']} against {row['model_b']}"


def _points(value: float) -> str:
    return f"{100 * value:.1f}"


def _signed(value: float) -> str:
    return f"{100 * value:+.1f}"


def _within(low: float, high: float) -> str:
    return f"{_signed(low)} to {_signed(high)}"

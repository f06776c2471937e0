"""The sentence about the length cap: where the conclusion changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from formatspan.counting import counted
from formatspan.falsifier.length import Stretch, stretches
from formatspan.report.escape import one_line


def length_sentence(model: str, curve: Sequence[Mapping[str, Any]]) -> str | None:
    """At which cap the conclusion about a model changes; None without a curve.

    Args:
        model: What the model is called.
        curve: Rows of the model with ``cap``, ``fsi``, ``fsi_low`` and ``fsi_high``.
    """
    found = stretches(curve)
    if not found:
        return None
    name = one_line(model)
    if len(found) == 1:
        only = found[0]
        upto = counted(only.last, "token")
        return f"{name}: {only.conclusion} at every cap from {only.first} to {upto}."
    turns = "; ".join(_from(stretch) for stretch in found[1:])
    first = found[0]
    return f"{name}: {first.conclusion} up to a cap of {counted(first.last, 'token')}; {turns}."


def _from(stretch: Stretch) -> str:
    upto = "" if stretch.first == stretch.last else f" to {stretch.last}"
    return f"{stretch.conclusion} from {stretch.first}{upto}"

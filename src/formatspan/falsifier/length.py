"""At which length cap the conclusion changes, from curves over the cap.

A curve is a list of rows with ``cap``, ``fsi_low`` and ``fsi_high``, as the analysis gives for one
model: replies to one run at a large cap, cut at smaller ones and scored again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

Conclusion = Literal["effect", "no effect beyond noise"]


class Stretch(NamedTuple):
    """Neighbouring caps with one conclusion."""

    first: int
    last: int
    """Both in tokens, out of the caps that were tried."""
    conclusion: Conclusion


def stretches(curve: Sequence[Mapping[str, Any]]) -> list[Stretch]:
    """The caps in order, put together where the conclusion is the same."""
    found: list[Stretch] = []
    for row in sorted(curve, key=lambda r: r["cap"]):
        if row["fsi_low"] is None:
            continue
        conclusion: Conclusion = "effect" if row["fsi_low"] > 0 else "no effect beyond noise"
        if found and found[-1].conclusion == conclusion:
            found[-1] = found[-1]._replace(last=row["cap"])
        else:
            found.append(Stretch(row["cap"], row["cap"], conclusion))
    return found

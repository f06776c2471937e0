"""At which length cap the conclusion changes."""

from __future__ import annotations

from typing import Any

from formatspan.falsifier.length import Stretch, stretches
from formatspan.report.length import length_sentence


def curve(**lows: float | None) -> list[dict[str, Any]]:
    return [{"cap": int(cap[1:]), "fsi_low": low, "fsi_high": 1.0} for cap, low in lows.items()]


def test_caps_with_one_conclusion_are_put_together() -> None:
    rows = curve(c8=0.2, c1=0.0, c2=0.0, c4=0.1, c16=0.0, c32=None)
    assert stretches(rows) == [
        Stretch(1, 2, "no effect beyond noise"),
        Stretch(4, 8, "effect"),
        Stretch(16, 16, "no effect beyond noise"),
    ]


def test_the_sentence_names_the_caps() -> None:
    assert length_sentence("m", curve(c1=0.0, c2=0.0, c4=0.1, c8=0.2)) == (
        "m: no effect beyond noise up to a cap of 2 tokens; effect from 4 to 8."
    )
    assert length_sentence("m", curve(c1=0.1, c24=0.2)) == (
        "m: effect at every cap from 1 to 24 tokens."
    )
    assert length_sentence("m", curve(c1=None)) is None
    assert length_sentence("m", []) is None

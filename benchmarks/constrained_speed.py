"""Speed of constrained against free decoding on the embedded engine, as a ratio.

    python benchmarks/constrained_speed.py [--examples 20] [--rounds 3] [--model local:...]

Needs the extra ``local``. The same prompts of the demo suite under the five wrappers are asked
freely and held to their contracts; rounds alternate, since a shared machine drifts. Constrained
replies are shorter, so tokens a second stand beside replies a second. Also printed: how many
constrained replies are the contract, and how many of the others were cut off at the cap.
Last line: ``constrained 10.2 replies/s, free 9.1 replies/s, ratio 1.12; tokens/s ratio 0.97``.
"""

from __future__ import annotations

import argparse
import sqlite3
import statistics
import tempfile
from pathlib import Path
from typing import NamedTuple

from formatspan.analysis import analyze
from formatspan.records import Mode
from formatspan.session import run
from formatspan.study import Study

TASKS = ("demo_choice", "demo_boolean", "demo_number")
MODES: tuple[Mode, ...] = ("free", "constrained")


class Pace(NamedTuple):
    """How fast one mode was."""

    replies: float
    """A second."""
    tokens: float
    """Completion tokens a second."""


def main() -> None:
    """Alternate both modes and compare their medians."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--examples", type=int, default=20, help="of each task")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--model", default="local:smollm2-135m-instruct")
    given = parser.parse_args()
    paces: dict[Mode, list[Pace]] = {mode: [] for mode in MODES}
    for number in range(given.rounds):
        for mode in MODES if number % 2 == 0 else MODES[::-1]:
            with tempfile.TemporaryDirectory() as folder:
                pace = measured(given.model, given.examples, mode, Path(folder))
            paces[mode].append(pace)
            print(f"round {number + 1}, {mode}: {pace.replies:.2f} replies/s", flush=True)
    free, held = (Pace(*map(statistics.median, zip(*paces[m], strict=True))) for m in MODES)
    print(
        f"constrained {held.replies:.2f} replies/s, free {free.replies:.2f} replies/s, "
        f"ratio {held.replies / free.replies:.2f}; "
        f"tokens/s ratio {held.tokens / free.tokens:.2f}"
    )


def measured(model: str, examples: int, mode: Mode, folder: Path) -> Pace:
    """One run in one mode, in a new folder; loading the model is left out."""
    study = Study.build(
        {"models": [model], "tasks": list(TASKS), "examples": examples, "decoding": [mode]}
    )
    run(study, out=folder)
    with sqlite3.connect(folder / "run.sqlite") as store:
        replies, tokens, seconds = store.execute(
            "SELECT count(*), sum(completion_tokens), "
            "(max(julianday(started_at) + latency_s / 86400) - min(julianday(started_at) "
            "+ first_token_s / 86400)) * 86400 FROM generations"
        ).fetchone()
    if mode == "constrained":
        tell_compliance(folder)
    return Pace(replies / seconds, tokens / seconds)


def tell_compliance(folder: Path) -> None:
    """Print how many replies are the contract."""
    statuses = analyze(folder, level="strict", inference=False).statuses
    counts = {r["status"]: 0 for r in statuses.to_dicts()}
    for row in statuses.to_dicts():
        counts[row["status"]] += row["count"]
    total = sum(counts.values())
    cut = counts.get("truncated", 0)
    print(f"  {counts.get('ok', 0)} of {total} constrained replies are the contract, {cut} cut off")


if __name__ == "__main__":
    main()

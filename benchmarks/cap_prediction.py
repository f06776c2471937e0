"""Does truncating long replies predict a run at a small cap? On the embedded engine, greedy.

    python benchmarks/cap_prediction.py [--examples 5] [--small 24] [--large 128]

Needs the extra ``local``. The same prompts are asked twice, with a small and a large
``max_tokens``. Greedy replies at the small cap must be the first tokens of those at the large
cap, and cut off at the small cap if and only if they are longer. Last line:
``75 of 75 replies are as truncation predicts``; the exit code is 1 unless all are.
"""

from __future__ import annotations

import argparse
import json
import sqlite3
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from formatspan.session import run
from formatspan.study import Study

TASKS = ("demo_choice", "demo_boolean", "demo_number")
Place = tuple[str, str, str]


class Ended(NamedTuple):
    """A reply as tokens, and how it ended."""

    tokens: tuple[int, ...]
    finish_reason: str


def main() -> None:
    """Run both caps and compare reply by reply."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--examples", type=int, default=5, help="of each task")
    parser.add_argument("--small", type=int, default=24)
    parser.add_argument("--large", type=int, default=128)
    parser.add_argument("--model", default="local:smollm2-135m-instruct")
    given = parser.parse_args()
    small, large = (replies(given.model, given.examples, k) for k in (given.small, given.large))
    wrong = [place for place, reply in large.items() if small[place] != cut(reply, given.small)]
    for place in wrong[:5]:
        print(f"{' / '.join(place)}: {small[place]} is not {cut(large[place], given.small)}")
    cut_off = sum(r.finish_reason == "length" for r in small.values())
    print(f"{cut_off} of {len(small)} replies are cut off at {given.small}")
    print(f"{len(large) - len(wrong)} of {len(large)} replies are as truncation predicts")
    sys.exit(1 if wrong else 0)


def cut(reply: Ended, cap: int) -> Ended:
    """A reply had the cap been smaller."""
    if len(reply.tokens) <= cap:
        return reply
    return Ended(reply.tokens[:cap], "length")


def replies(model: str, examples: int, cap: int) -> dict[Place, Ended]:
    """The replies of a run with one cap, by task, example and wrapper."""
    study = Study.build(
        {"models": [model], "tasks": list(TASKS), "examples": examples, "max_tokens": cap}
    )
    with tempfile.TemporaryDirectory() as folder:
        run(study, out=folder)
        with sqlite3.connect(Path(folder) / "run.sqlite") as store:
            rows = store.execute(
                "SELECT task, example_id, wrapper, token_ids, finish_reason FROM points "
                "JOIN generations USING (request_id)"
            ).fetchall()
    return {(t, e, w): Ended(tuple(json.loads(ids)), end) for t, e, w, ids, end in rows}


if __name__ == "__main__":
    main()

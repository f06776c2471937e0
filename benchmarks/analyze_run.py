"""Time and memory of ``formatspan analyze`` on 35,000 stored generations, and of ``--help``.

    python benchmarks/analyze_run.py [--generations 35000]

A scripted model answers seven generated tasks under five wrappers; then the command runs in a
process of its own, which is measured. Last line: ``analyze: S s, M MB``.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from formatspan.session import run
from formatspan.study import Study

TASKS, WRAPPERS = 7, 5


def main() -> None:
    """Build the run, then measure the commands."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--generations", type=int, default=35_000)
    wanted = parser.parse_args().generations
    with tempfile.TemporaryDirectory() as folder:
        files = [_rows(Path(folder), i, wanted // TASKS // WRAPPERS) for i in range(TASKS)]
        script = "scripted:accuracy=0.7,comply=0.8,comply.json=0.3"
        study = Study.build({"models": [script], "tasks": files, "examples": wanted})
        done = run(study, out=Path(folder) / "run")
        print(f"{done.done} generations in the store, made at {done.asked / done.seconds:.0f}/s")
        command = [sys.executable, "-m", "formatspan"]
        help_s = min(_seconds([*command, "--help"]) for _ in range(5))
        print(f"help: {help_s:.2f} s")
        took = _seconds([*command, "analyze", str(Path(folder) / "run"), "--json"])
    peak_mb = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    print(f"analyze: {took:.2f} s, {peak_mb:.0f} MB")


def _rows(folder: Path, number: int, count: int) -> str:
    path = folder / f"task{number}.jsonl"
    options = ["red", "green", "blue", "yellow"]
    with path.open("w", encoding="utf-8") as file:
        for i in range(count):
            row = {"question": f"Which colour has number {i} of {number}?", "options": options}
            file.write(json.dumps({**row, "answer": "ABCD"[i % 4]}) + "\n")
    return str(path)


def _seconds(command: list[str]) -> float:
    began = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - began


if __name__ == "__main__":
    main()

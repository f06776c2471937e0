"""Time and memory of a full analysis of 140,000 and 1,400,000 stored generations.

    python benchmarks/analysis_scale.py [--full]

Four models (with ``--full`` forty as well) on 7 tasks, 5 wrappers, 200 examples and 5 seeds, in a
real store written by `synthetic_store`. Each analysis, at one level with 10,000 resamples and
permutations, is a process of its own, measured whole: start, reading, scoring, statistics. The
last lines print its figures beside the aims and how the cost of a row grows.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from formatspan.folder import RunFolder
from formatspan.store import Store
from formatspan.study import Study
from synthetic_store import write_store


class Size(NamedTuple):
    """How large a store is, and what its analysis may cost."""

    models: int
    seconds: float
    gigabytes: float


SMALL, LARGE = Size(4, 10.0, 0.6), Size(40, 90.0, 2.5)


class Measured(NamedTuple):
    """One analysis in a process of its own."""

    rows: int
    seconds: float
    """Wall time, the start of the process included."""
    processor: float
    """Processor time of all threads, likewise."""
    gigabytes: float
    """Peak resident memory."""
    reading: float
    """Wall time of reading and scoring the store once more."""
    caps: float
    """Wall time of the cap curves, which an analysis leaves out unless asked."""


def main() -> None:
    """Build the stores, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--full", action="store_true", help="the large store too")
    parser.add_argument("--measure", nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.measure is not None:
        _measure(Path(given.measure[0]), float(given.measure[1]))
        return
    print(f"load {os.getloadavg()[0]:.1f} before, {os.cpu_count()} cores")
    sizes = (SMALL, LARGE) if given.full else (SMALL,)
    found = [_measured(size) for size in sizes]
    for size, cost in zip(sizes, found, strict=True):
        print(
            f"{cost.rows} generations: {cost.seconds:.1f} s (aim {size.seconds:.0f}), "
            f"{cost.gigabytes:.2f} GB (aim {size.gigabytes}); {cost.processor:.1f} s of processor "
            f"time; reading and scoring alone {cost.reading:.1f} s; "
            f"cap curves {cost.caps:.1f} s more"
        )
    if given.full:
        small, large = (cost.seconds / cost.rows for cost in found)
        print(f"seconds per row, large over small: {large / small:.2f}")


def _measured(size: Size) -> Measured:
    with tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        rows = write_store(Path(folder), size.models)
        took = time.perf_counter() - began
        run = Path(folder) / "run"
        megabytes = RunFolder(run).store.stat().st_size / 1e6
        print(f"{rows} generations written at {rows / took:.0f}/s, {megabytes:.0f} MB", flush=True)
        command = [sys.executable, __file__, "--measure", str(run), str(time.time())]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return Measured(rows=rows, **json.loads(done.stdout))


def _measure(run: Path, began: float) -> None:
    """What the process that is measured does."""
    from formatspan.analysis import analyze

    analyze(run)
    seconds = time.time() - began
    used = resource.getrusage(resource.RUSAGE_SELF)
    cost = {"seconds": seconds, "processor": used.ru_utime + used.ru_stime}
    cost["gigabytes"] = used.ru_maxrss / 1024**2
    print(json.dumps(cost | {"reading": _reading(run), "caps": _caps(run)}))


def _reading(run: Path) -> float:
    from formatspan.table import scored

    began = time.perf_counter()
    with Store.read(RunFolder(run).store) as store:
        study = Study.model_validate_json(store.meta("study") or "")
        scored(store, study, study.level)
    return time.perf_counter() - began


def _caps(run: Path) -> float:
    """Seconds of the cap curves, at most 16 caps, with the reading of the replies."""
    from formatspan.analysis.caps import cap_frames
    from formatspan.table import scored

    with Store.read(RunFolder(run).store) as store:
        study = Study.model_validate_json(store.meta("study") or "")
        table = scored(store, study, study.level)
        began = time.perf_counter()
        cap_frames(store, study, study.level, table)
        return time.perf_counter() - began


if __name__ == "__main__":
    main()

"""Size of the report page of a paper-size run, and how soon a browser shows it.

    python benchmarks/report_page.py [--models 4]

Writes the page of 140,000 generations (4 models × 7 tasks × 5 wrappers × 200 examples × 5 seeds,
3,000 replies embedded) and opens it in headless Chromium three times. The last line prints the
page's size and the best time from opening it until its explorer answers, and until every figure is
drawn. Needs Debian's chromium-driver and the extras ``report`` and ``test``.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path

from formatspan.analysis import analyze
from formatspan.folder import RunFolder
from formatspan.report.write import write_report
from synthetic_store import write_store

sys.path.append(str(Path(__file__).parent.parent / "tests"))

from browser import chromium, missing

TIMES = 3
_USABLE = """
const data = document.documentElement.dataset;
return [data.explorer === 'ready', data.figures === 'drawn'];
"""


def main() -> None:
    """Write the page, measure it, open it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", type=int, default=4)
    models = parser.parse_args().models
    print(f"load {os.getloadavg()[0]:.1f} before")
    with tempfile.TemporaryDirectory() as folder:
        rows = write_store(Path(folder), models)
        run = Path(folder) / "run"
        analysis = analyze(run)
        began = time.perf_counter()
        files = write_report(analysis, RunFolder(run).store, Path(folder) / "report", figures=False)
        print(f"written in {time.perf_counter() - began:.1f} s without figure files")
        size = files.page.stat().st_size / 1e6
        said = f"{rows} generations, {files.embedded} replies embedded: page {size:.1f} MB"
        why = missing()
        if why is not None:
            print(f"{said}; not opened: {why}")
            return
        found = [_opened(files.page) for _ in range(TIMES)]
    explorer, figures = (min(times) for times in zip(*found, strict=True))
    print(f"{said}; explorer after {explorer:.1f} s, figures after {figures:.1f} s")


def _opened(page: Path) -> tuple[float, float]:
    """Seconds from opening the page until its explorer and its figures are there."""
    with chromium() as driver:
        began = time.perf_counter()
        driver.get(page.as_uri())
        reached = [0.0, 0.0]
        while not all(reached):
            for i, done in enumerate(driver.execute_script(_USABLE)):
                if done and not reached[i]:
                    reached[i] = time.perf_counter() - began
            if time.perf_counter() - began > 120:
                raise SystemExit("the page was not usable after 120 s")
            time.sleep(0.02)
    return reached[0], reached[1]


if __name__ == "__main__":
    main()

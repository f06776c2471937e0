"""Scenarios from the field that made other runners lose, repeat or mix up replies.

Each line of ``run.jsonl`` has a check here under its id, or a reason why it cannot arise.
"""

from __future__ import annotations

import asyncio
import json
import os
import resource
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import test_runs
from conftest import cases_folder
from formatspan.analysis import analyze
from formatspan.backends.scripted import ScriptedModel
from formatspan.folder import default_folder
from formatspan.records import Failure, FailureKind, Generation, Request
from formatspan.session import run
from formatspan.store import Store
from formatspan.study import Study
from formatspan.tasks.files import file_task
from formatspan.tasks.sampling import coverage, order

NOT_APPLICABLE = {
    "c011": "options are never shuffled: the order shown is the source's, stored with the example",
    "c012": "options are never shuffled",
    "c013": "options are never shuffled or dropped",
    "c033": "scoring never runs while requests are under way: it reads a finished store",
    "c039": "a run is one store, joined by key; missing replies show as coverage, see c003",
}


@dataclass
class Place:
    """Where a check works and what it may patch."""

    folder: Path
    monkeypatch: pytest.MonkeyPatch
    study: Callable[..., Study]
    capsys: pytest.CaptureFixture[str]

    @property
    def out(self) -> Path:
        return self.folder / "run"


def _rows(place: Place, count: int, category: Callable[[int], str] | None = None) -> Path:
    path = place.folder / f"rows-{count}.jsonl"
    rows: list[dict[str, Any]] = []
    for i in range(count):
        extra = {"category": category(i)} if category else {}
        rows.append({"question": f"Is {i} even?", "answer": i % 2 == 0, **extra})
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def _ids(store: Path) -> list[str]:
    with Store.read(store) as opened:
        rows = opened.connection.execute("SELECT id FROM examples ORDER BY rank")
        return [name for (name,) in rows]


def c001(place: Place, case: dict[str, Any]) -> None:
    test_runs.test_a_full_disk_keeps_what_was_committed(
        place.study, place.folder, place.monkeypatch
    )


def c003(place: Place, case: dict[str, Any]) -> None:
    rows = _rows(place, case["input"]["dataset_size"])
    study = place.study(tasks=[str(rows)], examples=99, wrappers=["plain"])
    run(study, out=place.out)
    with Store.create(place.out / "run.sqlite") as store:
        kept = [str(i) for i in case["input"]["rows_present_idx"]]
        marks = ", ".join("?" * len(kept))
        with store.transaction():
            store.connection.execute(
                "DELETE FROM generations WHERE request NOT IN "
                f"(SELECT request FROM points WHERE example_id IN ({marks}))",
                kept,
            )
        pending = {int(p.point.example_id) for p in store.pending("script", 0, 99)}
    assert pending == set(case["expected_strict"]["to_run"])
    replies = analyze(place.out).pairs["replies"][0]
    assert replies == len(kept), "what is missing shows as coverage"
    assert run(study, out=place.out).asked == 3


def c004(place: Place, case: dict[str, Any]) -> None:
    study = place.study(examples=8)
    run(study, out=place.out)
    again = run(study, out=place.out)
    assert (again.asked, again.done) == (0, 40)


def c006(place: Place, case: dict[str, Any]) -> None:
    test_runs.test_another_temperature_is_refused(place.study, place.folder)


def c007(place: Place, case: dict[str, Any]) -> None:
    rows = _rows(place, 20)
    keys = {"tasks": [str(rows)], "wrappers": ["plain"], "temperature": 0.5}
    run(place.study(examples=1, seeds=1, **keys), out=place.out)
    grown = run(place.study(examples=20, seeds=3, **keys), out=place.out)
    assert (grown.asked, grown.done) == (case["expected_strict"]["new_requests"], 60)


def c008(place: Place, case: dict[str, Any]) -> None:
    run(place.study(temperature=0), out=place.out)
    again = run(place.study(temperature=0.0, stop=[], decoding=["free"]), out=place.out)
    assert again.asked == case["expected_strict"]["second_run_requests"]


def c010(place: Place, case: dict[str, Any]) -> None:
    rows = _rows(place, 100)
    keys = {"tasks": [str(rows)], "sample_seed": 5}
    run(place.study(examples=4, **keys), out=place.out)
    first = _ids(place.out / "run.sqlite")
    run(place.study(examples=10, **keys), out=place.out)
    assert _ids(place.out / "run.sqlite")[:4] == first
    assert len(_ids(place.out / "run.sqlite")) == 10


def c014(place: Place, case: dict[str, Any]) -> None:
    rows = _rows(place, 50)
    code = (
        "import sys; from formatspan.tasks.files import file_task; "
        "from formatspan.tasks.sampling import order; print(order(file_task(sys.argv[1]), 3))"
    )
    drawn = {
        subprocess.run(
            [sys.executable, "-c", code, str(rows)],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(drawn) == 1


def c016(place: Place, case: dict[str, Any]) -> None:
    data = file_task(_rows(place, 1400, lambda i: f"c{i // 100}"))
    drawn = coverage(data, order(data, 0)[:30])
    assert drawn.covered == case["expected_strict"]["categories_covered"]


def c017(place: Place, case: dict[str, Any]) -> None:
    test_runs.test_a_cache_shares_replies_but_not_between_models(place.study, place.folder)


def c022(place: Place, case: dict[str, Any]) -> None:
    answer, broken = ScriptedModel.generate, [True]

    async def flaky(self: ScriptedModel, request: Request) -> Generation | Failure:
        if broken[0]:
            broken[0] = False
            return Failure(request.id, FailureKind.SERVER, "upstream overloaded")
        return await answer(self, request)

    place.monkeypatch.setattr(ScriptedModel, "generate", flaky)
    cache = place.folder / "cache.sqlite"
    first = run(place.study(), out=place.out, cache=cache)
    second = run(place.study(), out=place.out, cache=cache)
    assert (first.failed, second.asked) == (1, case["expected_strict"]["second_run_requests"])


def c023(place: Place, case: dict[str, Any]) -> None:
    cache = place.folder / "cache.sqlite"
    run(place.study(), out=place.folder / "first", cache=cache)
    done = run(place.study(), out=place.out, cache=cache)
    assert done.complete
    assert done.asked == case["expected_strict"]["requests"]


def c024(place: Place, case: dict[str, Any]) -> None:
    test_runs.test_the_second_process_refuses(place.study, place.folder)


def c026(place: Place, case: dict[str, Any]) -> None:
    paths = {default_folder(name).path for name in case["input"]["names"]}
    assert len(paths) == case["expected_strict"]["distinct_paths"]
    assert all(len(p.name) < 100 for p in paths)


def c027(place: Place, case: dict[str, Any]) -> None:
    test_runs.test_hostile_replies_are_stored(place.study, place.folder, place.monkeypatch)
    text = (place.folder / "r" / "study.yaml").read_bytes().decode("utf-8")
    assert "small" in text


def c031(place: Place, case: dict[str, Any]) -> None:
    async def long(self: ScriptedModel, request: Request) -> Generation:
        await asyncio.sleep(0)
        return Generation(request.id, request.id * 640, "stop")  # 20 kB

    place.monkeypatch.setattr(ScriptedModel, "generate", long)
    run(place.study(), out=place.folder / "warm")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    # A fifth of the field's 20,000 replies: 80 MB, of which memory holds those not yet committed.
    done = run(place.study(tasks=[str(_rows(place, 800))], examples=800), out=place.out)
    grown_mb = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    assert done.done == 4000
    assert grown_mb <= case["expected_strict"]["rss_growth_mb_max"] / 5


def c035(place: Place, case: dict[str, Any]) -> None:
    answer, most = ScriptedModel.generate, [0]

    async def watched(self: ScriptedModel, request: Request) -> Generation | Failure:
        most[0] = max(most[0], len(asyncio.all_tasks()))
        return await answer(self, request)

    place.monkeypatch.setattr(ScriptedModel, "generate", watched)
    models = [{"model": "scripted:", "name": "m", "concurrency": 16}]
    run(
        place.study(models=models, tasks=[str(_rows(place, 400))], examples=400),
        out=place.out,
    )
    assert most[0] <= 2 * 16


def c036(place: Place, case: dict[str, Any]) -> None:
    answer, alive, most = ScriptedModel.generate, [0], [0]

    async def held(self: ScriptedModel, request: Request) -> Generation | Failure:
        alive[0] += 1
        most[0] = max(most[0], alive[0])
        for _ in range(300):  # long enough for everybody to come, without a clock
            await asyncio.sleep(0)
        alive[0] -= 1
        return await answer(self, request)

    place.monkeypatch.setattr(ScriptedModel, "generate", held)
    models = [{"model": "scripted:", "name": "m", "concurrency": 200}]
    rows = _rows(place, 400)
    run(
        place.study(models=models, tasks=[str(rows)], examples=400, wrappers=["plain"]),
        out=place.out,
    )
    assert most[0] == 200


def c038(place: Place, case: dict[str, Any]) -> None:
    study = place.study(examples=3)
    path = place.folder / "s.yaml"
    path.write_text(study.to_yaml(), encoding="utf-8")
    command = [sys.executable, "-m", "formatspan", "run", str(path), "--out", str(place.out)]
    done = subprocess.run(command, capture_output=True, env={**os.environ, "CI": "1"}, check=True)
    assert b"\x1b" not in done.stdout + done.stderr
    assert b"\r" not in done.stdout + done.stderr
    assert b"15 of 15 replies" in done.stderr


def c041(place: Place, case: dict[str, Any]) -> None:
    old, new = case["input"]["restored_ok"], case["input"]["new_attempts"]
    rows = str(_rows(place, (old + new) * 2))
    keys = {"tasks": [rows], "wrappers": ["plain"]}
    run(place.study(examples=old, **keys), out=place.out)

    async def down(self: ScriptedModel, request: Request) -> Failure:
        await asyncio.sleep(0)
        return Failure(request.id, FailureKind.SERVER, "down")

    place.monkeypatch.setattr(ScriptedModel, "generate", down)
    done = run(place.study(examples=old + 2 * new, **keys), out=place.out)
    assert done.done == old
    assert done.stopped, "replies restored from earlier do not dilute failures in a row"


CHECKS: dict[str, Callable[[Place, dict[str, Any]], None]] = {
    check.__name__: check
    for check in (
        c001, c003, c004, c006, c007, c008, c010, c014, c016, c017, c022, c023, c024, c026, c027,
        c031, c035, c036, c038, c041,
    )
}  # fmt: skip


def _cases() -> list[dict[str, Any]]:
    path = cases_folder() / "run.jsonl"
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line]


@pytest.mark.parametrize("case", _cases(), ids=lambda c: c["id"])
def test_field_case(
    case: dict[str, Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    small_study: Callable[..., Study],
    capsys: pytest.CaptureFixture[str],
) -> None:
    if case["id"] in NOT_APPLICABLE:
        pytest.skip(f"not applicable: {NOT_APPLICABLE[case['id']]}")
    if case["id"] not in CHECKS:
        pytest.skip("a new case, without a check yet")
    CHECKS[case["id"]](Place(tmp_path, monkeypatch, small_study, capsys), case)


@pytest.mark.skipif(not _cases(), reason="the field cases are not here")
def test_every_case_is_looked_at() -> None:
    assert {c["id"] for c in _cases()} >= CHECKS.keys() | NOT_APPLICABLE.keys()

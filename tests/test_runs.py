"""Whole runs with the scripted model: what is kept, what is asked again, what is refused."""

from __future__ import annotations

import asyncio
import json
import os
import random
import re
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from formatspan import runner
from formatspan.analysis import analyze
from formatspan.asking import Silent
from formatspan.backends.scripted import ScriptedModel
from formatspan.billing.planner import plan
from formatspan.errors import RunError, StorageError, StudyError
from formatspan.falsifier.command import falsify
from formatspan.records import Failure, FailureKind, Generation, Request
from formatspan.runner import Progress
from formatspan.session import run
from formatspan.store import Store
from formatspan.study import Study
from old_stores import age

StudyOf = Callable[..., Study]


def _frozen(out: Path) -> str:
    return analyze(out).to_json()


def test_a_run_keeps_every_reply(small_study: StudyOf, tmp_path: Path) -> None:
    done = run(small_study(), out=tmp_path / "r")
    assert (done.points, done.done, done.asked, done.failed) == (50, 50, 50, 0)
    assert done.complete
    with Store.read(tmp_path / "r" / "run.sqlite") as store:
        rows = store.connection.execute("SELECT count(*), min(length(text)) FROM generations")
        assert rows.fetchone()[0] == 50
    assert Study.from_file(tmp_path / "r" / "study.yaml") == small_study()


def test_the_same_command_asks_nothing_more(small_study: StudyOf, tmp_path: Path) -> None:
    run(small_study(), out=tmp_path / "r")
    before = _frozen(tmp_path / "r")
    again = run(small_study(), out=tmp_path / "r")
    assert (again.asked, again.done) == (0, 50)
    assert _frozen(tmp_path / "r") == before


def test_a_run_grows_by_what_is_new(small_study: StudyOf, tmp_path: Path) -> None:
    out = tmp_path / "r"
    assert run(small_study(examples=1), out=out).asked == 5
    assert run(small_study(examples=3), out=out).asked == 10
    assert run(small_study(examples=3, wrappers=["plain"]), out=out).asked == 0
    assert run(small_study(examples=3, temperature=0.0, seeds=1), out=out).asked == 0
    grown, whole = _frozen(out), tmp_path / "whole"
    run(small_study(examples=3), out=whole)
    assert grown == _frozen(whole), "grown step by step or at once, the analysis is the same"


def test_sampled_seeds_are_asked_and_greedy_ones_copied(
    small_study: StudyOf, tmp_path: Path
) -> None:
    greedy = run(small_study(seeds=3), out=tmp_path / "greedy")
    sampled = run(small_study(seeds=3, temperature=0.7), out=tmp_path / "sampled")
    assert (greedy.asked, sampled.asked) == (50, 150)
    pairs = analyze(tmp_path / "greedy").pairs
    assert pairs["requested"].sum() == 50, "copies are not draws"


def test_another_temperature_is_refused(small_study: StudyOf, tmp_path: Path) -> None:
    run(small_study(), out=tmp_path / "r")
    with pytest.raises(RunError, match="temperature"):
        run(small_study(temperature=0.8), out=tmp_path / "r")


def test_fresh_keeps_the_old_run_aside(small_study: StudyOf, tmp_path: Path) -> None:
    run(small_study(), out=tmp_path / "r")
    again = run(small_study(temperature=0.8), out=tmp_path / "r", fresh=True)
    assert again.asked == 50
    assert (tmp_path / "r.old-1" / "run.sqlite").exists()


def test_changed_rows_are_refused(small_study: StudyOf, rows_file: Path, tmp_path: Path) -> None:
    run(small_study(examples=2), out=tmp_path / "r")
    rows_file.write_text('{"question": "Other?", "answer": 1}\n' * 1, encoding="utf-8")
    with pytest.raises(RunError, match="task 'sums': its rows"):
        run(small_study(examples=4), out=tmp_path / "r")


def test_a_longer_wrapper_does_not_fit_a_budget_in_use(
    small_study: StudyOf, tmp_path: Path
) -> None:
    run(small_study(wrappers=["plain"]), out=tmp_path / "r")
    fault = r"10 prompts under 'json' do not fit.*the longest needs (\d+) chars.*--fresh"
    with pytest.raises(StudyError, match=fault) as caught:
        run(small_study(wrappers=["json"]), out=tmp_path / "r")
    found = re.search(fault, str(caught.value))
    assert found is not None
    roomy = small_study(wrappers=["plain"], budget={"chars": int(found[1])})
    run(roomy, out=tmp_path / "roomy")
    with_json = small_study(wrappers=["json"], budget={"chars": int(found[1])})
    assert run(with_json, out=tmp_path / "roomy").asked == 10, "the length named is enough"
    tight = small_study(wrappers=["json"], budget={"chars": int(found[1]) - 1})
    with pytest.raises(StudyError, match=r"the length that the study states"):
        run(tight, out=tmp_path / "tight")
    assert not (tmp_path / "tight").exists()


def test_a_cache_shares_replies_but_not_between_models(
    small_study: StudyOf, tmp_path: Path
) -> None:
    cache = tmp_path / "cache.sqlite"
    run(small_study(), out=tmp_path / "a", cache=cache)
    shared = run(small_study(), out=tmp_path / "b", cache=cache)
    assert (shared.asked, shared.shared) == (0, 50)
    other = small_study(models=[{"model": "scripted:accuracy=0.5", "name": "other"}])
    assert run(other, out=tmp_path / "c", cache=cache).asked == 50


@pytest.mark.parametrize("version", [3, None])
def test_another_run_shares_its_replies(
    small_study: StudyOf, tmp_path: Path, version: int | None
) -> None:
    other = tmp_path / "a" / "run.sqlite"
    run(small_study(examples=4), out=tmp_path / "a")
    if version is not None:
        age(other, version)
    done = run(small_study(), out=tmp_path / "b", cache=other)
    assert (done.asked, done.shared) == (30, 20)
    again = run(small_study(), out=tmp_path / "c", cache=other)
    assert (again.asked, again.shared) == (0, 50)
    assert _frozen(tmp_path / "b") == _frozen(tmp_path / "c")
    assert run(small_study(examples=4), out=tmp_path / "a").complete
    assert run(small_study(examples=9), out=tmp_path / "a").asked == 0, "it has them by now"


def test_a_label_is_not_identity(small_study: StudyOf, tmp_path: Path) -> None:
    models = [{"model": "scripted:accuracy=0.5", "name": n} for n in ("one", "two")]
    done = run(small_study(models=models), out=tmp_path / "r")
    assert (done.points, done.asked, done.done) == (100, 50, 100)


def test_the_second_process_refuses(small_study: StudyOf, tmp_path: Path) -> None:
    from formatspan.folder import RunFolder

    folder = RunFolder(tmp_path / "r")
    folder.make()
    with folder.locked(), pytest.raises(RunError, match="another process"):
        run(small_study(), out=tmp_path / "r")


def test_a_strange_folder_is_refused(small_study: StudyOf, tmp_path: Path) -> None:
    (tmp_path / "photos.txt").write_text("mine", encoding="utf-8")
    with pytest.raises(RunError, match=r"photos\.txt"):
        run(small_study(), out=tmp_path)
    with pytest.raises(RunError, match="not a run folder"):
        analyze(tmp_path)
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / "run.sqlite").write_bytes(b"this is no database, whatever its name says")
    with pytest.raises(RunError, match="not a store"):
        analyze(tmp_path / "x")


def test_failures_are_neither_wrong_nor_lost(small_study: StudyOf, tmp_path: Path) -> None:
    script = {"accuracy": 1.0, "fail": 0.3, "seed": 5}
    models = [{"model": "scripted:", "name": "shaky", "extra_body": script}]
    done = run(small_study(models=models), out=tmp_path / "r")
    assert 0 < done.failed < 50
    assert not done.complete
    analysis = analyze(tmp_path / "r")
    assert analysis.pairs["replies"].sum() == 50 - done.failed
    scored = analysis.cells.filter(analysis.cells["accuracy"].is_not_null())
    assert (scored["accuracy"] == 1.0).all()
    bounds = analysis.pairs.row(0, named=True)
    assert bounds["fsi_if_failures_low"] == 0.0
    assert bounds["fsi_if_failures_high"] > 0.0


def test_equal_failures_in_a_row_stop_the_model(
    small_study: StudyOf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    async def refuse(self: ScriptedModel, request: Request) -> Failure:
        asked.append(request.id)
        await asyncio.sleep(0)
        return Failure(request.id, FailureKind.SERVER, "no capacity", at="")

    monkeypatch.setattr(ScriptedModel, "generate", refuse)
    done = run(small_study(examples=12, seeds=4, temperature=1.0), out=tmp_path / "r")
    assert done.done == 0
    assert done.stopped["script"] == "server: no capacity"
    assert len(asked) < done.points, "the rest is left pending"


def test_a_listener_hears_what_a_model_waits_for(
    small_study: StudyOf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard: list[str | None] = []
    generate = ScriptedModel.generate

    async def waits(self: ScriptedModel, request: Request) -> Generation | Failure:
        while not any(heard):
            await asyncio.sleep(0.001)
        return await generate(self, request)

    class Heard(Silent):
        def progress(self, model: str, progress: Progress) -> None:
            heard.append(progress.waiting)

    monkeypatch.setattr(runner, "TELL_S", 0.001)
    monkeypatch.setattr(ScriptedModel, "generate", waits)
    monkeypatch.setattr(ScriptedModel, "waiting", lambda _: "waiting 9 s", raising=False)
    assert run(small_study(examples=2), out=tmp_path / "r", listener=Heard()).complete
    assert "waiting 9 s" in heard


def test_a_bug_in_a_backend_says_what_it_was_but_no_key(
    small_study: StudyOf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(self: ScriptedModel, request: Request) -> Generation:
        raise KeyError("choices of sk-very-secret-key\n" + "x" * 999)

    monkeypatch.setenv("SOME_API_KEY", "sk-very-secret-key")
    monkeypatch.setattr(ScriptedModel, "generate", broken)
    done = run(small_study(), out=tmp_path / "r")
    said = done.failures["script"]
    assert said.startswith("internal: KeyError in the backend: 'choices of [secret]")
    assert len(said) < 250
    assert "\n" not in said


def test_a_full_disk_keeps_what_was_committed(
    small_study: StudyOf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    create = Store.create.__func__  # type: ignore[attr-defined]

    def small(cls: type[Store], path: Path) -> Store:
        store: Store = create(cls, path)
        # SQLite reports a full disk in the same way when it may grow no further.
        store.connection.execute("PRAGMA max_page_count = 48")
        return store

    study = small_study(models=["scripted:accuracy=0.5"], examples=12, seeds=9, temperature=1.0)
    monkeypatch.setattr(Store, "create", classmethod(small))
    with pytest.raises(StorageError, match=r"full.*run the same command again"):
        run(study, out=tmp_path / "r")
    monkeypatch.undo()
    done = run(study, out=tmp_path / "r")
    assert done.complete
    assert done.points == 12 * 5 * 9


def test_hostile_replies_are_stored(
    small_study: StudyOf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "\ud83d ✅ 中文 \x00 \x1b[31m" + "x" * 100_000

    async def odd(self: ScriptedModel, request: Request) -> Generation:
        await asyncio.sleep(0)
        return Generation(request.id, text, "stop")

    monkeypatch.setattr(ScriptedModel, "generate", odd)
    monkeypatch.setenv("LC_ALL", "C")
    done = run(small_study(examples=2), out=tmp_path / "r")
    assert done.complete
    with Store.read(tmp_path / "r" / "run.sqlite") as store:
        (stored,) = store.connection.execute("SELECT text FROM generations LIMIT 1").fetchone()
    assert stored == text.replace("\ud83d", "\ufffd")


def test_a_run_inside_a_running_loop(small_study: StudyOf, tmp_path: Path) -> None:
    async def notebook() -> int:
        return run(small_study(), out=tmp_path / "r").done

    assert asyncio.run(notebook()) == 50


DRIVER = """
import asyncio, os, sys
from formatspan.backends.scripted import ScriptedModel
from formatspan.session import run
from formatspan.study import Study

log = os.open(sys.argv[3], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
answer = ScriptedModel.generate

async def generate(self, request):
    os.write(log, (request.id + "\\n").encode())
    await asyncio.sleep(0.004)
    return await answer(self, request)

ScriptedModel.generate = generate
done = run(Study.from_file(sys.argv[1]), out=sys.argv[2])
print(done.asked)
"""


def _committed(store: Path) -> set[str]:
    if not store.exists():
        return set()
    try:
        with Store.read(store) as opened:
            ids = "SELECT id FROM generations JOIN requests ON number = request"
            return {id_ for (id_,) in opened.connection.execute(ids)}
    except (RunError, sqlite3.OperationalError):
        return set()


@pytest.mark.parametrize("kills", [8, pytest.param(30, marks=pytest.mark.slow)])
def test_killed_at_random_moments_nothing_is_lost_or_asked_twice(
    small_study: StudyOf, tmp_path: Path, kills: int
) -> None:
    study = small_study(
        models=[{"model": "scripted:", "name": "m", "concurrency": 2}],
        examples=12,
        seeds=6,
        temperature=1.0,
    )
    (tmp_path / "s.yaml").write_text(study.to_yaml(), encoding="utf-8")
    (tmp_path / "d.py").write_text(DRIVER, encoding="utf-8")
    out, log = tmp_path / "r", tmp_path / "asked.log"
    command = [sys.executable, str(tmp_path / "d.py"), str(tmp_path / "s.yaml"), str(out), str(log)]
    dice = random.Random(11)
    for _ in range(kills):
        committed, seen = _committed(out / "run.sqlite"), _lines(log)
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        _let_run(process, log, seen, dice.randrange(1, 12))
        process.send_signal(signal.SIGKILL)
        process.wait()
        asked = set(log.read_text().split()[seen:]) if log.exists() else set()
        assert not asked & committed, "a committed reply was asked for again"
        assert committed <= _committed(out / "run.sqlite"), "a committed reply was lost"
    subprocess.run(command, check=True, capture_output=True)
    run(study, out=tmp_path / "whole")
    assert _frozen(out) == _frozen(tmp_path / "whole")


def _lines(log: Path) -> int:
    return len(log.read_text().split()) if log.exists() else 0


def _let_run(process: subprocess.Popen[bytes], log: Path, seen: int, more: int) -> None:
    """Until the process has asked ``more`` requests: a moment that no clock decides."""
    give_up = time.monotonic() + 60
    while process.poll() is None and _lines(log) < seen + more and time.monotonic() < give_up:
        os.sched_yield()


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")
def test_ctrl_c_stops_cleanly_and_says_how_to_go_on(small_study: StudyOf, tmp_path: Path) -> None:
    study = small_study(models=["scripted:latency_s=0.01"], examples=12, seeds=40, temperature=1.0)
    (tmp_path / "s.yaml").write_text(study.to_yaml(), encoding="utf-8")
    command = [sys.executable, "-m", "formatspan", "run", str(tmp_path / "s.yaml")]
    command += ["--out", str(tmp_path / "r")]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    while not _committed(tmp_path / "r" / "run.sqlite"):
        assert process.poll() is None
    process.send_signal(signal.SIGINT)
    _, said = process.communicate()
    assert process.returncode == 130
    assert "the same command goes on" in said
    assert "Traceback" not in said
    assert run(study, out=tmp_path / "r").complete


INSIDE_A_LOOP = """
import asyncio, sys
import formatspan as fs

async def main():
    study = fs.Study.from_file(sys.argv[1])
    first = fs.run(study, out=sys.argv[2])
    print(first.interrupted, first.done, first.failed, flush=True)
    second = fs.run(study, out=sys.argv[2])
    print(second.complete, second.done, second.asked)

asyncio.run(main())
"""


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")
def test_ctrl_c_inside_a_running_loop_stops_as_cleanly(
    small_study: StudyOf, tmp_path: Path
) -> None:
    """As in a notebook, whose loop runs while a cell does."""
    study = small_study(models=["scripted:latency_s=0.01"], examples=12, seeds=40, temperature=1.0)
    (tmp_path / "s.yaml").write_text(study.to_yaml(), encoding="utf-8")
    command = [sys.executable, "-c", INSIDE_A_LOOP, str(tmp_path / "s.yaml"), str(tmp_path / "r")]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    while not _committed(tmp_path / "r" / "run.sqlite"):
        assert process.poll() is None
    process.send_signal(signal.SIGINT)
    told, said = process.communicate()
    assert (process.returncode, said) == (0, "")
    stopped, went_on = (line.split() for line in told.splitlines())
    done = int(stopped[1])
    assert stopped == ["True", str(done), "0"]
    assert 0 < done < 2400
    assert went_on == ["True", "2400", str(2400 - done)], "nothing is lost or asked again"


def test_a_folder_runs_again_from_anywhere(
    small_study: StudyOf, rows_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(rows_file.parent)
    study = small_study(tasks=[rows_file.name])
    run(study, out=tmp_path / "run")
    monkeypatch.chdir("/")
    again = run(Study.from_file(tmp_path / "run" / "study.yaml"), out=tmp_path / "run")
    assert (again.asked, again.complete) == (0, True)


def test_a_run_knows_the_folder_that_its_rows_came_from(
    small_study: StudyOf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("FORMATSPAN_DATA", raising=False)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rows").mkdir()
    rows = [
        {"question": f"How many are {i} and 1?", "answer": f"A sum.\n#### {i + 1}"}
        for i in range(9)
    ]
    text = "\n".join(json.dumps(row) for row in rows)
    (tmp_path / "rows" / "gsm8k.jsonl").write_text(text, encoding="utf-8")
    out = tmp_path / "r"
    run(small_study(tasks=["gsm8k"], examples=2), out=out, data_dir="rows")
    monkeypatch.chdir("/")
    more = small_study(tasks=["gsm8k"], examples=4)
    assert plan(more, run=out).requests == 10, "two more under five wrappers"
    grown = run(more, out=out)
    assert (grown.asked, grown.complete) == (10, True)
    found = falsify(out, ask=True, arms=["normalized", "constrained"])
    assert "constrained" in found.arms["arm"].to_list()
    (tmp_path / "rows").rename(tmp_path / "moved")
    most = small_study(tasks=["gsm8k"], examples=6)
    gone = r"rows: no such folder; this run read .* from it"
    with pytest.raises(RunError, match=gone):
        run(most, out=out)
    with pytest.raises(RunError, match=gone):
        plan(most, run=out)
    assert plan(most, run=out, data_dir=tmp_path / "moved").requests == 20
    monkeypatch.setenv("FORMATSPAN_DATA", str(tmp_path / "moved"))
    assert run(most, out=out).asked == 20

"""Whole studies against an endpoint where three replies of ten are faulty, killed on the way."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import impatient
from formatspan.analysis import analyze
from formatspan.backends import openai_chat
from formatspan.session import run
from formatspan.store import Store
from formatspan.stub import KINDS, Settings, serving
from formatspan.study import Study
from impatient import open_impatient

FAULTY = Settings(faults=0.3, huge_bytes=200_000, hang_s=2, retry_after_s=0.01, seed=7)


def study_of(url: str, rows: Path, **keys: Any) -> Study:  # noqa: ANN401 - study keys
    model = {"model": "openai:stub", "name": "m", "base_url": url, "concurrency": 16}
    return Study.build(
        {"models": [model], "tasks": [str(rows)], "examples": 12, "name": "faulty", **keys}
    )


@pytest.fixture(autouse=True)
def hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(openai_chat, "open_openai", open_impatient)


async def in_thread(call: Callable[[], Any]) -> Any:  # noqa: ANN401 - whatever it returns
    return await asyncio.to_thread(call)


async def analysis_without_faults(rows: Path, out: Path, **keys: Any) -> str:  # noqa: ANN401
    async with serving(Settings()) as served:
        done = await in_thread(lambda: run(study_of(served.url, rows, **keys), out=out))
    assert done.complete
    return analyze(out).to_json()


async def test_faults_change_nothing(rows_file: Path, tmp_path: Path) -> None:
    keys: dict[str, Any] = {"seeds": 3, "temperature": 0.7}
    right = await analysis_without_faults(rows_file, tmp_path / "right", **keys)
    async with serving(FAULTY) as served:
        study = study_of(served.url, rows_file, **keys)
        done = await in_thread(lambda: run(study, out=tmp_path / "run"))
    counts = served.stub.counts
    assert (done.complete, done.failed, done.done) == (True, 0, 180)
    assert counts["requests"] - counts["good"] > 40
    assert len(counts.keys() & KINDS.keys()) > 20, "nearly every kind was met"
    assert analyze(tmp_path / "run").to_json() == right


async def test_a_model_that_is_out_of_its_daily_quota_lets_the_others_go_on(
    rows_file: Path, tmp_path: Path
) -> None:
    async with serving(Settings(per_day=20)) as short, serving(Settings()) as other:
        models = [
            {"model": "openai:stub", "name": name, "base_url": served.url, "concurrency": 4}
            for name, served in (("short", short), ("other", other))
        ]
        study = study_of("", rows_file, models=models)
        # A look at the endpoint beforehand would take one of its replies.
        done = await in_thread(lambda: run(study, out=tmp_path / "run", check=False))
        assert 20 <= short.stub.counts["requests"] <= 24
    assert done.done == 20 + 60
    assert list(done.stopped) == ["short"]
    assert "resume after" in done.stopped["short"]
    with Store.read(tmp_path / "run" / "run.sqlite") as store:
        assert len(store.pending("short", 0, 99)) == 40
        assert store.pending("other", 0, 99) == []
    async with serving(Settings(), port=int(short.url.split(":")[2].split("/")[0])):
        models[1]["base_url"] = other.url
        again = await in_thread(lambda: run(study, out=tmp_path / "run"))
    assert (again.asked, again.complete) == (40, True)


def _start(study: Path, out: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, impatient.__file__, str(study), str(out)]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


async def test_ctrl_c_sends_nothing_that_waits_for_its_turn(
    rows_file: Path, tmp_path: Path
) -> None:
    async with serving(Settings(latency_s=0.2)) as served:
        path = tmp_path / "study.yaml"
        model = {"model": "openai:stub", "name": "m", "base_url": served.url}  # 256 at a time
        path.write_text(study_of("", rows_file, models=[model]).to_yaml(), encoding="utf-8")
        process = _start(path, tmp_path / "run")
        while served.stub.counts["requests"] < 8 and process.poll() is None:
            await asyncio.sleep(0.002)
        process.send_signal(signal.SIGINT)
        await in_thread(process.wait)
        assert served.stub.counts["requests"] <= 40  # of 60; 16 go out at first
    with Store.read(tmp_path / "run" / "run.sqlite") as store:
        assert store.counts()["m"].done >= 8, "what was sent is taken"
        assert store.connection.execute("SELECT count(*) FROM failures").fetchone()[0] == 0


async def killed_and_resumed(
    rows: Path,
    folder: Path,
    kills: int,
    **keys: Any,  # noqa: ANN401 - study keys
) -> str:
    """The analysis of a run that was killed so often at random moments under faults."""
    rng, out = random.Random(3), folder / "killed"
    # A request that was killed meets other faults than one that was not. One without counted
    # tokens would be the only one of its example.
    kinds = tuple(kind for kind in KINDS if kind != "no_usage")
    async with serving(replace(FAULTY, kinds=kinds)) as served:
        path = folder / "study.yaml"
        path.write_text(study_of(served.url, rows, **keys).to_yaml(), encoding="utf-8")
        for i in range(kills):
            process = _start(path, out)
            floor = served.stub.counts["requests"] + rng.randint(0, 12)
            # A moment is so many requests, not so many seconds: it falls anywhere on the way.
            while served.stub.counts["requests"] < floor and process.poll() is None:
                await asyncio.sleep(0.002)
            if i % 5 == 4:
                await asyncio.sleep(rng.uniform(0, 0.02))
            if process.poll() is None:
                os.kill(process.pid, signal.SIGKILL)
            await in_thread(process.wait)
        assert await in_thread(_start(path, out).wait) == 0
    with Store.read(out / "run.sqlite") as store:
        assert all(count.done == count.points for count in store.counts().values())
    return analyze(out).to_json()


async def test_killed_three_times_under_faults(rows_file: Path, tmp_path: Path) -> None:
    right = await analysis_without_faults(rows_file, tmp_path / "right")
    assert await killed_and_resumed(rows_file, tmp_path, 3) == right


@pytest.mark.slow
async def test_killed_thirty_times_under_faults(rows_file: Path, tmp_path: Path) -> None:
    keys: dict[str, Any] = {"seeds": 5, "temperature": 0.7}
    right = await analysis_without_faults(rows_file, tmp_path / "right", **keys)
    assert await killed_and_resumed(rows_file, tmp_path, 30, **keys) == right

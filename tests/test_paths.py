"""Files and folders: modes, atomic writing, and that a run that never began leaves nothing."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from formatspan.atomic import write_text, write_with
from formatspan.billing.planner import plan
from formatspan.errors import RunError, StorageError, UserError
from formatspan.folder import Run, default_folder
from formatspan.paths import usable, writable_file, writable_folder
from formatspan.session import run
from formatspan.study import Study

StudyOf = Callable[..., Study]


@contextmanager
def _umask(mask: int) -> Iterator[None]:
    before = os.umask(mask)
    try:
        yield
    finally:
        os.umask(before)


@pytest.mark.skipif(os.name == "nt", reason="POSIX modes")
@pytest.mark.parametrize(("mask", "mode"), [(0o022, 0o644), (0o077, 0o600), (0o002, 0o664)])
def test_files_follow_the_umask(small_study: StudyOf, tmp_path: Path, mask: int, mode: int) -> None:
    with _umask(mask):
        write_text(tmp_path / "x.txt", "new")
        run(small_study(examples=1, wrappers=["plain"]), out=tmp_path / "r")
    assert (tmp_path / "x.txt").stat().st_mode & 0o777 == mode
    assert (tmp_path / "r" / "study.yaml").stat().st_mode & 0o777 == mode


def test_a_file_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / ("é" * 120)  # 240 bytes: little room for a longer name
    write_text(path, "old")

    def fail(_: Path) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_with(path, fail)
    assert path.read_text(encoding="utf-8") == "old"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    "keys",
    [
        {"tasks": ["nosuch"]},
        {"tasks": ["missing.csv"]},
        {"models": ["openai:x"]},
        {"models": ["local:/nowhere/x.gguf"]},
        {"seeds": 10**9},
        {"budget": {"chars": 5}},
    ],
)
def test_a_run_that_never_began_leaves_nothing_behind(
    small_study: StudyOf,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    keys: dict[str, object],
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(UserError):
        run(small_study(**keys), out=tmp_path / "deep" / "er")
    assert not (tmp_path / "deep").exists()
    (tmp_path / "own").mkdir()
    with pytest.raises(UserError):
        run(small_study(**keys), out=tmp_path / "own")
    assert list((tmp_path / "own").iterdir()) == [], "the user's own folder stays"


def test_interrupted_while_planning_nothing_is_left(
    small_study: StudyOf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from formatspan import planning

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(planning, "_write_points", interrupt)
    with pytest.raises(KeyboardInterrupt):
        run(small_study(), out=tmp_path / "r")
    assert not (tmp_path / "r").exists()
    monkeypatch.undo()
    assert run(small_study(), out=tmp_path / "r").complete
    monkeypatch.setattr(planning, "_write_points", interrupt)
    with pytest.raises(KeyboardInterrupt):
        run(small_study(seeds=2, temperature=1.0), out=tmp_path / "r", fresh=True)
    monkeypatch.undo()
    assert [p.name for p in tmp_path.iterdir() if p.is_dir()] == ["r"], "the old run is back"
    assert run(small_study(), out=tmp_path / "r").asked == 0
    with pytest.raises(UserError):
        run(small_study(tasks=["nosuch"]), out=tmp_path / "r")
    assert run(small_study(), out=tmp_path / "r").asked == 0, "a run that began is kept"


@pytest.mark.parametrize("name", ["../../evil", "..", ".", "a/b", "/etc/x", "~", "con\u202etxt"])
def test_a_name_never_leads_out_of_the_runs(name: str) -> None:
    path = default_folder(name).path
    assert path.parent == Path("runs")
    assert path.name not in ("", ".", "..")


def test_a_name_keeps_the_letters_of_every_script() -> None:
    for name in ("Länder-Größe", "研究1", "исследование", "अध्ययन"):
        assert default_folder(name).path == Path("runs") / name
    composed, apart = "caf\u00e9", "cafe\u0301"
    assert default_folder(composed).path.name == composed
    assert default_folder(apart).path.name.startswith(f"{composed}-"), "never the same folder"
    assert default_folder("日本/語 2").path.name.startswith("日本-語-2-")
    assert len(default_folder("研" * 99).path.name.encode()) < 255


def test_a_study_without_a_name_goes_on_with_its_own_run_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def ask(models: list[str], tasks: list[str], **keys: Any) -> Run:  # noqa: ANN401
        data = {"models": models, "tasks": tasks, "examples": 2, "wrappers": ["plain", "json"]}
        return run(Study.build({**data, **keys}))

    monkeypatch.chdir(tmp_path)
    one, other = "scripted:accuracy=0.8", "scripted:accuracy=0.4"
    assert ask([one], ["demo_number"]).folder == Path("runs/study")
    assert ask([one], ["demo_number", "demo_boolean"]).asked == 4, "the same command with more"
    assert ask([one, other], ["demo_number"]).points == 16, "more here, fewer there"
    with pytest.raises(
        RunError, match=r"runs/study: holds a run with other models \(accuracy=0\.8"
    ):
        ask(["scripted:accuracy=0.1"], ["demo_number"])
    with pytest.raises(
        RunError, match=r"other tasks \(demo_number, demo_boolean\).*--out runs/study"
    ):
        ask([one], ["demo_choice"])
    unnamed = {"models": [one], "tasks": ["demo_choice"], "examples": 2}
    with pytest.raises(RunError, match="holds a run with other tasks"):
        plan(Study.build(unnamed), online=False)
    assert plan(Study.build({**unnamed, "name": "study2"}), online=False).models[0].requests == 10
    named = ask([one], ["demo_choice"], name="mine")
    assert named.folder == Path("runs/mine"), "a name is a decision"
    keys = {"examples": 2, "wrappers": ["plain", "json"]}
    study = Study.build({"models": [other], "tasks": ["demo_choice"], **keys})
    assert run(study, out="runs/mine").points == 2 * named.points, "so is a folder"
    assert run(study, fresh=True).folder == Path("runs/study")


def test_a_study_file_names_its_study(tmp_path: Path) -> None:
    text = "models: [scripted]\ntasks: [demo_number]\n"
    (tmp_path / "tickets.yaml").write_text(text, encoding="utf-8")
    (tmp_path / "named.yaml").write_text(text + "name: own\n", encoding="utf-8")
    assert Study.from_file(tmp_path / "tickets.yaml").name == "tickets"
    assert Study.from_file(tmp_path / "named.yaml").name == "own"
    assert Study.from_file(tmp_path / "named.yaml", {"name": "given"}).name == "given"


def test_paths_that_cannot_be_used(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for use in (writable_file, writable_folder):
        with pytest.raises(RunError, match="--x"):
            use(tmp_path / "file" / "below", "--x")
    with pytest.raises(RunError, match="is a folder; --x names a file"):
        writable_file(tmp_path, "--x")
    with pytest.raises(RunError, match="is a file; --x names a folder"):
        writable_folder(tmp_path / "file", "--x")
    with pytest.raises(RunError), usable(Path("a\0b"), "cannot be used"):
        Path("a\0b").mkdir()


def test_a_full_disk_is_no_mistake_of_the_user(tmp_path: Path) -> None:
    import errno

    with pytest.raises(StorageError), usable(tmp_path, "cannot be made"):
        raise OSError(errno.ENOSPC, "No space left on device")

"""A store that is damaged, foreign or locked: one of our errors, whoever reads it and how."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from formatspan.connection import connect
from formatspan.errors import RunError, StorageError
from formatspan.folder import RunFolder
from formatspan.session import run
from formatspan.store import Store, check_cache, check_store
from formatspan.study import Study
from old_stores import age

StudyOf = Callable[..., Study]


@pytest.fixture
def store(small_study: StudyOf, tmp_path: Path) -> Path:
    run(small_study(examples=3), out=tmp_path / "r")
    path = tmp_path / "r" / "run.sqlite"
    with sqlite3.connect(path) as plain:
        plain.execute("PRAGMA journal_mode = DELETE")
    return path


def _damage(path: Path) -> None:
    """Overwrite all pages but the first, which says where the tables are."""
    content = path.read_bytes()
    path.write_bytes(content[:4096] + b"\xa5" * (len(content) - 4096))


READS: dict[str, Callable[[Store], object]] = {
    "meta": lambda s: s.meta("study"),
    "records": lambda s: s.records("tasks"),
    "answers": lambda s: s.answers(),
    "examples": lambda s: list(s.examples()),
    "budgets": lambda s: s.budgets(),
    "pending": lambda s: s.pending("script", 0, 9),
    "counts": lambda s: s.counts(),
    "generation": lambda s: s.generation("x"),
    "row by row": lambda s: list(s.connection.execute("SELECT text FROM generations")),
    "all rows": lambda s: s.connection.execute("SELECT text FROM generations").fetchall(),
    "many rows": lambda s: s.connection.execute("SELECT text FROM generations").fetchmany(5),
    "a cursor": lambda s: s.connection.cursor().execute("SELECT text FROM generations").fetchone(),
}


@pytest.mark.parametrize("read", READS)
def test_a_damaged_store_is_a_run_error(store: Path, read: str) -> None:
    _damage(store)
    with Store.read(store) as opened, pytest.raises(RunError, match=r"run\.sqlite: the store is"):
        READS[read](opened)


def test_a_record_that_is_no_json(store: Path) -> None:
    with sqlite3.connect(store) as plain:
        plain.execute("UPDATE examples SET record = 'x'")
    with Store.read(store) as opened, pytest.raises(RunError, match="a record is not JSON"):
        list(opened.examples())


def test_a_missing_table_is_damage_and_not_a_matter_of_permissions(store: Path) -> None:
    with sqlite3.connect(store) as plain:
        plain.execute("DROP TABLE budgets")
    with Store.read(store) as opened, pytest.raises(RunError, match="damaged"):
        opened.budgets()


def test_writing_to_what_is_read_only_is_a_storage_error(store: Path) -> None:
    with Store.read(store) as opened, pytest.raises(StorageError, match="permissions"):
        opened.put_meta("a", "b")


def test_a_foreign_database_is_refused_and_left_as_it_is(
    small_study: StudyOf, tmp_path: Path
) -> None:
    path = tmp_path / "r" / "run.sqlite"
    path.parent.mkdir()
    with sqlite3.connect(path) as plain:
        plain.execute("CREATE TABLE mine (a)")
    before = path.read_bytes()
    with pytest.raises(RunError, match=r"run\.sqlite: a database, but not one"):
        run(small_study(), out=path.parent)
    assert path.read_bytes() == before
    assert [p.name for p in path.parent.iterdir()] == ["run.sqlite"]


def test_what_is_no_database_is_no_store_and_no_cache(tmp_path: Path) -> None:
    path = tmp_path / "x.sqlite"
    path.write_text("question,answer\n" * 99, encoding="utf-8")
    for refuse in (check_store, lambda p: check_cache(p, tmp_path / "r" / "run.sqlite")):
        with pytest.raises(RunError, match=r"x\.sqlite: not a store"):
            refuse(path)
    with pytest.raises(RunError, match=r"x\.sqlite"), connect(path) as opened:
        opened.execute("SELECT 1 FROM sqlite_master")


def test_a_cache_that_cannot_be_one_is_refused_before_anything_is_made(
    small_study: StudyOf, store: Path, tmp_path: Path
) -> None:
    with sqlite3.connect(tmp_path / "other.db") as plain:
        plain.execute("CREATE TABLE mine (a)")
    wrong = {
        tmp_path: "is a folder",
        tmp_path / "nowhere" / "c.sqlite": "there is no folder",
        tmp_path / "other.db": "not a cache",
        tmp_path / "new" / "run.sqlite": "there is no folder",
    }
    for cache, said in wrong.items():
        with pytest.raises(RunError, match=said):
            run(small_study(), out=tmp_path / "new", cache=cache)
        assert not (tmp_path / "new").exists()
    link = tmp_path / "link.sqlite"
    link.symlink_to(store)
    for cache in (store, link):
        with pytest.raises(RunError, match="is the run's own store"):
            run(small_study(examples=3), out=store.parent, cache=cache)


def test_a_text_that_is_no_utf8_is_not_repeated(store: Path) -> None:
    with sqlite3.connect(store) as plain:
        plain.execute("UPDATE meta SET value = CAST(x'7365637265740aff' AS TEXT)")
    with Store.read(store) as opened, pytest.raises(RunError, match="damaged") as caught:
        opened.meta("study")
    assert "secret" not in str(caught.value)


def test_an_older_store_that_is_written_to_is_left_alone(store: Path) -> None:
    age(store, 3)
    before = store.read_bytes()
    with (
        RunFolder(store.parent).locked(),
        pytest.raises(RunError, match=r"by an earlier version.*another process is running"),
    ):
        Store.read(store)
    assert store.read_bytes() == before
    with Store.read(store) as opened:
        assert opened.counts()["script"].done == 15


def test_a_store_that_cannot_be_judged_is_never_removed(
    small_study: StudyOf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "r" / "run.sqlite"

    def changed(self: Store, *_: object) -> None:
        self.connection.execute("ALTER TABLE generations RENAME COLUMN request TO other")
        self.connection.execute("PRAGMA user_version = 99")
        self.connection.execute("SELECT request FROM generations")

    monkeypatch.setattr(Store, "write", changed)
    with pytest.raises(RunError, match="the store is damaged"):
        run(small_study(), out=tmp_path / "r")
    with sqlite3.connect(path) as plain:
        assert plain.execute("SELECT count(*) FROM points").fetchone() == (50,)

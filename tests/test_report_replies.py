"""The raw replies: filters, flips, Parquet, and what a page embeds of them."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import polars as pl
import pytest

import formatspan
from formatspan.errors import StudyError
from formatspan.records import Example
from formatspan.report import explorer as explorer_module
from formatspan.report.explorer import HEAD, TAIL, explorer
from formatspan.report.prompts import PromptBook, filled
from formatspan.report.replies import ReplyFilter, replies, write_parquet
from formatspan.report.selection import selected
from formatspan.store import Store
from formatspan.study import Study
from formatspan.table import scored, study_of
from report_runs import MODELS, WRAPPERS, run


@pytest.fixture(scope="module")
def store_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The store of three scripted models on three tasks, 12 examples each."""
    return run(tmp_path_factory.mktemp("replies") / "r", examples=12) / "run.sqlite"


def test_filters_are_read() -> None:
    assert ReplyFilter.parse([]) == ReplyFilter()
    assert ReplyFilter.parse(["model=a, wrapper=json", "flips", "correct=no"]) == ReplyFilter(
        model="a", wrapper="json", flips=True, correct=False
    )
    assert ReplyFilter.parse(["status=failure,mode=free"]).status == "failure"
    quoted = ReplyFilter.parse(['model="accuracy=0.8,comply=0.9", task = "a ""b""",flips'])
    assert quoted == ReplyFilter(model="accuracy=0.8,comply=0.9", task='a "b"', flips=True)
    assert ReplyFilter.parse(["model=accuracy=0.8"]).model == "accuracy=0.8"


@pytest.mark.parametrize(
    ("term", "message"),
    [
        ("wraper=a", "did you mean 'wrapper'"),
        ("zzz=a", "expected model, task"),
        ("model=a=1,b=2", "a value with a comma stands in double quotes"),
        ('model="a,b', "a quotation mark is not closed"),
        ("flips=maybe", "expected yes or no"),
        ("status=bad", "expected ok, off_format"),
        ("mode=wild", "expected free or constrained"),
    ],
)
def test_a_wrong_filter_says_what_is_right(term: str, message: str) -> None:
    with pytest.raises(StudyError, match=message):
        ReplyFilter.parse([term])


def test_an_unknown_name_is_refused(store_path: Path) -> None:
    with pytest.raises(StudyError, match="wrapper 'xml' is not in the study: expected plain"):
        replies(store_path, ReplyFilter(wrapper="xml"))


def test_a_label_with_commas_is_found(tmp_path: Path) -> None:
    label = "accuracy=0.8,comply=0.9"
    keys = {"models": [f"scripted:{label}"], "tasks": ["demo_number"], "examples": 2}
    store = formatspan.run(Study.build(keys), out=tmp_path / "r").folder / "run.sqlite"
    found = replies(store, ReplyFilter.parse([f'model="{label}",wrapper=json']))
    assert len(found) == 2 and set(found["model"].cast(pl.String)) == {label}
    with pytest.raises(StudyError, match=f'model {label[:12]!r} .*: expected "{label}"'):
        replies(store, ReplyFilter.parse([f"model={label[:12]}"]))


def test_replies_with_their_texts(store_path: Path) -> None:
    found = replies(store_path)
    assert len(found) == 3 * 3 * 12 * 5
    assert found["text"].null_count() == 0
    json = replies(store_path, ReplyFilter(model="clumsy", wrapper="json", correct=True))
    assert json["text"].str.contains('{"answer":', literal=True).all()
    assert json["correct"].all()
    unread = replies(store_path, ReplyFilter(model="clumsy", status="truncated"))
    assert set(unread["status"].cast(pl.String)) == {"truncated"}


def test_flips_are_right_here_and_not_there(store_path: Path) -> None:
    found = replies(store_path, ReplyFilter(flips=True))
    assert found["model"].cast(pl.String).is_in(["clumsy", "fickle"]).all(), "steady never flips"
    by_question = found.group_by("model", "task", "example").agg(pl.col("correct"))
    assert all(set(verdicts) == {True, False} for verdicts in by_question["correct"].to_list())
    assert len(found) + len(replies(store_path, ReplyFilter(flips=False))) == 540


def test_a_level_changes_what_flips(store_path: Path) -> None:
    lenient = replies(store_path, ReplyFilter(flips=True), level="lenient")
    assert len(lenient) < len(replies(store_path, ReplyFilter(flips=True), level="strict"))


def test_parquet_is_written_whole(store_path: Path, tmp_path: Path) -> None:
    found = replies(store_path, ReplyFilter(task="demo_number"))
    write_parquet(found, tmp_path / "replies.parquet")
    assert pl.read_parquet(tmp_path / "replies.parquet")["text"].equals(found["text"])
    assert [p.name for p in tmp_path.iterdir()] == ["replies.parquet"]


def test_the_selection_is_balanced_and_whole(store_path: Path) -> None:
    with Store.read(store_path) as store:
        table = scored(store, study_of(store), "normalized")
    chosen = selected(table, 180)
    counts = Counter((q.model, q.task) for q in chosen)
    assert sum(len(q.outcomes) for q in chosen) == 180
    assert set(counts.values()) == {4}, "every model and task has the same number of places"
    assert all({w for w, _ in q.outcomes} == set(WRAPPERS) for q in chosen)
    assert chosen == selected(table.sample(fraction=1, shuffle=True, seed=1), 180)
    assert selected(table, 4) == []


def test_flips_come_first(store_path: Path) -> None:
    with Store.read(store_path) as store:
        table = scored(store, study_of(store), "normalized")
    chosen = [q for q in selected(table, 90) if q.model == "clumsy"]
    assert all(q.flip for q in chosen)


def test_a_prompt_is_put_together_again(store_path: Path) -> None:
    with Store.read(store_path) as store:
        study = study_of(store)
        book = PromptBook(store, study, store.records("tasks"))
        stored = _stored(store)
        examples = list(store.examples())
        for example in examples:
            for wrapper in WRAPPERS:
                entry = book.entry(example, MODELS[0][0], wrapper)
                assert entry is not None
                unit, repeats = entry["padding"]
                messages = filled(book.skeletons[entry["skeleton"]], example, unit * repeats)
                assert messages == stored[example.task, example.id, wrapper]
        assert book.entry(examples[0], "nobody", "plain") is None
    assert len(book.skeletons) <= 3 * 5, "one a wrapper and task, not one a prompt"


def _stored(store: Store) -> dict[tuple[str, str, str], list[tuple[str, str]]]:
    rows = store.connection.execute(
        "SELECT task, example_id, wrapper, messages FROM prompts"
    ).fetchall()
    import json

    return {(t, e, w): [(m["role"], m["content"]) for m in json.loads(x)] for t, e, w, x in rows}


def test_token_padding_is_kept_as_unit_and_repeats(tmp_path: Path) -> None:
    path = run(tmp_path / "r", examples=2, budget_unit="tokens") / "run.sqlite"
    with Store.read(path) as store:
        book = PromptBook(store, study_of(store), store.records("tasks"))
        stored = _stored(store)
        for example in store.examples():
            for wrapper in WRAPPERS:
                entry = book.entry(example, "steady", wrapper)
                assert entry is not None
                unit, repeats = entry["padding"]
                assert len(unit) <= 2
                messages = filled(book.skeletons[entry["skeleton"]], example, unit * repeats)
                assert messages == stored[example.task, example.id, wrapper]


def test_a_template_that_changes_its_content_is_kept_as_text(tmp_path: Path) -> None:
    loud = {
        "name": "loud",
        "contract": {"shape": "text"},
        "template": (
            "{{ instruction }}{{ padding }}\n{{ context }}\n{{ question }}"
            "{% for o in options %}\n{{ o.label }}) {{ o.text }}{% endfor %}\nAnswer {{ answer }}"
            "{{ question | length }}"
        ),
    }
    path = run(tmp_path / "r", examples=2, wrappers=[loud, "json"]) / "run.sqlite"
    with Store.read(path) as store:
        book = PromptBook(store, study_of(store), store.records("tasks"))
        stored = _stored(store)
        for example in store.examples():
            entry = book.entry(example, "steady", "loud")
            assert entry is not None
            messages = filled(book.skeletons[entry["skeleton"]], example, "")
            assert messages == stored[example.task, example.id, "loud"]


def test_the_explorer_reads_each_reply_at_every_level(store_path: Path) -> None:
    found = explorer(store_path, "normalized", 90)
    assert len(found.replies) == 90
    assert found.total == 540
    assert found.flips > 0
    for reply in found.replies:
        for status, value, start, end, right in reply["read"]:
            assert (value is not None) == (status == "ok")
            assert not right or status == "ok"
            if start is not None:
                assert 0 <= start <= end <= len(reply["head"])


def test_a_page_without_a_store_has_no_replies() -> None:
    assert explorer(None, "normalized", 100).replies == []


def test_the_room_of_a_page_is_bounded(store_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(explorer_module, "MOST_TEXT", 2_000)
    found = explorer(store_path, "normalized", 500)
    assert 0 < len(found.replies) < 500


def test_long_texts_are_cut_for_display() -> None:
    shown = explorer_module._shown("a" * HEAD + "b" * 1_000_000 + "c" * TAIL)
    assert shown == {"head": "a" * HEAD, "gap": 1_000_000, "tail": "c" * TAIL}
    assert explorer_module._shown("short") == {"head": "short"}
    assert explorer_module._clipped("x" * 7_000).endswith("[…1000 more characters]")


def test_the_right_answer_is_spelled_out() -> None:
    example = Example("t", "1", "?", "", ("red", "blue"), "B", "1")
    assert explorer_module._gold(example) == "B: blue"

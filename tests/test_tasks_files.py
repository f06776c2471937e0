"""A user's own file: formats, kinds, answers, and what is refused with which words."""

import json
import math
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from formatspan.errors import DataError, StudyError
from formatspan.tasks import TaskData, file_task, golds
from formatspan.tasks.readers import read
from formatspan.tasks.task import RowError

CHOICE: dict[str, Any] = {
    "question": "Which is a fruit?",
    "options": ["stone", "pear", "shoe"],
    "answer": "pear",
}


def jsonl(folder: Path, *rows: dict[str, Any]) -> Path:
    path = folder / "rows.jsonl"
    path.write_text("".join(json.dumps(r) + "\n" for r in rows), encoding="utf-8")
    return path


def raw(folder: Path, content: bytes | str, name: str = "rows.jsonl") -> Path:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def load_rows(folder: Path, *rows: dict[str, Any], **settings: Any) -> TaskData:  # noqa: ANN401
    return file_task(jsonl(folder, *rows), **settings)


def refused(folder: Path, *rows: dict[str, Any], **settings: Any) -> DataError:  # noqa: ANN401
    with pytest.raises(DataError) as caught:
        load_rows(folder, *rows, **settings)
    assert "\n" not in str(caught.value)
    return caught.value


# Formats


def test_the_three_formats_give_the_same_examples(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [
        CHOICE | {"id": "p", "context": "Line one\nline two", "topic": "food"},
        CHOICE | {"id": "q", "context": "", "answer": "A", "topic": 'with "quotes", and comma'},
    ]
    from_jsonl = load_rows(tmp_path, *rows)
    pl.DataFrame(rows).write_parquet(tmp_path / "rows.parquet")
    flat = [r | {"options": json.dumps(r["options"])} for r in rows]
    pl.DataFrame(flat).write_csv(tmp_path / "rows.csv")
    for suffix in ("parquet", "csv"):
        data = file_task(tmp_path / f"rows.{suffix}")
        assert data.examples == from_jsonl.examples
        assert data.digest == from_jsonl.digest
    assert [e.gold for e in from_jsonl.examples] == ["B", "A"]
    assert from_jsonl.examples[1].metadata == {"topic": 'with "quotes", and comma'}
    assert from_jsonl.source == "rows.jsonl"


def test_lines_end_at_line_feeds_alone(tmp_path: Path) -> None:
    row = json.dumps(CHOICE | {"question": "a\u2028b\x85c\x0b"}, ensure_ascii=False)
    data = file_task(raw(tmp_path, f"\ufeff{row}\r\n\n  \n{row}"))
    assert [e.question for e in data.examples] == ["a\u2028b\x85c\x0b"] * 2
    assert [line for line, _ in read(tmp_path / "rows.jsonl")] == [1, 4]


@pytest.mark.parametrize(
    ("content", "line", "words"),
    [
        (b'{"question": "a", "answer": 1}\n{"question": "\xff"}\n', 2, "not UTF-8"),
        ('{"question": "a", "answer": 1}\n{"question": "a" "b"}\n', 2, "not valid JSON"),
        ('{"question": "a", "question": "b", "answer": 1}\n', 1, "'question' occurs twice"),
        ('{"question": "a", "answer": NaN}\n', 1, "NaN is not JSON"),
        ('[{"question": "a", "answer": 1}]\n', 1, "one JSON object a line, got list"),
        ("[" * 100_000, 1, "nested too deeply"),
        (
            '{"question": "a", "answer": ' + "1" * 5000 + "}",
            1,
            "not valid JSON: a number of 5,000 digits",
        ),
    ],
)
def test_broken_lines(tmp_path: Path, content: bytes | str, line: int, words: str) -> None:
    with pytest.raises(DataError, match=words) as caught:
        file_task(raw(tmp_path, content))
    assert caught.value.line == line


def test_csv_lines_are_counted_through_quoted_breaks(tmp_path: Path) -> None:
    content = '\ufeffquestion,answer\r\n"one\r\ntwo",1\r\n\r\nthree,x\r\n'
    with pytest.raises(DataError) as caught:
        file_task(raw(tmp_path, content, "rows.csv"), kind="number")
    assert (caught.value.line, caught.value.field) == (5, "answer")
    data = file_task(raw(tmp_path, content.replace(",x", ",3"), "rows.csv"))
    assert [(e.question, e.gold) for e in data.examples] == [("one\r\ntwo", 1), ("three", 3)]


@pytest.mark.parametrize(
    ("content", "line", "words"),
    [
        ("question,answer\na,1,2\n", 2, "expected 2 values, got 3"),
        ("question,answer,answer\n", 1, "'answer' occurs twice"),
        ("question,,answer\n", 1, "a column has no name"),
        ('question,answer\n"a,1\n', 2, "not valid CSV"),
        (b"question,answer\na,1\n\xe9,2\n", 3, "not UTF-8"),
    ],
)
def test_broken_csv(tmp_path: Path, content: bytes | str, line: int, words: str) -> None:
    with pytest.raises(DataError, match=words) as caught:
        file_task(raw(tmp_path, content, "rows.csv"))
    assert caught.value.line == line


def test_files_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no such file"):
        file_task(tmp_path / "absent.jsonl")
    with pytest.raises(DataError, match=r"ending in \.csv, \.jsonl, \.ndjson, \.parquet"):
        file_task(raw(tmp_path, "{}", "rows.json"))
    with pytest.raises(DataError, match="not readable as Parquet"):
        file_task(raw(tmp_path, "PAR1 or not", "rows.parquet"))
    with pytest.raises(DataError, match="has no rows"):
        file_task(raw(tmp_path, ""))


def test_parquet_path_is_no_pattern(tmp_path: Path) -> None:
    pl.DataFrame([CHOICE]).write_parquet(tmp_path / "rows[1].parquet")
    assert len(file_task(tmp_path / "rows[1].parquet").examples) == 1


# Kinds


@pytest.mark.parametrize(
    ("answers", "kind"),
    [([True, "no"], "boolean"), (["YES", "false"], "boolean"), ([1, "2,000", 0.5], "number")],
)
def test_kind_is_inferred(tmp_path: Path, answers: list[Any], kind: str) -> None:
    data = load_rows(tmp_path, *({"question": "q", "answer": a} for a in answers))
    assert data.task.kind == kind
    assert data.task.words == (("yes", "no") if kind == "boolean" else None)


def test_names_of_the_hub_stand_in_for_missing_columns(tmp_path: Path) -> None:
    row = {"question_stem": "q", "choices": {"text": ["x", "y"], "label": ["1", "2"]}}
    data = load_rows(tmp_path, {**row, "answerKey": "2"})
    [example] = data.examples
    assert (data.task.kind, example.question, example.options) == ("choice", "q", ("x", "y"))
    assert example.gold == "B"
    assert "options: read from the column 'choices'." in data.notes
    # A number among options is asked about, not taken for the answer of a sum.
    counted = {"question": "q", "choices": ["0", "4", "2"], "answer": 1}
    assert "answer_is: index" in str(refused(tmp_path, counted))
    assert load_rows(tmp_path, counted, answer_is="index").examples[0].gold == "B"
    # What the file has, or the user says, comes first.
    own = load_rows(tmp_path, {**counted, "options": ["x", "y"], "answer": "A"})
    assert own.examples[0].options == ("x", "y")
    said = load_rows(
        tmp_path, {**counted, "mine": ["x", "y"], "answer": "x"}, columns={"options": "mine"}
    )
    assert (said.examples[0].options, said.notes) == (("x", "y"), ())


def test_kind_that_cannot_be_told(tmp_path: Path) -> None:
    error = refused(tmp_path, {"question": "q", "answer": 1}, {"question": "q", "answer": "Paris"})
    assert error.line == 2
    assert "state kind" in str(error)


def test_kind_may_be_stated(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [
        {"question": "q", "answer": 1},
        {"question": "q", "answer": "0"},
    ]
    data = load_rows(tmp_path, *rows, kind="boolean", words=("true", "false"), instruction="Judge.")
    assert [e.gold for e in data.examples] == [True, False]
    assert (data.task.words, data.task.instruction) == (("true", "false"), "Judge.")


def test_own_words_are_read_as_well(tmp_path: Path) -> None:
    rows = [{"question": "q", "answer": "Spam"}, {"question": "q", "answer": "ham"}]
    data = load_rows(tmp_path, *rows, kind="boolean", words=("spam", "ham"))
    assert [e.gold for e in data.examples] == [True, False]


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"form": "text"}, "form: text is for choices; its kind is number"),
        ({"words": ("a", "b")}, "words: are for truth values"),
        ({"kind": "boolean", "words": ("No", "no ")}, "two different, got 'No' twice"),
        ({"instruction": "a\nb"}, "one line of text"),
        ({"instruction": "a\n"}, "one line of text"),
        ({"instruction": ""}, "one line of text"),
        ({"columns": {"prompt": "question"}}, "got 'prompt'"),
        ({"columns": {"question": "answer"}}, "read from one column"),
    ],
)
def test_arguments_that_do_not_fit(tmp_path: Path, settings: dict[str, Any], words: str) -> None:
    with pytest.raises(StudyError, match=words):
        load_rows(tmp_path, {"question": "q", "answer": 1}, **settings)


def test_columns_are_renamed(tmp_path: Path) -> None:
    row = {"prompt": "Which?", "choices": ["x y", "z"], "target": "z", "question": "kept"}
    names = {"question": "prompt", "options": "choices", "answer": "target"}
    data = load_rows(tmp_path, row, columns=names, name="mine")
    assert data.examples[0].question == "Which?"
    assert data.examples[0].metadata == {"question": "kept"}
    assert data.task.name == data.examples[0].task == "mine"
    error = refused(tmp_path, row | {"target": "?"}, columns=names)
    assert error.field == "target"


# Answers of a choice


@pytest.mark.parametrize(
    ("options", "answer", "answer_is", "gold"),
    [
        (["x", "y"], "B", None, "B"),
        (["x", "y"], "y", None, "B"),
        (["x", "y", "y"], "C", None, "C"),  # a label tells repeated texts apart
        (["B", "A"], "A", "label", "A"),
        (["B", "A"], "A", "text", "B"),
        (["A", "B"], "A", None, "A"),  # both readings agree
        ([3, 4, 5], 4, None, "B"),
        (["2", "3", "4", "5"], "3", "text", "B"),
        (["2", "3", "4", "5"], "3", "index", "D"),
        (["x", "y"], 0, "index", "A"),
        ({"a": "x", "b": "y"}, "b", None, "B"),
        ({"text": ["x", "y"], "label": ["1", "2"]}, "2", None, "B"),
        ({"text": ["x", "y"], "label": ["1", "2"]}, 1, None, "A"),
    ],
)
def test_answer_finds_its_option(
    tmp_path: Path,
    options: object,
    answer: object,
    answer_is: golds.AnswerIs | None,
    gold: str,
) -> None:
    row = {"question": "q", "options": options, "answer": answer}
    assert load_rows(tmp_path, row, answer_is=answer_is).examples[0].gold == gold


@pytest.mark.parametrize(
    ("options", "answer", "field", "words"),
    [
        (["x", "y"], None, "answer", "no answer"),
        (["x", "y"], "C", "answer", r"a label \(A, B\) or an option's exact text, got 'C'"),
        (["x", "y"], True, "answer", "expected a label"),
        (["x", "y"], 1, "answer", "state answer_is: index"),
        (["2", "3", "4", "5"], "3", "answer", "text of B, index of D: write labels"),
        (["B", "A"], "A", "answer", "label of A, text of B"),
        (["y", "y"], "y", "answer", "text of A, text of B"),
        (["x"], "A", "options", "expected 2 to 62 options, got 1"),
        ([str(i) for i in range(63)], "A", "options", "got 63"),
        (["x", " "], "A", "options", "option B is empty"),
        (["x", 2.5], "A", "options", "put it in quotation marks"),
        (["x", None], "A", "options", "expected texts, got None"),
        (None, "A", "options", "no options"),
        ("x|y", "A", "options", "expected a JSON list"),
        ('"x"', "A", "options", "expected a list"),
    ],
)
def test_choices_refused(
    tmp_path: Path, options: object, answer: object, field: str, words: str
) -> None:
    error = refused(
        tmp_path,
        CHOICE,
        {"question": "q", "options": options, "answer": answer},
    )
    assert (error.line, error.field) == (2, field)
    with pytest.raises(DataError, match=words):
        raise error


@pytest.mark.parametrize("options", [["May", "may "], ["x", "a\nb"], ["ﬁ", "fi"]])
def test_options_that_cannot_be_answers_themselves(tmp_path: Path, options: list[str]) -> None:
    row = {"question": "q", "options": options, "answer": "A"}
    assert load_rows(tmp_path, row).task.form == "label"
    error = refused(tmp_path, row, form="text")
    assert error.field == "options"


def test_parquet_objects_with_gaps(tmp_path: Path) -> None:
    rows = [
        {"question": "q", "options": {"A": "x", "B": "y", "C": None}, "answer": "B"},
        {"question": "r", "options": {"A": "x", "B": "y", "C": "z"}, "answer": "C"},
    ]
    pl.DataFrame(rows).write_parquet(tmp_path / "rows.parquet")
    data = file_task(tmp_path / "rows.parquet")
    assert [(e.options, e.gold) for e in data.examples] == [
        (("x", "y"), "B"), (("x", "y", "z"), "C")
    ]  # fmt: skip


# Numbers and truth values


@given(st.integers())
def test_integers_are_read_back(value: int) -> None:
    for written in (value, str(value), f"{value:,}", f" {value} "):
        assert golds.number(written) == value
        assert isinstance(golds.number(written), int)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_floats_are_read_back(value: float) -> None:
    assert golds.number(repr(value)) == golds.number(value) == value


@pytest.mark.parametrize(
    "value",
    [None, "", "five", "1,00", "12,34", "007", "1.", ".5", "+5", "5%", "$5", "٣", "1e999", "--1",
     True, math.nan, math.inf, "NaN", [1]],
)  # fmt: skip
def test_numbers_refused(value: object) -> None:
    with pytest.raises(RowError):
        golds.number(value)
    assert not golds.looks_numeric(value)


@pytest.mark.parametrize("value", [None, "", 2, "y", "maybe", [True]])
def test_truth_values_refused(value: object) -> None:
    with pytest.raises(RowError):
        golds.boolean(value)


# Ids, clusters, metadata


@pytest.mark.parametrize(
    ("change", "field", "words"),
    [
        ({"question": ""}, "question", "is empty"),
        ({"question": None}, "question", "is empty"),
        ({"question": 5}, "question", "expected text, got 5"),
        ({"context": ["x"]}, "context", "expected text"),
        ({"id": 1.5}, "id", "a whole number, got 1.5"),
        ({"id": True}, "id", "a whole number, got True"),
        ({"id": "first"}, "id", "'first' is used at line 1 already"),
        ({"cluster": ["a"]}, "cluster", "a whole number"),
        ({"answer": None}, "answer", "no answer"),
        ({"note": "\ud800"}, "note", "lone surrogate"),
    ],
)
def test_rows_refused(tmp_path: Path, change: dict[str, Any], field: str, words: str) -> None:
    row: dict[str, Any] = {"question": "q", "answer": 1}
    error = refused(tmp_path, row | {"id": "first"}, row | change)
    assert (error.line, error.field) == (2, field)
    assert words in str(error)


def test_missing_column_lists_the_columns(tmp_path: Path) -> None:
    assert "the row has text, answer" in str(refused(tmp_path, {"text": "q", "answer": 1}))


def test_ids_default_to_row_numbers(tmp_path: Path) -> None:
    rows = [{"question": "q", "answer": 1, "id": i} for i in ("a", 7, None, 3.0)]
    assert [e.id for e in load_rows(tmp_path, *rows).examples] == ["a", "7", "2", "3"]


def test_rows_without_a_cluster_are_each_their_own(tmp_path: Path) -> None:
    clusters = ["a", "a", None, "", 5, "own:2"]
    rows = [{"question": "q", "answer": 1, "cluster": c} for c in clusters]
    data = load_rows(tmp_path, *rows)
    assert [e.cluster for e in data.examples] == ["a", "a", "_own:2", "_own:3", "5", "own:2"]
    assert data.notes == ("2 of 6 rows name no cluster; each is its own.",)


def test_nan_clusters_of_a_data_frame(tmp_path: Path) -> None:
    frame = pl.DataFrame(
        {"question": ["q"] * 3, "answer": [1, 2, 3], "cluster": [1.0, math.nan, 1]}
    )
    frame.write_parquet(tmp_path / "rows.parquet")
    data = file_task(tmp_path / "rows.parquet")
    assert [e.cluster for e in data.examples] == ["1", "own:1", "1"]


def test_no_cluster_column_needs_no_note(tmp_path: Path) -> None:
    data = load_rows(tmp_path, {"question": "q", "answer": 1})
    assert (data.examples[0].cluster, data.notes) == ("0", ())


def test_further_columns_are_kept_as_text(tmp_path: Path) -> None:
    further = {"s": " x ", "i": 3, "f": 0.5, "b": True, "l": ["é"], "none": None}
    data = load_rows(tmp_path, {"question": "q", "answer": 1} | further)
    expected = {"s": " x ", "i": "3", "f": "0.5", "b": "true", "l": '["é"]'}
    assert data.examples[0].metadata == expected


def test_strata(tmp_path: Path) -> None:
    row = {"question": "q", "answer": 1, "subject": "s", "level": "easy"}
    assert load_rows(tmp_path, row).task.stratify == "subject"
    assert load_rows(tmp_path, row | {"category": "c"}).task.stratify == "category"
    assert load_rows(tmp_path, row, stratify="level").task.stratify == "level"
    assert load_rows(tmp_path, row, stratify=False).task.stratify is None
    assert "others are level, subject" in str(refused(tmp_path, row, stratify="topic"))


# Numbers as people write them, and texts that look like something else


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("$1,200", 1200),
        ("-$5", -5),
        ("1,200.50 USD", 1200.5),
        ("45%", 45),
        ("5 apples", 5),
        ("3.5 kg", 3.5),
        ("1 200", 1200),
        ("€ 7", 7),
        ("18", 18),
        ("1e3", 1000.0),
    ],
)
def test_stated_numbers_may_be_dressed(tmp_path: Path, written: str, value: float) -> None:
    rows = [{"question": "q", "answer": written}]
    assert load_rows(tmp_path, *rows, kind="number").examples[0].gold == value


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("1.200,50", "write a point before decimals"),
        ("12,5", "write a point before decimals"),
        ("5 or 6", "expected a number such as"),
        ("3 to 5", "expected a number such as"),
        ("5k", "expected a number such as"),
        ("007", "looks like a code"),
        ("nan", "expected a number such as"),
        ("five", "expected a number such as"),
    ],
)
def test_doubtful_numbers_are_refused_where_they_stand(
    tmp_path: Path, written: str, said: str
) -> None:
    row = {"question": "q", "answer": written}
    error = refused(tmp_path, {"question": "q", "answer": 1}, row, kind="number")
    assert (error.line, error.field) == (2, "answer")
    assert said in str(error)
    assert written in str(error)


def test_dressed_numbers_are_not_inferred(tmp_path: Path) -> None:
    error = refused(tmp_path, {"question": "q", "answer": "5 apples"})
    assert "state kind (number" in str(error)


def _csv(folder: Path, text: str, **settings: Any) -> TaskData:  # noqa: ANN401 - as file_task's
    path = folder / "rows.csv"
    path.write_text(text, encoding="utf-8")
    return file_task(path, **settings)


def test_csv_clusters_that_are_missing_are_not_shared(tmp_path: Path) -> None:
    cells = ["a", "a", "nan", "NaN", "", " ", "None", "null", "NA", "nano"]
    text = "question,answer,cluster\n" + "".join(f"q,1,{cell}\n" for cell in cells)
    clusters = [e.cluster for e in _csv(tmp_path, text).examples]
    assert clusters[:2] == ["a", "a"]
    assert clusters[-2:] == ["NA", "nano"]
    assert len(set(clusters)) == len(cells) - 1


def test_csv_cells_stay_as_they_are_written(tmp_path: Path) -> None:
    text = (
        "id,question,answer,options,code,note\n"
        '007,q,nan,"[""nan"", ""1.50"", ""007""]",0012,nan\n'
        '7,q,007,"[""7"", ""1.50"", ""007""]",1e3,1.50\n'
    )
    first, second = _csv(tmp_path, text).examples
    assert (first.id, first.options, first.gold) == ("007", ("nan", "1.50", "007"), "A")
    assert first.metadata == {"code": "0012", "note": "nan"}
    assert (second.id, second.gold) == ("7", "C")
    assert second.metadata == {"code": "1e3", "note": "1.50"}


def test_csv_with_other_separators_and_long_values(tmp_path: Path) -> None:
    for mark in ";\t|":
        with pytest.raises(DataError, match="expected commas between the columns"):
            _csv(tmp_path, f"question{mark}answer\nq{mark}1\n")
    data = _csv(tmp_path, f"question,answer,context\nq,1,{'x' * 200_000}\n")
    assert len(data.examples[0].context) == 200_000


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    (tmp_path / "x.csv").mkdir()
    with pytest.raises(DataError, match="is a folder"):
        file_task(tmp_path / "x.csv")

"""The table of tasks, and the seven data sets on invented rows in the hub's layout."""

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

import formatspan.tasks as tasks
from formatspan.errors import DataError, StudyError
from formatspan.records import Example, labels
from formatspan.tasks import HubSource, Task, adapted, get_task, load, task_names
from formatspan.tasks.winogrande import twins

HUB_TASKS = sorted(n for n in tasks.TASKS if not n.startswith("demo_"))

ROWS: dict[str, dict[str, Any]] = {
    "arc_challenge": {
        "id": "Q_1",
        "question": "Which one shines by itself?",
        "choices": {"text": ["Moon", "star ", "rock"], "label": ["1", "2", "3"]},
        "answerKey": "2",
    },
    "boolq": {"question": "is snow warm", "answer": False, "passage": "Snow is\u2028frozen."},
    "commonsense_qa": {
        "id": "ab12",
        "question": "Where do cups dry?",
        "question_concept": "cup",
        "choices": {"label": list("ABCDE"), "text": ["sea", "rack", "rack", "sky", "oven"]},
        "answerKey": "C",
    },
    "gsm8k": {"question": "Add them.", "answer": "1000 + 125 = <<1000+125=1125>>\n#### 1,125"},
    "hellaswag": {
        "ind": 24,
        "activity_label": "Rowing",
        "ctx_a": "A boat waits.",
        "ctx_b": "it",
        "ctx": "A boat waits. it",
        "endings": [", then sings.", "moves off.", "eats.", "[title] Sleeps"],
        "source_id": "activitynet~v_1",
        "split": "val",
        "split_type": "indomain",
        "label": "3",
    },
    "piqa": {"goal": "spoon", "sol1": " stir with it", "sol2": "wear it ", "label": 1},
    "winogrande": {
        "sentence": "Ann beat Eva because _ was faster.",
        "option1": "Ann",
        "option2": "Eva",
        "answer": "1",
    },
}

EXPECTED: dict[str, tuple[Any, ...]] = {
    # id, question, context, options, gold
    "arc_challenge": ("Q_1", "Which one shines by itself?", "", ("Moon", "star ", "rock"), "B"),
    "boolq": ("0", "is snow warm", "Snow is\u2028frozen.", (), False),
    "commonsense_qa": (
        "ab12",
        "Where do cups dry?",
        "",
        ("sea", "rack", "rack", "sky", "oven"),
        "C",
    ),
    "gsm8k": ("0", "Add them.", "", (), 1125),
    "hellaswag": (
        "activitynet-24",
        "A boat waits. it",
        "",
        (", then sings.", "moves off.", "eats.", "[title] Sleeps"),
        "D",
    ),
    "piqa": ("0", "spoon", "", (" stir with it", "wear it "), "B"),
    "winogrande": ("0", "Ann beat Eva because _ was faster.", "", ("Ann", "Eva"), "A"),
}

BROKEN: list[tuple[str, dict[str, Any], str]] = [
    ("arc_challenge", {"answerKey": "4"}, "answerKey"),
    ("arc_challenge", {"answerKey": None}, "answerKey"),
    ("arc_challenge", {"choices": ["a", "b"]}, "choices"),
    ("arc_challenge", {"choices": {"text": ["a", "b"], "label": ["A", "A"]}}, "choices"),
    ("arc_challenge", {"choices": {"text": ["a"], "label": ["2"]}}, "options"),
    ("arc_challenge", {"choices": {"text": ["a", ""], "label": ["1", "2"]}}, "options"),
    ("arc_challenge", {"id": ""}, "id"),
    ("boolq", {"answer": None}, "answer"),
    ("boolq", {"answer": "maybe"}, "answer"),
    ("boolq", {"passage": " "}, "passage"),
    ("boolq", {"question": 7}, "question"),
    ("boolq", {"question": "half \ud83d pair"}, "question"),
    ("gsm8k", {"answer": "The answer is 5."}, "answer"),
    ("gsm8k", {"answer": "a\n#### 1\n#### 2"}, "answer"),
    ("gsm8k", {"answer": "a\n#### five"}, "answer"),
    ("hellaswag", {"label": ""}, "label"),
    ("hellaswag", {"label": "4"}, "label"),
    ("hellaswag", {"endings": "abcd"}, "endings"),
    ("piqa", {"label": -1}, "label"),
    ("piqa", {"label": True}, "label"),
    ("winogrande", {"answer": "3"}, "answer"),
    ("winogrande", {"option2": None}, "option2"),
]


def write(folder: Path, name: str, *rows: Mapping[str, Any]) -> Path:
    path = folder / f"{name}.jsonl"
    path.write_text("".join(json.dumps(r) + "\n" for r in rows), encoding="utf-8")
    return path


def row_of(name: str, row: dict[str, Any]) -> Example:
    return get_task(name).parse(row, 0)


@pytest.mark.parametrize("name", HUB_TASKS)
def test_a_row_becomes_an_example_verbatim(tmp_path: Path, name: str) -> None:
    write(tmp_path, name, ROWS[name])
    data = load(name, data_dir=tmp_path)
    example = data.examples[0]
    assert (
        example.id, example.question, example.context, example.options, example.gold
    ) == EXPECTED[name]  # fmt: skip
    assert example.task == data.task.name == name
    assert data.source == f"{name}.jsonl"
    assert data.revision is None


@pytest.mark.parametrize(("name", "change", "field"), BROKEN)
def test_a_broken_row_is_refused_with_line_and_field(
    tmp_path: Path, name: str, change: dict[str, Any], field: str
) -> None:
    second = ROWS[name] | change
    first = ROWS[name] | ({"id": "first"} if "id" in second else {})
    first |= {"ind": 1} if "ind" in second else {}
    path = write(tmp_path, name, first, second)
    with pytest.raises(DataError) as caught:
        load(name, data_dir=tmp_path)
    assert (caught.value.line, caught.value.field) == (2, field)
    assert str(caught.value).startswith(str(path))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "value"), [("1,125", 1125), ("-10", -10), ("0.50", 0.5), ("2,880,000", 2880000)]
)
def test_gsm8k_reads_the_final_number(text: str, value: float) -> None:
    row = {"question": "?", "answer": f"So it is.\n#### {text}"}
    assert row_of("gsm8k", row).gold == value


def test_int_and_str_labels_are_the_same() -> None:
    assert row_of("hellaswag", ROWS["hellaswag"] | {"label": 3}).gold == "D"
    assert row_of("piqa", ROWS["piqa"] | {"label": "1"}).gold == "B"


def test_boolq_questions_on_one_passage_share_a_cluster(tmp_path: Path) -> None:
    row = ROWS["boolq"]
    write(tmp_path, "boolq", row, row | {"passage": "Other."}, row | {"question": "is it"})
    a, b, c = load("boolq", data_dir=tmp_path).examples
    assert a.cluster == c.cluster != b.cluster


def test_winogrande_twins_share_a_cluster(tmp_path: Path) -> None:
    row = ROWS["winogrande"]
    twin = row | {"sentence": "Ann beat Eva because _ was slower.", "answer": "2"}
    swapped = row | {"option1": "Eva", "option2": "Ann"}  # the same options, the other right
    other = row | {"sentence": "Far from home _ wrote a long letter to the others.", "answer": "2"}
    write(tmp_path, "winogrande", row, twin, twin, other, swapped)
    examples = load("winogrande", data_dir=tmp_path).examples
    # A repeated row has the same answer and is no twin; the last two differ in their words.
    assert [e.cluster for e in examples] == ["0", "0", "2", "3", "4"]
    assert twins(examples[0], examples[4])


def test_sources_are_pinned_to_commits_and_files() -> None:
    for name in HUB_TASKS:
        source = get_task(name).hub
        assert isinstance(source, HubSource)
        assert source.revision is not None
        assert len(source.revision) == 40
        assert source.files


def test_instructions_are_one_line_and_say_nothing_of_the_answers_form() -> None:
    for name in HUB_TASKS:
        instruction = get_task(name).instruction
        assert instruction.endswith(".")
        assert "\n" not in instruction
        assert not {"letter", "JSON", "number"} & set(instruction.split())


def test_docstring_names_source_and_licence() -> None:
    for name in HUB_TASKS:
        doc = sys.modules[f"formatspan.tasks.{name}"].__doc__ or ""
        source = get_task(name).hub
        assert source is not None
        assert f"https://huggingface.co/datasets/{source.dataset}" in doc
        assert "Licence:" in doc


def test_names_are_sorted_and_found() -> None:
    assert list(task_names()) == sorted(task_names())
    assert all(get_task(name).name == name for name in HUB_TASKS)


def test_unknown_name_lists_the_known_and_the_nearest() -> None:
    with pytest.raises(StudyError, match=r"unknown task 'bolq': .*winogrande; did you mean boolq"):
        get_task("bolq")


def test_a_task_of_another_package(monkeypatch: pytest.MonkeyPatch) -> None:
    mine = Task("mine", "number", "Count.", get_task("gsm8k").parse)

    class Entry:
        name = "mine"
        found: object = mine

        def load(self) -> object:
            return self.found

    monkeypatch.setattr(tasks, "entry_points", lambda *, group: [Entry()])
    assert get_task("mine") is mine
    assert "mine" in task_names()
    Entry.found = 3
    with pytest.raises(StudyError, match="expected a Task, got int"):
        get_task("mine")


def test_table_entry_that_cannot_be_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(tasks.TASKS, "gone", "formatspan.tasks.no_such:TASK")
    with pytest.raises(StudyError, match="'gone' cannot be imported"):
        get_task("gone")


def test_folder_comes_from_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, "piqa", ROWS["piqa"])
    monkeypatch.setenv("FORMATSPAN_DATA", str(tmp_path))
    assert len(load("piqa").examples) == 1
    with pytest.raises(DataError, match=r"boolq\.jsonl: no such file.*FORMATSPAN_DATA"):
        load("boolq")


def test_built_in_rows_need_no_file(tmp_path: Path) -> None:
    source = get_task("piqa")
    mine = Task("piqa", "choice", "Choose.", source.parse, builtin=lambda: [ROWS["piqa"]])
    data = load(mine, data_dir=tmp_path)
    assert (data.source, data.revision, len(data.examples)) == ("built in", None, 1)


def test_duplicate_ids_name_both_lines(tmp_path: Path) -> None:
    write(tmp_path, "commonsense_qa", ROWS["commonsense_qa"], ROWS["commonsense_qa"])
    with pytest.raises(DataError, match=r"line 2, field 'id': 'ab12' is used at line 1"):
        load("commonsense_qa", data_dir=tmp_path)


def test_empty_file(tmp_path: Path) -> None:
    write(tmp_path, "piqa")
    with pytest.raises(DataError, match="has no rows"):
        load("piqa", data_dir=tmp_path)


def test_digest_is_of_the_content(tmp_path: Path) -> None:
    write(tmp_path, "piqa", ROWS["piqa"])
    first = load("piqa", data_dir=tmp_path)
    assert first.digest == load("piqa", data_dir=tmp_path).digest
    write(tmp_path, "piqa", ROWS["piqa"] | {"goal": "fork"})
    assert first.digest != load("piqa", data_dir=tmp_path).digest
    assert first.chance == 0.5
    assert tasks.space_of(first.task, first.examples[0]).labels == labels(2)


def test_a_study_adapts_a_task(tmp_path: Path) -> None:
    task = adapted(get_task("boolq"), words=("true", "false"), instruction="Judge.")
    assert (task.words, task.instruction, task.name) == (("true", "false"), "Judge.", "boolq")
    assert adapted(task) == task
    with pytest.raises(StudyError, match="task boolq, form: text is for choices"):
        adapted(task, form="text")


def test_adapted_tasks_check_their_rows(tmp_path: Path) -> None:
    write(tmp_path, "commonsense_qa", ROWS["commonsense_qa"])
    with pytest.raises(DataError, match="'rack' occurs twice: use form: label"):
        load(adapted(get_task("commonsense_qa"), form="text"), data_dir=tmp_path)
    stratified = adapted(get_task("commonsense_qa"), stratify="topic")
    with pytest.raises(DataError, match="no column 'topic'; others are question_concept"):
        load(stratified, data_dir=tmp_path)


@pytest.mark.parametrize(
    ("change", "field"), [({"question": " "}, "question"), ({"gold": "C"}, "answer")]
)
def test_examples_of_another_packages_task_are_checked(change: dict[str, Any], field: str) -> None:
    def parse(row: Mapping[str, Any], i: int) -> Example:
        return replace(row_of("piqa", ROWS["piqa"]), **change)

    with pytest.raises(DataError) as caught:
        load(Task("mine", "choice", "Choose.", parse, builtin=lambda: [{}]))
    assert (caught.value.field, caught.value.source) == (field, "built in")


def test_import_is_light() -> None:
    code = (
        "import sys, formatspan.tasks as t; [t.get_task(n) for n in t.task_names()];"
        "print(*({'polars', 'huggingface_hub'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""

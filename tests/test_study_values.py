"""What a study says of a wrong value: key, mistake, what is right, in plain words."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formatspan.errors import RunError, StudyError, UserError
from formatspan.study import Study
from formatspan.study_file import MAX_NODES, read_value, write_yaml

BASE: dict[str, Any] = {"models": ["scripted:"], "tasks": ["boolq"]}
JARGON = ("Input should", "valid tuple", "instance of", "Field required", "dictionary")


def wrapper(**keys: object) -> list[dict[str, object]]:
    return [{"name": "a", "template": "x", "contract": {}} | keys]


def model(**keys: object) -> dict[str, object]:
    return {"models": [{"model": "scripted:", **keys}]}


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"seeds": True}, "seeds: expected a whole number, got true"),
        ({"seeds": "20"}, "got '20': write it without quotation marks"),
        ({"seeds": 1.5}, "seeds: expected a whole number, got 1.5"),
        ({"temperature": "0"}, "temperature: expected a number, got '0'"),
        ({"temperature": False}, "temperature: expected a number, got false"),
        ({"temperature": float("nan")}, "expected a finite number"),
        ({"temperature": 9}, "temperature: expected at most 5, got 9"),
        ({"max_tokens": 10**9}, "max_tokens: expected at most 1,000,000"),
        ({"name": True}, "name: expected a name, got true: put it in quotation marks"),
        ({"name": ""}, "name: must not be empty"),
        ({"name": "a\nb"}, "name: expected one line of text"),
        ({"models": "scripted:"}, "models: expected a list of model addresses or mappings"),
        ({"tasks": "boolq"}, "tasks: expected a list of task names"),
        ({"wrappers": "plain"}, "got 'plain': write [plain]"),
        ({"decoding": "free"}, "decoding: expected a list of free and constrained, got 'free'"),
        ({"decoding": ["fre"]}, "did you mean 'free'?"),
        ({"stop": [1]}, "stop[0]: expected text, got 1: put it in quotation marks"),
        ({"level": "normal"}, "or 'paper', got 'normal', did you mean 'normalized'?"),
        ({"budget": {"chars": -1}}, "budget: expected a length from 1 to 1,000,000"),
        ({"budget": {"chars": True}}, "none, task, example, {chars: N} or {tokens: N}"),
        ({"budget": {"char": 9}}, "none, task, example, {chars: N} or {tokens: N}"),
        ({"budget": None}, "none, task, example, {chars: N} or {tokens: N}, got nothing"),
        ({"wrappers": ["plan"]}, "did you mean 'plain'?"),
        ({"wrappers": wrapper(name="")}, "wrappers[0].name: must not be empty"),
        ({"wrappers": wrapper(contract={"key": ""})}, "contract.key: must not be empty"),
        ({"wrappers": wrapper(contract={"shap": "text"})}, "contract.shap: unknown key, did you"),
        ({"wrappers": wrapper(contract={"shap": "text"})}, "known are shape, before, after"),
        ({"wrappers": wrapper(contract={"preamble": 1})}, "preamble: expected true or false"),
        ({"wrappers": wrapper(contract="json")}, "expected a mapping with some of shape, before"),
        ({"wrappers": wrapper(template=5)}, "template: expected text, got 5"),
        ({"wrappers": wrapper(messages=[])}, "expected 'template' or 'messages', not both"),
        ({"wrappers": [{"name": "a", "templat": "x"}]}, "templat: unknown key, did you mean 'temp"),
        (model(nam="y"), "models[0].nam: unknown key, did you mean 'name'? known are model, name"),
        (model(temperature=1), "one of the study itself and not of an entry"),
        (model(price={"promt": 1}), "price.promt: unknown key, did you mean 'prompt'?"),
        (model(price=3), "price: expected a mapping with some of prompt, completion, got 3"),
        (model(headers=["x"]), "headers: expected a mapping, got ['x']"),
        (model(concurrency=10**9), "concurrency: expected at most 10,000"),
        (model(extra_body={"a": {"api_key": "sk"}}), "api_key_env instead"),
        (model(extra_body={"a": {1, 2}}), "expected values that JSON can hold"),
        ({"models": [5]}, "models[0]: expected a model's address or a mapping, got 5"),
        ({"models": ["nosuch:x"]}, "s.yaml: models[0].model: model 'nosuch:x'"),
        ({"tasks": ["x.txt"]}, "expected a data file ending in one of .csv, .jsonl, .ndjson"),
        ({"tasks": [{"file": "a.csv", "kin": "number"}]}, "tasks[0].kin: unknown key, did you"),
        ({"tasks": [{"file": "a.csv", "words": ["yes"]}]}, "a list of two texts"),
        ({"tasks": [{"file": "a.csv", "words": [True, False]}]}, "a list of two texts"),
        ({"tasks": [{"file": "a.csv", "stratify": True}]}, "the name of a column, or false"),
        ({"tasks": [{"kind": "number"}]}, "expected a task's name, or 'file'"),
        ({5: 6}, "expected keys that are text"),
    ],
)
def test_a_wrong_value_is_named_in_plain_words(keys: dict[Any, Any], said: str) -> None:
    with pytest.raises(UserError) as caught:
        Study.build({**BASE, **keys}, "s.yaml")
    text = str(caught.value)
    assert text.startswith("s.yaml: ")
    assert said in text
    assert "\n" not in text
    assert not any(word in text for word in JARGON)


def test_what_is_meant_without_doubt_is_taken() -> None:
    study = Study.build({**BASE, "name": 2024, "examples": 1e3, "temperature": 1, "top_p": 1})
    assert (study.name, study.examples, study.temperature) == ("2024", 1000, 1.0)
    assert isinstance(study.examples, int)


@pytest.mark.parametrize("data", [None, [], "models", 5])
def test_a_study_is_built_from_a_mapping(data: Any) -> None:  # noqa: ANN401 - wrong on purpose
    with pytest.raises(StudyError, match="expected a mapping of study keys"):
        Study.build(data)


def test_a_study_that_a_store_keeps_is_read_or_refused_in_one_line() -> None:
    study = Study.build({**BASE, "budget": {"chars": 400}, "wrappers": ["json"]})
    assert Study.stored(study.model_dump_json(), Path("r")) == study
    with pytest.raises(RunError, match="r: the run's study cannot be read"):
        Study.stored('{"models": 1}', Path("r"))


# YAML


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("[yes, no, on, off]", ["yes", "no", "on", "off"]),
        ("[true, False]", [True, False]),
        ("007", "007"),
        ("12:30", "12:30"),
        ("2024-01-01", "2024-01-01"),
        ("1e3", 1000.0),
        ("1_000", 1000),
        ("-2", -2),
        ("0.5", 0.5),
        ("~", None),
        ("{a: {<<: {b: 1}, c: 2}}", {"a": {"b": 1, "c": 2}}),
    ],
)
def test_yaml_words_and_numbers(text: str, value: object) -> None:
    assert read_value(text, "x") == value
    assert type(read_value(text, "x")) is type(value)


@given(st.text(max_size=8) | st.sampled_from(["yes", "no", "1e3", "007", "1_0", ".5", "~", "<<"]))
def test_what_is_written_is_read_back(text: str) -> None:
    if text.isprintable():
        assert read_value(write_yaml({"a": text, "b": [text]}), "x") == {"a": text, "b": [text]}


def _bomb() -> str:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]" for i in range(1, 12)]
    return "\n".join(lines)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("[" * 5000, "nested too deeply"),
        ("{a: " * 5000, "nested too deeply"),
        ("\n".join(" " * i + "a:" for i in range(1200)), "nested too deeply"),
        (_bomb(), f"more than {MAX_NODES:,} values, aliases resolved"),
        ("a: &a [*a]", f"more than {MAX_NODES:,} values, aliases resolved"),
        ("models: [{model: 'scripted:', name: a, name: b}]", "key 'name' twice"),
        ("? [a]\n: 1", "a key is no text"),
        ("a:\n\t- b", "indent with spaces, not tabs"),
        ("just text", "expected a mapping of study keys, got a text"),
        ("---\na: 1\n---\nb: 2", "another document"),
        ("a: !!python/object:os.system x", "constructor"),
        ("a: 1" + "0" * 5000, "a number with too many digits"),
        (b"\xff\xfea\x00", "not UTF-8 at byte 0"),
        (b"\x89PNG\r\n\x1a\n", "not UTF-8 at byte 0"),
        (b"#" * 1_000_001, "larger than 1,000,000 bytes"),
    ],
)
def test_a_file_that_is_no_study(tmp_path: Path, content: str | bytes, said: str) -> None:
    path = tmp_path / "s.yaml"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    with pytest.raises(StudyError) as caught:
        Study.from_file(path)
    assert str(caught.value).startswith(str(path))
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_byte_order_mark_and_carriage_returns_are_no_mistake(tmp_path: Path) -> None:
    text = "name: mine\nmodels: ['scripted:']\ntasks: [boolq]\n"
    path = tmp_path / "s.yaml"
    path.write_bytes(b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode())
    assert Study.from_file(path).name == "mine"


def test_paths_that_cannot_be_resolved(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    for name in ("loop/x.csv", "~no-such-user-here/x.csv", "a\0b.csv"):
        path = tmp_path / "s.yaml"
        path.write_text(write_yaml({**BASE, "tasks": [{"file": name, "name": "t"}]}))
        try:
            Study.from_file(path)
        except StudyError as error:
            assert "\n" not in str(error)
    with pytest.raises(StudyError, match="is a folder"):
        Study.from_file(tmp_path)
    with pytest.raises(StudyError, match="cannot be read"):
        Study.from_file(tmp_path / "loop")
    with pytest.raises(StudyError, match="expected the path"):
        Study.from_file(5)  # type: ignore[arg-type]
    assert os.path.lexists(tmp_path / "loop")

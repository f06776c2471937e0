from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from formatspan.errors import RunError, StudyError, UserError
from formatspan.growth import merge
from formatspan.study import Study, preset_names

BASE: dict[str, Any] = {"models": ["scripted:"], "tasks": ["boolq"]}


@pytest.mark.parametrize("name", preset_names())
def test_presets_survive_their_own_yaml(name: str) -> None:
    study = Study.preset(name)
    assert Study.build(yaml.safe_load(study.to_yaml())) == study


def test_the_paper_asks_140_000_times() -> None:
    paper = Study.preset("paper")
    grid = (paper.models, paper.tasks, paper.wrappers, paper.decoding)
    sizes = [len(part) for part in grid]
    assert sizes == [4, 7, 5, 1]
    assert 4 * 7 * 5 * paper.examples * paper.seeds == 140_000
    assert (paper.max_tokens, paper.budget, paper.temperature) == (24, "task", 0)
    assert paper.models[0].model == "openrouter:microsoft/phi-4"


@pytest.mark.parametrize(
    ("keys", "fault"),
    [
        ({"exampels": 3}, "exampels: unknown key, did you mean 'examples'"),
        ({"examples": "many"}, "examples: expected a whole number, got 'many'"),
        ({"examples": 0}, "examples: expected at least 1, got 0"),
        (
            {"budget": "big"},
            r"budget: expected none, task, example, \{chars: N\} or \{tokens: N\}, got 'big'",
        ),
        ({"budget": {"chars": 10, "tokens": 10}}, "budget"),
        ({"wrappers": ["xml"]}, r"wrappers\[0\]: unknown wrapper 'xml': expected plain, json"),
        ({"models": []}, "models"),
        ({"models": ["nosuch:x"]}, "nosuch"),
        ({"models": ["scripted:", "scripted:"]}, "appears twice"),
        ({"models": [{"model": "openai:x", "api_key_env": "sk-123"}]}, "not the key itself"),
        ({"models": [{"model": "openai:x", "headers": {"X-Api-Key": "abc"}}]}, "environment"),
        ({"models": [{"model": "openai:x", "base_url": "http://a:b@host/v1"}]}, "base_url"),
        ({"models": [{"model": "openai:x", "base_url": "http://h:99999"}]}, r"base_url: .* 65535"),
        ({"models": [{"model": "openai:x", "temp": 1}]}, r"models\[0\].temp: unknown key"),
        ({"temperature": -1}, "temperature"),
        ({"decoding": ["beam"]}, "decoding"),
        ({"tasks": [{"name": "boolq", "columns": {"answer": "a"}}]}, "tasks"),
    ],
)
def test_a_mistake_names_its_key(keys: dict[str, Any], fault: str) -> None:
    with pytest.raises(UserError, match=fault) as caught:
        Study.build({**BASE, **keys}, "s.yaml")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("models: [a\n", "line"),
        ("a: 1\na: 2\n", "'a' twice"),
        ("- just\n- a list\n", "expected a mapping"),
        ("", "expected a mapping"),
    ],
)
def test_a_broken_file_names_file_and_line(tmp_path: Path, text: str, fault: str) -> None:
    path = tmp_path / "broken.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(StudyError, match=f"broken.yaml.*{fault}"):
        Study.from_file(path)


def test_a_missing_file_and_bad_bytes(tmp_path: Path) -> None:
    with pytest.raises(StudyError, match="cannot be read"):
        Study.from_file(tmp_path / "none.yaml")
    (tmp_path / "latin.yaml").write_bytes(b"name: caf\xe9\n")
    with pytest.raises(StudyError, match="not UTF-8 at byte 9"):
        Study.from_file(tmp_path / "latin.yaml")


def test_data_files_are_relative_to_the_study(tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text("models: ['scripted:']\ntasks: [mine.csv]\n", encoding="utf-8")
    study = Study.from_file(tmp_path / "s.yaml")
    assert study.tasks[0].file == str(tmp_path / "mine.csv")
    assert study.tasks[0].name == "mine"


def test_one_model_has_one_spelling() -> None:
    names = ("openrouter/microsoft/phi-4", "openrouter:microsoft/phi-4")
    first, second = (Study.build({**BASE, "models": [name]}).models[0] for name in names)
    assert first == second
    assert first.name == "microsoft/phi-4"


def test_a_run_grows() -> None:
    old = Study.build({**BASE, "examples": 10})
    new = Study.build({**BASE, "examples": 5, "seeds": 3, "tasks": ["gsm8k"], "level": "strict"})
    merged = merge(old, new)
    assert [t.name for t in merged.tasks] == ["boolq", "gsm8k"]
    assert (merged.examples, merged.seeds, merged.level) == (10, 3, "strict")
    assert merge(merged, old).tasks == merged.tasks


@pytest.mark.parametrize(
    ("keys", "fault"),
    [
        ({"temperature": 0.8}, "temperature: 0.0 there, 0.8 here"),
        ({"sample_seed": 1}, "sample_seed"),
        (
            {"models": [{"model": "scripted:", "system": "Be brief."}]},
            r"models\[scripted:\].system",
        ),
        ({"budget": "task"}, "budget: example there, task here"),
        ({"budget": {"chars": 900}}, r"budget: example there, \{'chars': 900\} here"),
    ],
)
def test_a_changed_parameter_is_refused_by_name(keys: dict[str, Any], fault: str) -> None:
    with pytest.raises(RunError, match=fault):
        merge(Study.build(BASE), Study.build({**BASE, **keys}))


def test_labels_and_prices_may_change() -> None:
    priced = {"model": "scripted:", "price": {"prompt": 1, "completion": 2}, "family": "script"}
    merged = merge(Study.build(BASE), Study.build({**BASE, "models": [priced]}))
    assert merged.models[0].family == "script"


def test_a_fixture_study_builds(small_study: Callable[..., Study]) -> None:
    assert small_study().tasks[0].name == "sums"


@pytest.mark.parametrize(
    ("keys", "where"),
    [
        ({"stop": ["\ud83d"]}, r"stop\[0\]"),
        ({"models": [{"model": "scripted:", "system": "a\udc00"}]}, r"models\[0\]\.system"),
        ({"models": [{"model": "openai:m", "extra_body": {"a": {"b": "\ud83d"}}}]}, r"body\.a\.b"),
        ({"models": [{"model": "openai:m", "extra_body": {"\ud83d": 1}}]}, "extra_body"),
        ({"tasks": [{"name": "demo_number", "instruction": "\ud83d"}]}, r"tasks\[0\]\.instruction"),
    ],
)
def test_half_a_surrogate_pair_is_refused(keys: dict[str, Any], where: str) -> None:
    plain = {"models": ["scripted:"], "tasks": ["demo_choice"]}
    with pytest.raises(StudyError, match=rf"{where}: holds the lone surrogate '\\u"):
        Study.build({**plain, **keys})

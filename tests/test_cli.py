"""The command line: what it prints, and that every mistake is one line and exit code 2."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from formatspan import cli
from formatspan.cli import app

ROOT = Path(__file__).parent.parent


def _call(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, *args: str
) -> tuple[int, str, str]:
    monkeypatch.setattr(sys, "argv", ["formatspan", *args])
    with pytest.raises(SystemExit) as left:
        cli.main()
    out, err = capsys.readouterr()
    return int(left.value.code or 0), out, err


@pytest.fixture
def study(tmp_path: Path, rows_file: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "study.yaml"
    path.write_text(
        f"name: mine\nmodels: ['scripted:comply.json=0.2']\ntasks: ['{rows_file.name}']\n"
        "examples: 5\n",
        encoding="utf-8",
    )
    return path


def test_run_prints_a_table_and_where_the_files_are(
    study: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    code, out, err = _call(capsys, monkeypatch, "run", str(study))
    assert code == 0
    assert "FSI" in out
    assert "structured_delim" in out
    assert "runs/mine/run.sqlite" in err
    assert "\x1b" not in out + err
    assert "\r" not in out + err
    code, _, err = _call(capsys, monkeypatch, "run", "runs/mine")
    assert code == 0
    assert "asked 0" in err


def test_analyze_prints_json_for_machines(
    study: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    _call(capsys, monkeypatch, "run", str(study))
    monkeypatch.setattr(sys, "argv", ["formatspan", "analyze", "runs/mine", "--json"])
    for level in ("strict", "normalized", "lenient", "paper"):
        code, out, _ = _call(
            capsys, monkeypatch, "analyze", "runs/mine", "--json", "--level", level
        )
        assert code == 0
        data = json.loads(out)
        assert data["level"] == level
        assert {"models", "pairs", "cells", "statuses", "matched", "tasks"} <= data.keys()


def test_show_makes_padding_visible(
    study: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    code, out, _ = _call(capsys, monkeypatch, "show", str(study))
    assert code == 0
    assert "····" in out
    assert "contract: json" in out
    assert "characters" in out


def test_list_names_everything(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    code, out, _ = _call(capsys, monkeypatch, "list")
    assert code == 0
    for name in ("paper", "hellaswag", "deliberate", "answer_line", "openrouter"):
        assert name in out


@pytest.mark.parametrize(
    ("args", "fault"),
    [
        (["run"], "expected a study file, --preset, or both --models and --tasks"),
        (["run", "none.yaml"], "none.yaml"),
        (["run", "--preset", "nosuch"], "expected demo"),
        (["run", "study.yaml", "--preset", "demo"], "not both"),
        (["run", "study.yaml", "--tasks", "boolk"], "boolq"),
        (["run", "study.yaml", "--wrappers", "xml"], "plain, json"),
        (["run", "study.yaml", "--models", "nosuch:x"], "nosuch"),
        (["run", "study.yaml", "--models", "local:/nowhere/x.gguf"], "x.gguf"),
        (["run", "study.yaml", "--models", "openai:gpt-4o-mini"], "OPENAI_API_KEY"),
        (["run", "study.yaml", "--models", "openrouter/microsoft/phi-4"], "OPENROUTER_API_KEY"),
        (["run", "study.yaml", "--models", "scripted:accuracy=2"], "accuracy"),
        (["run", "study.yaml", "--set", "exampels=3"], "did you mean 'examples'"),
        (["run", "study.yaml", "--set", "examples"], "KEY=VALUE"),
        (["run", "study.yaml", "--tasks", "missing.csv"], "missing.csv"),
        (["run", "study.yaml", "--tasks", "arc_challenge", "--data", "nowhere"], "nowhere"),
        (["run", "study.yaml", "--level", "kind"], "level"),
        (["run", "study.yaml", "--out", "study.yaml"], "is a file"),
        (["analyze", "nowhere"], "not a run folder"),
        (["analyze", "."], "not a run folder"),
        (["show", "study.yaml", "--task", "x"], "expected sums"),
        (["show", "study.yaml", "--example", "zzz"], "zzz"),
    ],
)
def test_a_mistake_is_one_line_and_exit_code_2(
    args: list[str],
    fault: str,
    study: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("OPENAI_API_KEY", "OPENROUTER_API_KEY", "FORMATSPAN_DATA"):
        monkeypatch.delenv(name, raising=False)
    code, out, err = _call(capsys, monkeypatch, *args)
    assert code == 2
    assert out == ""
    lines = [line for line in err.splitlines() if line and "planning" not in line]
    assert len(lines) == 1
    assert lines[0].startswith("error: ")
    assert fault in lines[0]


def test_falsify_leaves_out_what_nobody_agreed_to(
    study: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("formatspan.falsifier.compare.RESAMPLES", 200)
    _call(capsys, monkeypatch, "run", str(study))
    monkeypatch.setattr(sys, "argv", ["formatspan", "falsify", "runs/mine"])
    with pytest.raises(SystemExit) as left:
        cli.main()
    out, err = capsys.readouterr()
    assert not left.value.code
    assert "constrained, comply.json=0.2: 25 requests" in err
    assert "left out; --yes asks for them" in err
    assert "left out: constrained, likelihood, likelihood by bytes: not asked yet" in out
    assert "partial" in out
    assert "\x1b" not in out + err


def test_falsify_runs_a_study_and_asks_what_is_missing(
    study: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("formatspan.falsifier.compare.RESAMPLES", 200)
    code, _, err = _call(capsys, monkeypatch, "falsify", str(study))
    assert code == 2
    assert "no run yet: formatspan run" in err
    args = ("falsify", str(study), "--yes", "--repair", "--json", "--arms", "lenient,constrained")
    code, out, err = _call(capsys, monkeypatch, *args)
    assert code == 0
    found = json.loads(out)
    assert [row["arm"] for row in found["arms"]] == ["normalized", "lenient", "constrained"]
    assert found["absent"] == {}
    assert {row["policy"] for row in found["policies"]} >= {"none", "ask again", "constrained"}
    code, out, err = _call(capsys, monkeypatch, "falsify", "runs/mine", "--arms", "kind")
    assert code == 2
    assert err.startswith("error: arm 'kind': expected normalized, paper, strict")


def test_every_command_has_help_and_stands_in_the_docs() -> None:
    docs = (ROOT / "README.md").read_text(encoding="utf-8")
    for command in app.registered_commands:
        name = command.name or (command.callback.__name__ if command.callback else "")
        assert command.callback is not None
        assert command.callback.__doc__
        assert f"formatspan {name}" in docs, name


def test_module_and_script_are_the_same() -> None:
    out = subprocess.run(
        [sys.executable, "-m", "formatspan", "version"], capture_output=True, text=True, check=True
    )
    assert out.stdout.strip()

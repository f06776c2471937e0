"""The command line: what it prints, and that every mistake is one line and exit code 2."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from formatspan import cli
from formatspan.cli import app, options

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
    for name in ("paper", "hellaswag", "deliberate", "answer_line", "openrouter", "disconnect"):
        assert name in out


def test_plan_prints_a_bill(
    study: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    code, out, _ = _call(capsys, monkeypatch, "plan", str(study))
    assert code == 0
    for said in (
        "25 requests to ask",
        "cost: $0: these models are free",
        "power: 5 examples a task",
        "FSI of 5.0",
    ):
        assert said in out
    code, out, _ = _call(capsys, monkeypatch, "plan", str(study), "--json")
    assert json.loads(out)["requests"] == 25
    _call(capsys, monkeypatch, "run", str(study))
    _, out, _ = _call(capsys, monkeypatch, "plan", "runs/mine")
    assert "0 requests to ask" in out
    assert "cost: nothing is left to pay" in out
    assert "nothing is left to ask" in out


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
        (["plan", "study.yaml", "--price-file", "none.yaml"], "none.yaml"),
        (["plan", "study.yaml", "--fsi", "0"], "percentage points"),
        (["plan", "study.yaml", "--tasks", "boolq", "--data", "nowhere"], "nowhere"),
        (["analyze", "nowhere"], "not a run folder"),
        (["analyze", "."], "not a run folder"),
        (["show", "study.yaml", "--task", "x"], "expected sums"),
        (
            ["show", "study.yaml", "--example", "zzz"],
            "not in the sample: expected 8, 1, 4 or another of 5",
        ),
        (
            ["show", "--models", "scripted", "--tasks", "demo_choice", "--example", "c-018"],
            " or another of 200, did you mean 'c018'?",
        ),
        (["run", "study.yaml", "--data", "nowhere"], "nowhere: no such folder; --data names"),
        (
            ["run", "--models", "scripted", "--tasks", "demo_choice", "--data", "study.yaml"],
            "study.yaml: is a file; --data names a folder",
        ),
        (
            ["plan", "--models", "scripted", "--tasks", "demo_choice", "--data", "nowhere"],
            "nowhere: no such folder",
        ),
        (["rnu"], "no such command 'rnu', did you mean run?"),
        (["run", "--modles", "x"], "no such option --modles, did you mean --models?"),
        (["--version"], "did you mean version?"),
        (["run", "study.yaml", "extra"], "extra"),
        (["run", "--models"], "requires an argument"),
        (["run", "study.yaml", "--fresh=3"], "does not take a value"),
        (["analyze"], "missing argument 'RUN'"),
        (
            ["run", "study.yaml", "--examples", "abc"],
            "examples: expected a whole number, got 'abc'",
        ),
        (["run", "study.yaml", "--seeds", "true"], "seeds: expected a whole number, got true"),
        (["run", "study.yaml", "--temperature", "hot"], "temperature: expected a number"),
        (["run", "study.yaml", "--budget", "{chars: -1}"], "budget: expected a length from 1"),
        (["run", "study.yaml", "--budget", "foo"], "{chars: N} or {tokens: N}, got 'foo'"),
        (["run", "study.yaml", "--tasks", "x.txt"], "ending in one of .csv, .jsonl"),
        (["run", "study.yaml", "--models", ","], "--models: names nothing"),
        (["run", "study.yaml", "--set", "=1"], "KEY=VALUE"),
        (["run", "study.yaml", "--set", "seeds=1", "--set", "seeds=2"], "key 'seeds' twice"),
        (["run", "study.yaml", "--set", "seeds=[["], "--set seeds: line 1"),
        (["run", "study.yaml", "--seeds", "100000000"], "the grid has 2,500,000,000 points"),
        (["run", "study.yaml", "--out", "study.yaml/x"], "cannot be created"),
        (["run", "study.yaml", "--cache", "."], "is a folder; --cache names a file"),
        (["run", "study.yaml", "--cache", "nowhere/c"], "there is no folder nowhere"),
        (["run", ".."], "a folder without study.yaml"),
        (["run", "sums.jsonl"], "sums.jsonl"),
        (["analyze", "study.yaml"], "a file; expected the folder of a run"),
        (["report", "nowhere"], "not a run folder"),
        (["report", "nowhere", "--replies", "-1"], "--replies: expected a whole number"),
        (["replies", "nowhere", "--limit", "many"], "--limit: expected a whole number"),
        (["replies", "nowhere", "--parquet", "."], "--parquet names a file"),
        (["show", "study.yaml", "--task", "sum"], "did you mean 'sums'?"),
        (["run", "study.yaml", "--max-cost", "lots"], "--max-cost: expected a number, got 'lots'"),
        (["run", "study.yaml", "--max-cost", "-1"], "--max-cost: expected US dollars above 0"),
        (["plan", "study.yaml", "--fsi", "x"], "--fsi: expected a number, got 'x'"),
        (
            ["plan", "study.yaml", "--concurrency", "0"],
            "--concurrency: expected a whole number from 1 on, got '0'",
        ),
        (
            ["compare", "a", "b", "--fail-if-worse", "-1"],
            "--fail-if-worse: expected a number from 0 on, got '-1'",
        ),
        (["compare", "a", "b", "--fail-if-worse", "nan"], "--fail-if-worse: expected a number"),
        (["stub", "--port", "http"], "--port: expected a whole number from 0 on, got 'http'"),
        (["stub", "--latency", "-1"], "--latency: expected a number from 0 on, got '-1'"),
        (["stub", "--kinds", "boom"], "expected some of rate_limit"),
        (["run", "x" * 5000], "File name too long"),
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
    assert fault in lines[0] or len(lines[0]) > 2000
    assert len(lines[0]) < 2100
    assert not Path("runs").exists(), "a command that cannot run leaves nothing behind"


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


def test_falsify_that_its_budget_stops_ends_as_run_does(
    study: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("formatspan.falsifier.compare.RESAMPLES", 200)
    monkeypatch.setattr("formatspan.spending.pricing.FREE_SCHEMES", frozenset())
    Path("prices.yaml").write_text(
        "prices: {'scripted:comply.json=0.2': {prompt: 1, completion: 1}}"
    )
    _call(capsys, monkeypatch, "run", str(study))
    args = ("--yes", "--price-file", "prices.yaml", "--max-cost", "0.001")
    code, out, err = _call(capsys, monkeypatch, "falsify", "runs/mine", *args)
    assert code == 1
    assert err.endswith("not complete: the same command goes on where this stopped\n")
    why = "comply.json=0.2: the next request could exceed the budget of $0.001"
    assert f"left out: constrained: {why}" in out


@pytest.mark.parametrize("arms", [["--arms", "constrained"], ["--arms", "lenient", "--repair"]])
def test_ctrl_c_while_arms_are_asked_says_how_to_go_on(
    arms: list[str],
    study: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from formatspan.runner import Lane, Runner

    ask_all = Runner.run

    async def interrupted(self: Runner, lanes: dict[str, Lane]) -> None:
        self.interrupt()
        await ask_all(self, lanes)

    def falsify() -> tuple[int, str, str]:
        return _call(capsys, monkeypatch, "falsify", str(study), "--yes", *arms)

    def assert_interrupted() -> None:
        with monkeypatch.context() as patch:
            patch.setattr(Runner, "run", interrupted)
            code, out, err = falsify()
        assert (code, out) == (130, "")
        assert err.endswith("interrupted; the same command goes on where it stopped\n")

    monkeypatch.setattr("formatspan.falsifier.compare.RESAMPLES", 200)
    assert_interrupted()  # while the study itself is run
    _call(capsys, monkeypatch, "run", str(study))
    assert_interrupted()  # while arms are asked
    code, out, _ = falsify()
    assert code == 0
    assert "not asked yet" not in out


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


def test_without_a_command_there_is_help(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    code, out, err = _call(capsys, monkeypatch)
    assert code == 2
    assert out.startswith("Usage: formatspan")
    assert err == ""


@pytest.mark.parametrize(
    ("values", "parts"),
    [
        (["scripted:accuracy=0.5,comply.json=0.2"], ["scripted:accuracy=0.5,comply.json=0.2"]),
        (
            ["scripted:accuracy=0.5,comply=1,openai:a,openrouter/b/c", "local:d"],
            ["scripted:accuracy=0.5,comply=1", "openai:a", "openrouter/b/c", "local:d"],
        ),
        (["openai:a,b"], ["openai:a", "b"]),
        (["plain, json", "boolq,,gsm8k,"], ["plain", "json", "boolq", "gsm8k"]),
    ],
)
def test_lists_are_split_at_commas_but_not_inside_a_script(
    values: list[str], parts: list[str]
) -> None:
    assert options.parts(values) == parts


@pytest.mark.parametrize("place", ["make_context", "invoke"])
@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["run", "x.yaml"], "interrupted; the same command goes on where it stopped\n"),
        (["analyze", "x"], "interrupted\n"),
        (["list"], "interrupted\n"),
    ],
)
def test_ctrl_c_at_any_time_is_one_line(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    place: str,
    args: list[str],
    said: str,
) -> None:
    from typer.core import TyperGroup

    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(TyperGroup, place, interrupt)
    code, out, err = _call(capsys, monkeypatch, *args)
    assert (code, out, err) == (130, "", said)


def test_ctrl_c_while_loading_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "typer.py").write_text("raise KeyboardInterrupt", encoding="utf-8")
    code = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); sys.argv = ['formatspan', 'run']; "
    code += "from formatspan.__main__ import main; main()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 130
    assert done.stderr == "interrupted; the same command goes on where it stopped\n"


def test_a_run_of_failures_says_so_instead_of_empty_tables(
    study: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    failing = ("--models", "scripted:fail=1")
    code, out, err = _call(capsys, monkeypatch, "run", str(study), *failing)
    assert code == 1
    assert out == "fail=1: no reply yet to 25 requests\n"
    assert "failed last with server" in err
    both = "scripted:fail=1,scripted:"
    code, out, _ = _call(capsys, monkeypatch, "run", str(study), "--models", both)
    assert code == 1
    assert "fail=1: no reply yet" in out
    assert "FSI" in out


def test_show_names_one_number_for_all(
    study: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    code, out, _ = _call(capsys, monkeypatch, "show", str(study), "--seeds", "9")
    assert code == 2, "show asks nothing, so it has no seeds"
    code, out, _ = _call(capsys, monkeypatch, "show", str(study), "--set", "seeds=1000000000")
    assert code == 0
    assert "contract: text; a number, such as '7'" in out
    assert "1250" not in out


def test_planning_says_how_large_the_grid_is(
    study: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("formatspan.planning._SAY_EVERY", 60)
    monkeypatch.setattr("formatspan.planning._BATCH", 10)
    _, _, err = _call(capsys, monkeypatch, "run", str(study), "--seeds", "6")
    assert "planning a grid of 150 points" in err
    assert "planned 60 of 150 points" in err
    assert "planned 120 of 150 points" in err


def test_a_table_of_scores_is_analyzed_and_nothing_else_is_looked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [f"m,t,e{i},{w},1,{i % 2}" for i in range(30) for w in ("plain", "json")]
    table = tmp_path / "scores.csv"
    head = "model,task,example,wrapper,parsed,correct"
    table.write_text("\n".join([head, *rows]) + "\n", encoding="utf-8")
    for more in ((), ("--levels",)):
        code, out, err = _call(capsys, monkeypatch, "analyze", str(table), *more)
        assert (code, "error" in err) == (0, False)
        assert "FSI" in out


def test_the_endpoint_of_models_named_on_the_command_line(
    study: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = next(study.parent.glob("*.jsonl"))
    asked = ("--models", "openai:m", "--tasks", rows.name, "--examples", "2")
    dead = "http://127.0.0.1:9/v1"
    code, _, err = _call(capsys, monkeypatch, "plan", *asked, "--base-url", dead, "--offline")
    assert (code, err.count("error")) == (0, 0)
    code, _, err = _call(capsys, monkeypatch, "plan", str(study), "--base-url", dead)
    assert code == 2
    assert "--models" in err


def test_no_matched_example_says_why_and_what_to_do(
    study: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    _, out, _ = _call(capsys, monkeypatch, "run", str(study))
    line = "matched n 0: no example has prompts whose tokens agree within 5% over wrappers"
    assert f"{line}; budget_unit: tokens in a new run pads prompts to equal tokens.\n" in out
    padded = ("--set", "budget_unit=tokens", "--out", "runs/tokens")
    _, out, _ = _call(capsys, monkeypatch, "run", str(study), *padded)
    assert "matched n 0" not in out
    table = Path("scores.csv")
    rows = [f"m,t,e{i},{w},1,{i % 2}\n" for i in range(30) for w in ("plain", "json")]
    table.write_text("model,task,example,wrapper,parsed,correct\n" + "".join(rows))
    _, out, _ = _call(capsys, monkeypatch, "analyze", str(table))
    assert "matched n 0: the tokens of these prompts are not known." in out


def test_the_legend_speaks_of_what_is_shown(
    study: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    _, tested, _ = _call(capsys, monkeypatch, "run", str(study))
    assert "95% max-T interval" in tested and "--intervals" not in tested
    _, bare, _ = _call(capsys, monkeypatch, "analyze", "runs/mine")
    assert "95% max-T interval" not in bare and "analyze --intervals adds" in bare


def test_one_wrapper_has_no_span(
    study: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    _, out, _ = _call(capsys, monkeypatch, "run", str(study), "--wrappers", "plain")
    assert "one wrapper: no span to measure" in " ".join(out.split())


def test_a_filter_that_nothing_passes_says_so(
    study: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    _call(capsys, monkeypatch, "run", str(study))
    _, out, _ = _call(capsys, monkeypatch, "replies", "runs/mine", "--filter", "status=failure")
    assert out == "no reply matches\n"


def test_a_port_that_there_is_not(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    code, _, err = _call(capsys, monkeypatch, "stub", "--port", "99999")
    assert (code, err) == (2, "error: port: expected 0 to 65535, got 99999\n")


def test_fewer_examples_than_asked_for_are_named(
    study: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    _, _, err = _call(capsys, monkeypatch, "run", str(study), "--examples", "5000")
    assert "examples, 5,000 were asked for" in err

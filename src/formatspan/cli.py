"""The command line: parse, one call of the library, print."""

from __future__ import annotations

import sqlite3
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from formatspan._version import __version__
from formatspan.errors import FormatspanError, StorageError, UserError

if TYPE_CHECKING:
    from rich.console import Console

    from formatspan.folder import Run
    from formatspan.study import Study

app = typer.Typer(
    name="formatspan",
    help="Measure how far the formatting shell around a question moves a model's score.",
    no_args_is_help=True,
    add_completion=True,
    rich_markup_mode=None,  # help in plain text needs no Rich, which takes longest to import
    pretty_exceptions_enable=False,
)

_FILE_WIDTH = 160

StudyPath = Annotated[
    Path | None,
    typer.Argument(
        help="Study file (YAML), or the folder of a run to go on with.", metavar="STUDY"
    ),
]
Preset = Annotated[str | None, typer.Option(help="A study that ships with formatspan.")]
Models = Annotated[
    list[str] | None, typer.Option(help="Model addresses; repeat or separate by commas.")
]
Tasks = Annotated[list[str] | None, typer.Option(help="Tasks or data files; likewise.")]
Wrappers = Annotated[list[str] | None, typer.Option(help="Wrapper families; likewise.")]
Examples = Annotated[int | None, typer.Option(help="Examples per task.")]
Seeds = Annotated[int | None, typer.Option(help="Repeats of every prompt.")]
MaxTokens = Annotated[int | None, typer.Option(help="Longest reply, in tokens.")]
Temperature = Annotated[float | None, typer.Option(help="0 is greedy.")]
Budget = Annotated[str | None, typer.Option(help="Padding: none, task or example.")]
Set = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Any other key of a study; VALUE is YAML."),
]
Data = Annotated[
    Path | None,
    typer.Option(help="Folder with <task>.jsonl files; else FORMATSPAN_DATA, else the hub."),
]
Level = Annotated[
    str | None, typer.Option(help="Extraction level: strict, normalized, lenient or paper.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for machines.")]


def main() -> None:
    """Entry point: mistakes become one line and exit code 2, a full disk exit code 1."""
    try:
        app()
    except UserError as error:
        _fail(str(error), 2)
    except StorageError as error:
        _fail(str(error), 1)
    except FormatspanError as error:
        _fail(str(error), 1)
    except sqlite3.DatabaseError as error:
        _fail(f"the run's store is damaged: {error}", 2)
    except KeyboardInterrupt:
        _fail("interrupted; the same command goes on where it stopped", 130)


@app.command()
def run(
    study: StudyPath = None,
    preset: Preset = None,
    models: Models = None,
    tasks: Tasks = None,
    wrappers: Wrappers = None,
    examples: Examples = None,
    seeds: Seeds = None,
    max_tokens: MaxTokens = None,
    temperature: Temperature = None,
    budget: Budget = None,
    level: Level = None,
    set_: Set = None,
    data: Data = None,
    out: Annotated[Path | None, typer.Option(help="The run's folder.")] = None,
    cache: Annotated[Path | None, typer.Option(help="File that shares replies.")] = None,
    fresh: Annotated[bool, typer.Option(help="Set an earlier run aside, start anew.")] = False,
    as_json: AsJson = False,
) -> None:
    """Run a study, or go on with it: the same command asks only what is missing."""
    from formatspan.analysis import analyze as analyze_run
    from formatspan.progress import Shown
    from formatspan.session import run as run_study

    given: dict[str, Any] = {**_lists(models=models, tasks=tasks, wrappers=wrappers)}
    given |= _given(examples=examples, seeds=seeds, max_tokens=max_tokens)
    given |= _given(temperature=temperature, budget=budget, level=level)
    chosen, folder = _study(study, preset, given, set_)
    with Shown(_console(stderr=True)) as shown:
        done = run_study(
            chosen, out=out or folder, data_dir=data, cache=cache, fresh=fresh, listener=shown
        )
    _print(analyze_run(done, level=chosen.level), as_json)
    if not as_json:
        _print_levels(done.folder)
    raise typer.Exit(_report(done))


@app.command()
def analyze(
    run: Annotated[Path, typer.Argument(help="The run's folder.", metavar="RUN")],
    level: Level = None,
    levels: Annotated[bool, typer.Option("--levels", help="Add a table of all levels.")] = False,
    intervals: Annotated[
        bool, typer.Option("--intervals", help="Add intervals and tests, which take seconds.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Print a run's table again, at any extraction level; no model is asked."""
    from formatspan.analysis import analyze as analyze_run

    found = analyze_run(run, level=level, inference=intervals)  # type: ignore[arg-type]
    _print(found, as_json)
    if levels and not as_json:
        _print_levels(run)


@app.command()
def report(
    run: Annotated[Path, typer.Argument(help="The run's folder.", metavar="RUN")],
    level: Level = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder for the files; RUN/report by default.")
    ] = None,
    replies: Annotated[int, typer.Option(help="Most replies that the page embeds.")] = 3000,
    figures: Annotated[bool, typer.Option(help="Also write SVG, PNG and PDF files.")] = True,
) -> None:
    """Write a page to look at, figures, tables and analysis.json of a run."""
    from formatspan.analysis import analyze as analyze_run
    from formatspan.folder import RunFolder
    from formatspan.report.write import write_report

    analysis = analyze_run(run, level=level)  # type: ignore[arg-type]
    target = out or run / "report"
    files = write_report(analysis, RunFolder(run).store, target, replies=replies, figures=figures)
    typer.echo(f"{files.page}")


@app.command()
def replies(
    run: Annotated[Path, typer.Argument(help="The run's folder.", metavar="RUN")],
    filter_: Annotated[
        list[str] | None,
        typer.Option(
            "--filter",
            help="model=, task=, wrapper=, mode=, status=, correct, flips; commas join.",
        ),
    ] = None,
    level: Level = None,
    limit: Annotated[int, typer.Option(help="Most replies printed.")] = 50,
    parquet: Annotated[Path | None, typer.Option(help="Write all to this file instead.")] = None,
) -> None:
    """Print raw replies with what was made of them, or write them as Parquet."""
    from formatspan.folder import RunFolder
    from formatspan.report.replies import ReplyFilter, write_parquet
    from formatspan.report.replies import replies as replies_of
    from formatspan.report.terminal import print_replies

    chosen = ReplyFilter.parse(filter_ or [])
    frame = replies_of(RunFolder(run).store, chosen, level=level)  # type: ignore[arg-type]
    if parquet is not None:
        write_parquet(frame, parquet)
        typer.echo(f"{parquet}: {len(frame)} replies")
        return
    print_replies(frame, limit, _console())


@app.command()
def show(
    study: StudyPath = None,
    preset: Preset = None,
    models: Models = None,
    tasks: Tasks = None,
    wrappers: Wrappers = None,
    max_tokens: MaxTokens = None,
    budget: Budget = None,
    set_: Set = None,
    data: Data = None,
    task: Annotated[str | None, typer.Option(help="Only this task of the study.")] = None,
    example: Annotated[str | None, typer.Option(help="Id of the example.")] = None,
) -> None:
    """Print the exact prompt of each wrapper: padding visible, lengths, contract."""
    from formatspan.report.terminal import print_prompt
    from formatspan.show import prompts_of

    given: dict[str, Any] = {**_lists(models=models, tasks=tasks, wrappers=wrappers)}
    given |= _given(max_tokens=max_tokens, budget=budget)
    chosen, _ = _study(study, preset, given, set_)
    console = _console()
    for loaded, found, prompts in prompts_of(chosen, task=task, example=example, data_dir=data):
        for prompt in prompts:
            print_prompt(loaded, found, prompt, console)


@app.command()
def stub(
    host: Annotated[str, typer.Option(help="Address to serve at.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port; 0 takes a free one.")] = 8399,
    latency: Annotated[float, typer.Option(help="Seconds before every reply.")] = 0.0,
    jitter: Annotated[float, typer.Option(help="Up to so many seconds more.")] = 0.0,
    faults: Annotated[float, typer.Option(help="Share of replies that are faulty, 0 to 1.")] = 0.0,
    kinds: Annotated[
        list[str] | None, typer.Option(help="Kinds of fault; repeat or separate by commas.")
    ] = None,
    most_faults: Annotated[int, typer.Option(help="Faults in a row for one request.")] = 2,
    seed: Annotated[int, typer.Option(help="Decides which requests meet which faults.")] = 0,
    slots: Annotated[int | None, typer.Option(help="Requests in hand before a 429.")] = None,
    per_minute: Annotated[int | None, typer.Option(help="Requests a minute.")] = None,
    per_day: Annotated[int | None, typer.Option(help="Replies until a daily quota ends.")] = None,
    refuse: Annotated[
        list[str] | None, typer.Option(help="Parameters refused, such as max_tokens.")
    ] = None,
    text: Annotated[str | None, typer.Option(help="The one text of every reply.")] = None,
    retry_after: Annotated[float, typer.Option(help="Seconds that a 429 asks to wait.")] = 1.0,
    echo: Annotated[bool, typer.Option(help="Errors repeat the key they were sent.")] = False,
) -> None:
    """Serve a stand-in for an endpoint that fails as you say; no model, no cost."""
    from formatspan.stub import Settings
    from formatspan.stub.serve import serve

    lists = _lists(kinds=kinds, refuses=refuse)
    settings = Settings(
        latency_s=latency,
        jitter_s=jitter,
        faults=faults,
        kinds=tuple(lists.get("kinds", ())),
        most_faults=most_faults,
        seed=seed,
        slots=slots,
        per_minute=per_minute,
        per_day=per_day,
        refuses=tuple(lists.get("refuses", ())),
        text=text,
        retry_after_s=retry_after,
        echo=echo,
    )
    serve(settings, host, port, typer.echo)


@app.command(name="list")
def list_() -> None:
    """List presets, tasks, wrappers, contracts and model schemes."""
    from formatspan.backends.table import schemes
    from formatspan.contracts import CONTRACTS
    from formatspan.study import preset_names
    from formatspan.tasks import task_names
    from formatspan.wrappers import FAMILIES

    names = {
        "presets": preset_names(),
        "tasks": task_names(),
        "wrappers": FAMILIES,
        "contracts": tuple(CONTRACTS),
        "model schemes": schemes(),
    }
    for title, found in names.items():
        typer.echo(f"{title}: {', '.join(found)}")


@app.command()
def version() -> None:
    """Print the version."""
    typer.echo(__version__)


def _study(
    path: Path | None, preset: str | None, given: dict[str, Any], sets: list[str] | None
) -> tuple[Study, Path | None]:
    """The study meant by the arguments, and the run's folder if one was named."""
    from formatspan.errors import StudyError
    from formatspan.folder import STUDY_NAME
    from formatspan.study import Study
    from formatspan.study_file import set_keys

    overrides = {**given, **set_keys(sets or [])}
    if path is not None and preset is not None:
        raise StudyError("expected a study file or --preset, not both")
    if preset is not None:
        return Study.preset(preset, overrides), None
    if path is None:
        if not {"models", "tasks"} <= overrides.keys():
            raise StudyError("expected a study file, --preset, or both --models and --tasks")
        return Study.build(overrides, "command line"), None
    if path.is_dir():
        return Study.from_file(path / STUDY_NAME, overrides), path
    return Study.from_file(path, overrides), None


def _lists(**options: list[str] | None) -> dict[str, list[str]]:
    """Repeated or comma-separated options as lists, without those not given."""
    split = {k: [p for v in vs for p in v.split(",") if p] for k, vs in options.items() if vs}
    return {k: v for k, v in split.items() if v}


def _given(**options: object) -> dict[str, object]:
    return {key: value for key, value in options.items() if value is not None}


def _print(analysis: Any, as_json: bool) -> None:  # noqa: ANN401 - imported late
    if as_json:
        sys.stdout.write(analysis.to_json() + "\n")
        return
    from formatspan.report.terminal import print_analysis

    print_analysis(analysis, _console())


def _print_levels(run: Path) -> None:
    from formatspan.analysis import ALL_LEVELS
    from formatspan.analysis import analyze as analyze_run
    from formatspan.report.terminal import print_levels

    found = [analyze_run(run, level=level, inference=False) for level in ALL_LEVELS]
    print_levels(found, _console())


def _report(done: Run) -> int:
    """Say where the files are and what is left; returns the exit code."""
    from formatspan.report.terminal import print_outcome

    print_outcome(done, _console(stderr=True))
    if done.interrupted:
        return 130
    return 0 if done.complete else 1


def _console(*, stderr: bool = False) -> Console:
    from rich.console import Console

    console = Console(stderr=stderr)
    # A file or a pipe has no width of its own: leave the tables unfolded.
    return console if console.is_terminal else Console(stderr=stderr, width=_FILE_WIDTH)


def _fail(message: str, code: int) -> None:
    from formatspan.report.terminal import plain

    sys.stderr.write(f"error: {plain(' '.join(message.split()))}\n")
    raise SystemExit(code)

"""The command line: parse, one call of the library, print."""

from __future__ import annotations

import difflib
import re
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer
from typer.core import TyperGroup

from formatspan._version import __version__
from formatspan.errors import FormatspanError, StudyError, UserError
from formatspan.interrupts import leave
from formatspan.records import IMPORTED

if TYPE_CHECKING:
    from rich.console import Console

    from formatspan.analysis import Analysis
    from formatspan.folder import Run
    from formatspan.study import Study


class _Interrupted(FormatspanError):
    """Ctrl-C, in a form that Typer lets pass; a KeyboardInterrupt it turns into a bare exit."""


class _Commands(TyperGroup):
    """The commands; Ctrl-C comes out of them as `_Interrupted`."""

    def make_context(self, *args: Any, **keys: Any) -> Any:  # noqa: ANN401 - Typer's own types
        try:
            return super().make_context(*args, **keys)  # loads what reads the arguments
        except KeyboardInterrupt:
            raise _Interrupted from None

    def invoke(self, ctx: Any) -> Any:  # noqa: ANN401 - Typer's own types
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            raise _Interrupted from None


app = typer.Typer(
    name="formatspan",
    help="Measure how far the formatting shell around a question moves a model's score.",
    cls=_Commands,
    no_args_is_help=True,
    add_completion=True,
    rich_markup_mode=None,  # help in plain text needs no Rich, which takes longest to import
    pretty_exceptions_enable=False,
)

_FILE_WIDTH = 160
_MESSAGE_CHARS = 2_000
"""A value of the user's inside a message may be of any length."""
_ADDRESS = re.compile(r"\s*(?:[A-Za-z][A-Za-z0-9_.-]*:|openrouter/|local/|openai/)")
"""How a model's address begins."""

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
# Numbers come as texts, so that the study says what is wrong with one, in the words of its file.
Examples = Annotated[str | None, typer.Option(help="Examples per task.", metavar="N")]
Seeds = Annotated[str | None, typer.Option(help="Repeats of every prompt.", metavar="N")]
MaxTokens = Annotated[str | None, typer.Option(help="Longest reply, in tokens.", metavar="N")]
Temperature = Annotated[str | None, typer.Option(help="0 is greedy.", metavar="X")]
Budget = Annotated[str | None, typer.Option(help="Padding: none, task, example or '{chars: N}'.")]
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
RunOrTable = Annotated[
    Path,
    typer.Argument(
        help="The run's folder, or a table scored elsewhere (.csv, .jsonl, .parquet).",
        metavar="RUN",
    ),
]
PriceFile = Annotated[
    Path | None, typer.Option(help="YAML with prices in US dollars per million tokens.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for machines.")]


def main() -> None:
    """Entry point: mistakes become one line and exit code 2, a full disk exit code 1."""
    try:
        code = app(prog_name="formatspan", standalone_mode=False)
    except _Interrupted:
        leave(sys.argv[1:])
    except UserError as error:
        _fail(str(error), 2)
    except FormatspanError as error:
        _fail(str(error), 1)
    except OSError as error:  # of a path that no check foresaw
        _fail(f"{error.filename}: {error.strerror}" if error.filename else str(error), 2)
    except MemoryError:
        _fail("out of memory", 1)
    except Exception as error:
        if not hasattr(error, "format_message"):
            raise  # a bug of ours: its traceback is what a report needs
        _refuse_usage(error)
    raise SystemExit(code if isinstance(code, int) else 0)


def _refuse_usage(error: Any) -> NoReturn:  # noqa: ANN401 - Typer's own types
    """A mistake in the flags as one line; called without a command, the help."""
    context = getattr(error, "ctx", None)
    message: str = error.format_message()
    if context is not None and message == context.get_help():
        sys.stdout.write(message + "\n")
        raise SystemExit(2)
    message = message.rstrip(".")
    wrong = getattr(error, "option_name", None)
    if context is not None and wrong is not None and str(wrong).startswith("-"):
        known = [o for p in context.command.params for o in p.opts if o.startswith("--")]
        commands = getattr(context.command, "commands", {})
        meant = _meant(wrong, known) or _meant(wrong.lstrip("-"), commands)
        message = f"no such option {wrong}{meant}"
    elif context is not None and message.startswith("No such command"):
        wrong = context.args[0] if context.args else message.split("'")[1]
        known = list(context.command.commands)
        message = f"no such command {wrong!r}{_meant(wrong, known)}: expected {', '.join(known)}"
    help_at = f" (see {context.command_path} --help)" if context is not None else ""
    _fail(f"{message[:1].lower()}{message[1:]}{help_at}", 2)


def _meant(wrong: str, known: Iterable[str]) -> str:
    close = difflib.get_close_matches(wrong, known, n=1)
    return f", did you mean {close[0]}?" if close else ""


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
    max_cost: Annotated[
        float | None, typer.Option(help="US dollars that the run may cost, then it stops.")
    ] = None,
    price_file: PriceFile = None,
    check: Annotated[
        bool, typer.Option(help="Look at every endpoint with one tiny request first.")
    ] = True,
    batch: Annotated[
        bool, typer.Option("--batch", help="Through OpenAI's Batch API: half the price, a day.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Run a study, or go on with it: the same command asks only what is missing."""
    from formatspan.analysis import analyze as analyze_run
    from formatspan.progress import Shown
    from formatspan.session import run as run_study

    given = _lists(models=models, tasks=tasks, wrappers=wrappers)
    given |= _values(examples=examples, seeds=seeds, max_tokens=max_tokens)
    given |= _values(temperature=temperature, budget=budget, level=level)
    chosen, folder = _study(study, preset, given, set_)
    with Shown(_console(stderr=True)) as shown:
        done = run_study(
            chosen,
            out=out or folder,
            data_dir=data,
            cache=cache,
            fresh=fresh,
            listener=shown,
            max_cost=max_cost,
            price_file=price_file,
            check=check,
            batch=batch,
        )
    _print(analyze_run(done, level=chosen.level), as_json)
    if done.done and not as_json:
        _print_levels(done.folder)
        _print_bill(done.folder)
    raise typer.Exit(_report(done))


@app.command()
def plan(
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
    set_: Set = None,
    data: Data = None,
    out: Annotated[
        Path | None, typer.Option(help="The run's folder, to see what it still lacks.")
    ] = None,
    price_file: PriceFile = None,
    concurrency: Annotated[
        int | None, typer.Option(min=1, help="Requests in flight to each model.")
    ] = None,
    batch: Annotated[bool, typer.Option("--batch", help="Price the requests as batches.")] = False,
    fsi: Annotated[float, typer.Option(help="Points whose need of examples is told.")] = 5.0,
    offline: Annotated[
        bool, typer.Option("--offline", help="Ask no endpoint for its price list.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Print what a study would ask, cost and take, and what so many examples can tell."""
    from formatspan.planner import plan as plan_study

    given = _lists(models=models, tasks=tasks, wrappers=wrappers)
    given |= _values(examples=examples, seeds=seeds, max_tokens=max_tokens)
    given |= _values(temperature=temperature, budget=budget)
    chosen, folder = _study(study, preset, given, set_)
    found = plan_study(
        chosen,
        run=out or folder,
        data_dir=data,
        price_file=price_file,
        concurrency=concurrency,
        batch=batch,
        online=not offline,
        fsi=fsi,
    )
    if as_json:
        _print_json(found.to_dict())
        return
    from formatspan.report.bill import print_plan

    print_plan(found, _console())


@app.command()
def doctor(
    what: Annotated[
        list[str], typer.Argument(help="Model addresses, or a study file.", metavar="MODEL…|STUDY")
    ],
    base_url: Annotated[str | None, typer.Option(help="The models' endpoint.")] = None,
    api_key_env: Annotated[
        str | None, typer.Option(help="Variable that holds the endpoint's key.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Look at models before a run: one line each with what it means for the study."""
    from dataclasses import asdict

    from formatspan.checkup import diagnose, of_addresses
    from formatspan.doctor import is_fatal

    path = Path(what[0])
    is_study = len(what) == 1 and (path.exists() or path.suffix in (".yaml", ".yml"))
    if is_study:
        study, _ = _study(path, None, {}, None)
    else:
        study = of_addresses(what, base_url, api_key_env)
    findings = diagnose(study, whole=is_study)
    if as_json:
        _print_json({"findings": [asdict(f) for f in findings]})
    else:
        from formatspan.report.findings import print_findings

        print_findings(findings, _console())
    raise typer.Exit(1 if is_fatal(findings) else 0)


@app.command()
def analyze(
    run: RunOrTable,
    level: Level = None,
    levels: Annotated[bool, typer.Option("--levels", help="Add a table of all levels.")] = False,
    intervals: Annotated[
        bool, typer.Option("--intervals", help="Add intervals and tests, which take seconds.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Print a run's table again, at any extraction level; no model is asked."""
    found = _analysis(run, level, inference=intervals)
    _print(found, as_json)
    if levels and not as_json and found.level != IMPORTED:
        _print_levels(run)
    if not as_json:
        _print_bill(run)


@app.command()
def report(
    run: RunOrTable,
    level: Level = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder for the files; by default RUN/report, TABLE-report.")
    ] = None,
    replies: Annotated[
        str, typer.Option(help="Most replies that the page embeds.", metavar="N")
    ] = "3000",
    figures: Annotated[bool, typer.Option(help="Also write SVG, PNG and PDF files.")] = True,
) -> None:
    """Write a page to look at, figures, tables and analysis.json of a run."""
    from formatspan.falsifier.command import falsify as falsify_run
    from formatspan.folder import RunFolder
    from formatspan.imported import is_table
    from formatspan.paths import writable_folder
    from formatspan.report.write import write_report
    from formatspan.store import Store

    most, store = _count("--replies", replies), RunFolder(run).store
    imported = is_table(run)
    target = out or (run.with_name(f"{run.stem}-report") if imported else run / "report")
    if not imported:
        Store.read(store).close()  # no folder is made where there is no run
    writable_folder(target, "--out")
    analysis = _analysis(run, level, full=True)
    testable = not imported and "free" in analysis.study.decoding
    files = write_report(
        analysis,
        None if imported else store,
        target,
        replies=most,
        figures=figures,
        falsified=falsify_run(run) if testable else None,
    )
    typer.echo(f"{files.page}")


@app.command()
def compare(
    a: Annotated[Path, typer.Argument(help="Before: a run's folder or a table.", metavar="A")],
    b: Annotated[Path, typer.Argument(help="After, likewise.", metavar="B")],
    pair: Annotated[
        list[str] | None,
        typer.Option(
            "--pair", metavar="NAME=NAME", help="A model of A and the model of B to compare."
        ),
    ] = None,
    level: Level = None,
    fail_if_worse: Annotated[
        float | None,
        typer.Option(
            metavar="POINTS",
            min=0,
            help="Exit code 1 if accuracy fell or FSI rose by more than this, beyond noise.",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Compare two runs on the tasks, examples and wrappers that both have."""
    from formatspan.comparison import compare as compare_runs
    from formatspan.report.compared import print_comparison, print_worse

    found = compare_runs(a, b, level=level, pairs=_model_pairs(pair or []))  # type: ignore[arg-type]
    if as_json:
        sys.stdout.write(found.to_json() + "\n")
    else:
        print_comparison(found, _console())
    if fail_if_worse is not None:
        worse = found.worse(fail_if_worse)
        print_worse(worse, fail_if_worse, _console(stderr=True))
        raise typer.Exit(1 if worse else 0)


@app.command()
def falsify(
    run: Annotated[
        Path, typer.Argument(help="The run's folder, or its study file.", metavar="RUN|STUDY")
    ],
    arms: Annotated[
        list[str] | None,
        typer.Option(
            help="paper, strict, lenient, partial credit, constrained, likelihood, likelihood by "
            "bytes; repeat or separate by commas. All by default."
        ),
    ] = None,
    repair: Annotated[
        bool, typer.Option("--repair", help="Also ask again where a reply could not be read.")
    ] = False,
    yes: Annotated[
        bool, typer.Option("--yes", "-y", help="Ask for missing arms without a question.")
    ] = False,
    data: Data = None,
    out: Annotated[Path | None, typer.Option(help="The run's folder, for a study file.")] = None,
    as_json: AsJson = False,
) -> None:
    """Tell whether the span survives a kinder reader, a constrained decoder, no parsing at all."""
    from formatspan.falsifier.command import falsify as falsify_run
    from formatspan.falsifier.command import run_of
    from formatspan.progress import Shown
    from formatspan.report.falsifier_terminal import Consent, print_falsification

    chosen = _lists(arms=arms).get("arms")
    with Shown(_console(stderr=True)) as shown:
        consent = Consent(shown, yes=yes)
        folder = run_of(run, out, consent, data, shown)
        found = falsify_run(
            folder, arms=chosen, ask=consent, again=repair, data_dir=data, listener=shown
        )
    if as_json:
        sys.stdout.write(found.to_json() + "\n")
    else:
        print_falsification(found, _console())


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
    limit: Annotated[str, typer.Option(help="Most replies printed.", metavar="N")] = "50",
    parquet: Annotated[Path | None, typer.Option(help="Write all to this file instead.")] = None,
) -> None:
    """Print raw replies with what was made of them, or write them as Parquet."""
    from formatspan.folder import RunFolder
    from formatspan.paths import writable_file
    from formatspan.report.replies import ReplyFilter, write_parquet
    from formatspan.report.replies import replies as replies_of
    from formatspan.report.terminal import print_replies

    chosen, most = ReplyFilter.parse(filter_ or []), _count("--limit", limit)
    if parquet is not None:
        writable_file(parquet, "--parquet")
    frame = replies_of(RunFolder(run).store, chosen, level=level)  # type: ignore[arg-type]
    if parquet is not None:
        write_parquet(frame, parquet)
        typer.echo(f"{parquet}: {len(frame)} replies")
        return
    print_replies(frame, most, _console())


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

    given = _lists(models=models, tasks=tasks, wrappers=wrappers)
    given |= _values(max_tokens=max_tokens, budget=budget)
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
        if not (path / STUDY_NAME).exists():
            raise StudyError(
                f"{path}: a folder without {STUDY_NAME}; expected a study file, or a run's folder"
            )
        return Study.from_file(path / STUDY_NAME, overrides), path
    return Study.from_file(path, overrides), None


def _lists(**options: list[str] | None) -> dict[str, Any]:
    """Repeated or comma-separated options as lists, without those not given."""
    split = {key: _parts(values) for key, values in options.items() if values}
    for key, parts in split.items():
        if not parts:
            raise StudyError(f"--{key}: names nothing")
    return dict(split)


def _parts(values: Iterable[str]) -> list[str]:
    """The parts between commas; those inside a ``scripted:`` address belong to it."""
    parts: list[str] = []
    for value in values:
        open_script = False
        for part in value.split(","):
            if open_script and not _ADDRESS.match(part):
                parts[-1] += f",{part}"
            elif part.strip():
                parts.append(part.strip())
                open_script = part.strip().lower().startswith("scripted")
    return parts


def _values(**options: str | None) -> dict[str, Any]:
    """Options as the values that they would be in a study file, without those not given."""
    from formatspan.study_file import read_value

    return {
        key: read_value(text, f"--{key.replace('_', '-')}")
        for key, text in options.items()
        if text is not None
    }


def _count(option: str, text: str) -> int:
    if not text.isascii() or not text.isdigit() or len(text) > 18:
        raise StudyError(f"{option}: expected a whole number from 0 on, got {text!r}")
    return int(text)


def _model_pairs(texts: list[str]) -> dict[str, str]:
    pairs: dict[str, str] = {}
    for text in texts:
        left, equals, right = (part.strip() for part in text.partition("="))
        if not (left and equals and right):
            raise StudyError(f"--pair {text!r}: expected a model of A, '=', a model of B")
        pairs[left] = right
    return pairs


def _analysis(
    run: Path, level: str | None, *, inference: bool = True, full: bool = False
) -> Analysis:
    """The analysis of a run, or of a table scored elsewhere; ``full`` reads replies again."""
    from formatspan.imported import analysis_of_imported, import_table, is_table

    if not is_table(run):
        from formatspan.analysis import analyze as analyze_run

        return analyze_run(run, level=level, inference=inference, levels=full, caps=full)  # type: ignore[arg-type]
    if level is not None:
        raise StudyError(f"--level {level}: a table of scores has no replies to read again")
    found = import_table(run)
    if found.ignored:
        typer.echo(f"columns not used: {', '.join(found.ignored)}", err=True)
    return analysis_of_imported(found, inference=inference)


def _print(analysis: Any, as_json: bool) -> None:  # noqa: ANN401 - imported late
    if as_json:
        sys.stdout.write(analysis.to_json() + "\n")
        return
    from formatspan.report.terminal import print_analysis

    print_analysis(analysis, _console())


def _print_json(data: dict[str, Any]) -> None:
    import json

    sys.stdout.write(json.dumps(data, indent=2, ensure_ascii=False, allow_nan=False) + "\n")


def _print_levels(run: Path) -> None:
    from formatspan.analysis import ALL_LEVELS
    from formatspan.analysis import analyze as analyze_run
    from formatspan.report.terminal import print_levels

    found = [analyze_run(run, level=level, inference=False) for level in ALL_LEVELS]
    print_levels(found, _console())


def _print_bill(run: Path) -> None:
    """What the replies cost, and what in who gave them threatens the comparison."""
    from formatspan.folder import RunFolder
    from formatspan.report.costs import print_costs
    from formatspan.report.provenance import provenance
    from formatspan.report.terminal import plain

    found, console = provenance(RunFolder(run).store), _console()
    print_costs(found.costs, console)
    for line in found.threats:
        text = f"beware: {plain(line)}"
        console.print(text, markup=False, highlight=False, soft_wrap=True)


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


def _fail(message: str, code: int) -> NoReturn:
    from formatspan.report.terminal import plain

    line = plain(" ".join(message.split()))
    if len(line) > _MESSAGE_CHARS:
        line = f"{line[:_MESSAGE_CHARS]}…"
    sys.stderr.write(f"error: {line}\n")
    raise SystemExit(code)

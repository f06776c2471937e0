"""Commands that show what there is, and serve a stand-in for an endpoint."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from formatspan._version import __version__
from formatspan.cli.options import (
    Budget,
    Data,
    MaxTokens,
    Models,
    Preset,
    Set,
    StudyPath,
    Tasks,
    Wrappers,
    lists,
    real,
    study_of,
    values,
    whole,
)
from formatspan.cli.output import new_console


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

    given = lists(models=models, tasks=tasks, wrappers=wrappers)
    given |= values(max_tokens=max_tokens, budget=budget)
    chosen, _ = study_of(study, preset, given, set_)
    console = new_console()
    for loaded, found, prompts in prompts_of(chosen, task=task, example=example, data_dir=data):
        for prompt in prompts:
            print_prompt(loaded, found, prompt, console)


def _real(option: str, said: str) -> Any:  # noqa: ANN401 - Typer's own type
    return typer.Option(parser=real(option, 0), metavar="X", help=said)


def _whole(option: str, said: str) -> Any:  # noqa: ANN401 - Typer's own type
    return typer.Option(parser=whole(option), metavar="N", help=said)


def stub(
    host: Annotated[str, typer.Option(help="Address to serve at.")] = "127.0.0.1",
    port: Annotated[int, _whole("--port", "Port; 0 takes a free one.")] = 8399,
    latency: Annotated[float, _real("--latency", "Seconds before every reply.")] = 0.0,
    jitter: Annotated[float, _real("--jitter", "Up to so many seconds more.")] = 0.0,
    faults: Annotated[float, _real("--faults", "Share of replies that are faulty, 0 to 1.")] = 0.0,
    kinds: Annotated[
        list[str] | None,
        typer.Option(
            help="Kinds of fault; repeat or separate by commas. All by default; "
            "formatspan list names them."
        ),
    ] = None,
    most_faults: Annotated[int, _whole("--most-faults", "Faults in a row for one request.")] = 2,
    seed: Annotated[int, _whole("--seed", "Decides which requests meet which faults.")] = 0,
    slots: Annotated[int | None, _whole("--slots", "Requests in hand before a 429.")] = None,
    per_minute: Annotated[int | None, _whole("--per-minute", "Requests a minute.")] = None,
    per_day: Annotated[int | None, _whole("--per-day", "Replies until a daily quota ends.")] = None,
    refuse: Annotated[
        list[str] | None, typer.Option(help="Parameters refused, such as max_tokens.")
    ] = None,
    text: Annotated[str | None, typer.Option(help="The one text of every reply.")] = None,
    retry_after: Annotated[float, _real("--retry-after", "Seconds that a 429 asks to wait.")] = 1.0,
    hang: Annotated[float, _real("--hang", "Seconds after which hanging replies end.")] = 30.0,
    echo: Annotated[bool, typer.Option(help="Errors repeat the key they were sent.")] = False,
) -> None:
    """Serve a stand-in for an endpoint that fails as you say; no model, no cost."""
    from formatspan.stub import Settings
    from formatspan.stub.serve import serve

    named = lists(kinds=kinds, refuses=refuse)
    settings = Settings(
        latency_s=latency,
        jitter_s=jitter,
        faults=faults,
        kinds=tuple(named.get("kinds", ())),
        most_faults=most_faults,
        seed=seed,
        slots=slots,
        per_minute=per_minute,
        per_day=per_day,
        refuses=tuple(named.get("refuses", ())),
        text=text,
        retry_after_s=retry_after,
        hang_s=hang,
        echo=echo,
    )
    serve(settings, host, port, typer.echo)


def list_() -> None:
    """List presets, tasks, wrappers, contracts, model schemes and the stub's kinds of fault."""
    from formatspan.backends.table import schemes
    from formatspan.contracts import CONTRACTS
    from formatspan.stub import KINDS
    from formatspan.study import preset_names
    from formatspan.tasks import task_names
    from formatspan.wrappers import FAMILIES

    names = {
        "presets": preset_names(),
        "tasks": task_names(),
        "wrappers": FAMILIES,
        "contracts": tuple(CONTRACTS),
        "model schemes": schemes(),
        "kinds of fault (stub)": tuple(KINDS),
    }
    for title, found in names.items():
        typer.echo(f"{title}: {', '.join(found)}")


def version() -> None:
    """Print the version."""
    typer.echo(__version__)

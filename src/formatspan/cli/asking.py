"""Commands that ask models, or say what asking would take."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from formatspan.cli.options import (
    ApiKeyEnv,
    AsJson,
    BaseUrl,
    Budget,
    Data,
    Examples,
    Level,
    MaxCost,
    MaxTokens,
    Models,
    Preset,
    PriceFile,
    Seeds,
    Set,
    StudyPath,
    Tasks,
    Temperature,
    Wrappers,
    at_endpoint,
    lists,
    real,
    study_of,
    values,
    whole,
)
from formatspan.cli.output import (
    new_console,
    outcome,
    print_all_levels,
    print_bill,
    print_found,
    print_json,
)


def run(
    study: StudyPath = None,
    preset: Preset = None,
    models: Models = None,
    base_url: BaseUrl = None,
    api_key_env: ApiKeyEnv = None,
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
    max_cost: MaxCost = None,
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

    named = lists(models=models, tasks=tasks, wrappers=wrappers)
    given = at_endpoint(named, base_url=base_url, api_key_env=api_key_env)
    given |= values(examples=examples, seeds=seeds, max_tokens=max_tokens)
    given |= values(temperature=temperature, budget=budget, level=level)
    chosen, folder = study_of(study, preset, given, set_)
    with Shown(new_console(stderr=True)) as shown:
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
    print_found(analyze_run(done, level=chosen.level), as_json)
    if done.done and not as_json:
        print_all_levels(done.folder)
        print_bill(done.folder)
    raise typer.Exit(outcome(done))


def plan(
    study: StudyPath = None,
    preset: Preset = None,
    models: Models = None,
    base_url: BaseUrl = None,
    api_key_env: ApiKeyEnv = None,
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
        int | None,
        typer.Option(
            parser=whole("--concurrency", 1), metavar="N", help="Requests in flight to each model."
        ),
    ] = None,
    batch: Annotated[bool, typer.Option("--batch", help="Price the requests as batches.")] = False,
    fsi: Annotated[
        float,
        typer.Option(
            parser=real("--fsi"), metavar="POINTS", help="Points whose need of examples is told."
        ),
    ] = 5.0,
    offline: Annotated[
        bool, typer.Option("--offline", help="Ask no endpoint for its price list.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Print what a study would ask, cost and take, and what so many examples can tell."""
    from formatspan.billing.planner import plan as plan_study

    named = lists(models=models, tasks=tasks, wrappers=wrappers)
    given = at_endpoint(named, base_url=base_url, api_key_env=api_key_env)
    given |= values(examples=examples, seeds=seeds, max_tokens=max_tokens)
    given |= values(temperature=temperature, budget=budget)
    chosen, folder = study_of(study, preset, given, set_)
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
        print_json(found.to_dict())
        return
    from formatspan.report.bill import print_plan

    print_plan(found, new_console())


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

    from formatspan.checks.checkup import diagnose, of_addresses
    from formatspan.checks.doctor import is_fatal
    from formatspan.progress import Shown

    path = Path(what[0])
    is_study = len(what) == 1 and (path.exists() or path.suffix in (".yaml", ".yml"))
    if is_study:
        study, _ = study_of(path, None, {}, None)
    else:
        study = of_addresses(what, base_url, api_key_env)
    with Shown(new_console(stderr=True)) as shown:
        findings = diagnose(study, whole=is_study, say=shown.say)
    if as_json:
        print_json({"findings": [asdict(f) for f in findings]})
    else:
        from formatspan.report.findings import print_findings

        print_findings(findings, new_console())
    raise typer.Exit(1 if is_fatal(findings) else 0)


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
    max_cost: MaxCost = None,
    price_file: PriceFile = None,
    as_json: AsJson = False,
) -> None:
    """Tell whether the span survives a kinder reader, a constrained decoder, no parsing at all."""
    from formatspan.falsifier.asking import Money
    from formatspan.falsifier.command import falsify as falsify_run
    from formatspan.falsifier.command import run_of
    from formatspan.progress import Shown
    from formatspan.report.falsifier_terminal import Consent, print_falsification

    chosen = lists(arms=arms).get("arms")
    with Shown(new_console(stderr=True)) as shown:
        consent = Consent(shown, yes=yes)
        folder = run_of(run, out, consent, data, shown, Money(max_cost, price_file))
        found = falsify_run(
            folder,
            arms=chosen,
            ask=consent,
            again=repair,
            data_dir=data,
            listener=shown,
            max_cost=max_cost,
            price_file=price_file,
        )
    if as_json:
        sys.stdout.write(found.to_json() + "\n")
    else:
        print_falsification(found, new_console())
    if found.unfinished:
        sys.stderr.write("not complete: the same command goes on where this stopped\n")
        raise typer.Exit(1)

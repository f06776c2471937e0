"""The public ``falsify``: asks what is missing, if it may, and reads the findings."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from formatspan.asking import Listener, Silent
from formatspan.errors import RunError, StudyError
from formatspan.falsifier.asking import NO_LIMIT, Money, ask_for
from formatspan.falsifier.outlook import Price, outlook, whole_run
from formatspan.falsifier.reading import findings
from formatspan.falsifier.result import ARMS, Falsification, asked_as
from formatspan.folder import Run, RunFolder, default_folder
from formatspan.session import run as session_run
from formatspan.store import Store
from formatspan.study import Study


def falsify(
    run: Run | Path | str,
    *,
    arms: Sequence[str] | None = None,
    ask: bool | Callable[[Sequence[Price]], bool] = False,
    again: bool = False,
    data_dir: Path | str | None = None,
    listener: Listener | None = None,
    max_cost: float | None = None,
    price_file: Path | str | None = None,
) -> Falsification:
    """Tell whether the span of a run survives other ways of scoring and decoding.

    Args:
        run: A run or its folder.
        arms: Names out of `ARMS`; by default all.
        ask: Ask the models for arms that are missing; without it they are left out, which
            the result says. A function is shown what they cost and decides.
        again: With ``ask``: also ask again, once, every question whose reply could not be
            read, so that repair policies can be compared.
        data_dir: Folder with the rows of the tasks, for constrained decoding.
        listener: Hears how asking goes.
        max_cost: US dollars that the run may cost in all, its arms included: asking stops
            before the first request that could exceed it.
        price_file: YAML with prices, see `formatspan.spending.pricing`.

    Raises:
        UserError: The folder is not a run with free replies, or there is no such arm.
        StorageError: The disk is full or unwritable; what was committed stays.
        KeyboardInterrupt: Ctrl-C while arms were asked; asking again resumes.
    """
    path = Path(run.folder if isinstance(run, Run) else run)
    wanted = checked(arms)
    absent: dict[str, str] = {}
    unfinished: Mapping[str, str] = {}
    if ask:
        seen = outlook(path, wanted, again=again, price_file=price_file)
        absent = dict(seen.absent)
        agreed = bool(seen.prices) and (ask is True or (callable(ask) and ask(seen.prices)))
        data, money = Path(data_dir) if data_dir else None, Money(max_cost, price_file)
        hears = listener or Silent()
        if agreed:
            unfinished, interrupted = ask_for(path, seen.prices, hears, data, money)
            if interrupted:
                raise KeyboardInterrupt
    absent |= {arm: why for arm in ARMS if (why := unfinished.get(asked_as(arm)))}
    with Store.read(RunFolder(path).store) as store:
        return replace(findings(store, wanted, absent), unfinished=unfinished)


def run_of(
    path: Path,
    out: Path | None,
    consent: Callable[[Sequence[Price]], bool],
    data_dir: Path | None,
    listener: Listener,
    money: Money = NO_LIMIT,
) -> Path:
    """The folder of a run, or of a study file's run, which is made if it is not there yet.

    Raises:
        RunError: There is no run, and none was wanted.
        KeyboardInterrupt: Ctrl-C while the run was made; asking again resumes.
    """
    if path.is_dir() or not path.is_file():
        return path
    study = Study.from_file(path)
    folder = RunFolder(out) if out is not None else default_folder(study.name)
    if not folder.store.exists():
        if not consent(whole_run(study)):
            raise RunError(f"{folder.path}: no run yet: formatspan run {path}")
        done = session_run(
            study,
            out=folder.path,
            data_dir=data_dir,
            listener=listener,
            max_cost=money.max_cost,
            price_file=money.price_file,
        )
        if done.interrupted:
            raise KeyboardInterrupt
    return folder.path


def checked(arms: Sequence[str] | None) -> tuple[str, ...]:
    """The arms that are meant, in the order of `ARMS`.

    Raises:
        StudyError: There is no such arm.
    """
    if arms is None:
        return ARMS
    for name in arms:
        if name not in ARMS:
            raise StudyError(f"arm {name!r}: expected {', '.join(ARMS)}")
    return tuple(name for name in ARMS if name in arms)

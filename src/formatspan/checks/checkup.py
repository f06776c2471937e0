"""Runs the doctor: over all models of a study, or briefly over those about to be asked."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager

from formatspan.backends.base import Backend, Waiting
from formatspan.backends.table import open_backend
from formatspan.checks.doctor import Finding, Mark, Patient, examine, glance
from formatspan.errors import BackendError
from formatspan.loops import run_to_end
from formatspan.spending.pricing import FREE_SCHEMES
from formatspan.spending.purse import Purse
from formatspan.study import ModelEntry, Study

TELL_S = 10.0
"""Seconds between lines on what models wait for."""


def diagnose(
    study: Study, *, whole: bool = True, say: Callable[[str], None] = lambda _: None
) -> list[Finding]:
    """Look at every model of a study, with a few tiny requests each.

    Args:
        study: Whose models.
        whole: The study is meant to be run as it stands; else only its models matter.
        say: Told what is waited for.
    """
    return run_to_end(_diagnose(study, whole, say))


async def _diagnose(study: Study, whole: bool, say: Callable[[str], None]) -> list[Finding]:
    judged = study if whole else None
    found = await asyncio.gather(*(_one(entry, judged, say) for entry in study.models))
    return [finding for findings in found for finding in findings]


async def _one(entry: ModelEntry, study: Study | None, say: Callable[[str], None]) -> list[Finding]:
    try:
        backend = open_backend(entry.spec())
    except BackendError as error:
        said = str(error).removeprefix(f"model {entry.name!r}: ")
        return [Finding(entry.name, "usable", Mark.STOP, said)]
    try:
        if entry.spec().scheme in FREE_SCHEMES:
            return [Finding(entry.name, "usable", Mark.GOOD, "it runs on this machine")]
        async with _telling({entry.name: backend}, say):
            return await examine(Patient(entry, backend, study), await _listed(entry))
    finally:
        await backend.aclose()


async def _listed(entry: ModelEntry) -> Mapping[str, object] | str | None:
    """The endpoint's models, why there is no list, or None where nobody keeps one."""
    from formatspan.backends.model_list import NoList, listed_models
    from formatspan.backends.raw import raw_endpoint

    endpoint = raw_endpoint(entry.spec(), timeout_s=20)
    if endpoint is None:
        return None
    try:
        return await listed_models(endpoint)
    except NoList as error:
        return str(error)
    finally:
        await endpoint.aclose()


async def glances(
    study: Study, backends: Mapping[str, Backend], say: Callable[[str], None], purse: Purse
) -> dict[str, str]:
    """Look briefly at the models that are about to be asked.

    Args:
        study: The study that is about to run.
        backends: Those with something to ask, by label.
        say: Told of everything that is not as it should be.
        purse: Pays.

    Returns:
        Why a model cannot be asked, by label.
    """
    entries = [e for e in study.models if e.name in backends]
    patients = [
        Patient(e, backends[e.name], study) for e in entries if e.spec().scheme not in FREE_SCHEMES
    ]
    async with _telling({p.label: p.backend for p in patients}, say):
        found = await asyncio.gather(*(glance(p, purse) for p in patients))
    findings = [finding for part in found for finding in part]
    for finding in findings:
        if finding.mark is not Mark.GOOD:
            say(line(finding))
    return {f.model: f"{f.about}: {f.found}" for f in findings if f.mark is Mark.STOP}


@asynccontextmanager
async def _telling(
    backends: Mapping[str, Backend], say: Callable[[str], None]
) -> AsyncIterator[None]:
    """Say now and then what models wait for, while a look at them lasts."""

    async def tell() -> None:
        while True:
            await asyncio.sleep(TELL_S)
            for name, backend in backends.items():
                why = backend.waiting() if isinstance(backend, Waiting) else None
                if why:
                    say(f"{name}: no reply yet: {why}")

    telling = asyncio.create_task(tell())
    try:
        yield
    finally:
        telling.cancel()


def line(finding: Finding) -> str:
    """A finding on one line."""
    return f"{finding.model}: {finding.about}: {' '.join(finding.found.split())}"


def of_addresses(
    addresses: Sequence[str], base_url: str | None = None, key_env: str | None = None
) -> Study:
    """A study that holds just these models, for a look at them.

    Raises:
        StudyError: An address is malformed.
    """
    shared = {"base_url": base_url, "api_key_env": key_env}
    given = {key: value for key, value in shared.items() if value is not None}
    models = [{"model": address, **given} for address in addresses]
    return Study.build({"models": models, "tasks": ["demo_number"]}, "doctor")

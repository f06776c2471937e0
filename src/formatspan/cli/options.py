"""The options that commands share, and what their texts mean."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from formatspan.errors import StudyError
from formatspan.quoting import bare, split

if TYPE_CHECKING:
    from formatspan.study import Study

_ADDRESS = re.compile(r"\s*(?:[A-Za-z][A-Za-z0-9_.-]*:|openrouter/|local/|openai/)")
"""How a model's address begins."""


def count(option: str, text: str) -> int:
    """A count given as text; one line for anything else."""
    return whole(option)(text)


def real(option: str, least: float = -math.inf) -> Callable[[object], float]:
    """What reads a number given as text, ``least`` or more; one line for anything else."""

    def read(text: object) -> float:
        try:
            value = float(str(text))
        except ValueError:
            value = math.nan
        if not math.isfinite(value) or value < least:
            bound = "" if least == -math.inf else f" from {least:g} on"
            raise StudyError(f"{option}: expected a number{bound}, got {str(text)!r}")
        return value

    return read


def whole(option: str, least: int = 0) -> Callable[[object], int]:
    """What reads a whole number given as text, ``least`` or more; one line for anything else."""

    def read(text: object) -> int:
        shown = str(text)
        digits = shown.isascii() and shown.isdigit() and len(shown) <= 18
        if not digits or int(shown) < least:
            raise StudyError(f"{option}: expected a whole number from {least} on, got {shown!r}")
        return int(shown)

    return read


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
BaseUrl = Annotated[
    str | None, typer.Option(help="Endpoint of the models of --models: vLLM, llama.cpp, Ollama, …")
]
ApiKeyEnv = Annotated[
    str | None, typer.Option(help="Variable that holds that endpoint's key; none is sent without.")
]
Tasks = Annotated[list[str] | None, typer.Option(help="Tasks or data files; likewise.")]
Wrappers = Annotated[list[str] | None, typer.Option(help="Wrapper families; likewise.")]
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
MaxCost = Annotated[
    float | None,
    typer.Option(
        parser=real("--max-cost"),
        metavar="USD",
        help="US dollars that the run may cost in all; it stops before it could exceed them.",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for machines.")]


def study_of(
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


def at_endpoint(given: dict[str, Any], **keys: str | None) -> dict[str, Any]:
    """``given`` with the endpoint's keys in each of its models."""
    stated = {key: value for key, value in keys.items() if value is not None}
    if not stated:
        return given
    if "models" not in given:
        raise StudyError("--base-url and --api-key-env say where --models are: state these too")
    return {**given, "models": [{"model": name, **stated} for name in given["models"]]}


def lists(**options: list[str] | None) -> dict[str, Any]:
    """Repeated or comma-separated options as lists, without those not given."""
    split = {key: parts(values) for key, values in options.items() if values}
    for key, named in split.items():
        if not named:
            raise StudyError(f"--{key}: names nothing")
    return dict(split)


def parts(values: Iterable[str]) -> list[str]:
    """The parts between commas; those inside a ``scripted:`` address belong to it."""
    found: list[str] = []
    for value in values:
        open_script = False
        for part in value.split(","):
            if open_script and not _ADDRESS.match(part):
                found[-1] += f",{part}"
            elif part.strip():
                found.append(part.strip())
                open_script = part.strip().lower().startswith("scripted")
    return found


def values(**options: str | None) -> dict[str, Any]:
    """Options as the values that they would be in a study file, without those not given."""
    from formatspan.study_file import read_value

    return {
        key: read_value(text, f"--{key.replace('_', '-')}")
        for key, text in options.items()
        if text is not None
    }


def model_pairs(texts: list[str]) -> dict[str, str]:
    """Which model of one run is compared with which of the other, from ``NAME=NAME``.

    A name that holds ``=`` itself stands in double quotes.
    """
    pairs: dict[str, str] = {}
    for text in texts:
        names = [bare(part) for part in split(text, "=", "--pair")]
        if len(names) != 2 or not all(names):
            raise StudyError(
                f"--pair {text!r}: expected a model of A, '=', a model of B; a name with '=' in "
                "it stands in double quotes"
            )
        pairs[names[0]] = names[1]
    return pairs

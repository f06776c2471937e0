"""A study: one declared experiment, validated and frozen. YAML and Python are the same.

Every mistake in a study file ends in one line that names the file, the key and what would be
right. Secrets have no place in a study: keys are named by environment variable.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    field_validator,
    model_validator,
)

from formatspan.backends.base import Dialect, ModelSpec
from formatspan.backends.table import canonical_address
from formatspan.errors import StudyError
from formatspan.records import Kind, Level, Message, Mode, Sampling
from formatspan.study_file import explain, read_yaml, write_yaml
from formatspan.wrappers import FAMILIES, Wrapper, check, family, from_data

SECRET_HEADER = re.compile(r"auth|key|token|secret|cookie", re.IGNORECASE)
"""Header names whose values must come from an environment variable."""

SECRET_KEY = re.compile(r"api_?key|authorization|password|secret", re.IGNORECASE)
"""Keys of ``extra_body`` that would put a secret into the store."""

DATA_SUFFIXES = (".jsonl", ".ndjson", ".csv", ".parquet")


class _Entry(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=False)


class Price(_Entry):
    """US dollars per million tokens."""

    prompt: float = Field(ge=0)
    completion: float = Field(ge=0)


class ModelEntry(_Entry):
    """A model of the study. All but key, price, labels and concurrency shape its replies."""

    model: str
    """Address: ``local:…``, ``openai:…``, ``openrouter/…`` or ``scripted:…``."""
    name: str = ""
    """Label in tables; by default the address without its scheme."""
    base_url: str | None = None
    api_key_env: str | None = None
    headers: dict[str, str] = {}
    """Extra HTTP headers; ``${VAR}`` is filled from the environment when sent."""
    extra_body: dict[str, Any] = {}
    system: str | None = None
    """System message put before the wrapper's messages."""
    max_tokens: int | None = Field(default=None, ge=1)
    revision: str | None = None
    price: Price | None = None
    family: str | None = None
    size_b: float | None = Field(default=None, gt=0)
    """Billions of parameters."""
    concurrency: int | None = Field(default=None, ge=1)
    constrain: Dialect | None = None
    """How the endpoint wants constraints to be written; by default what its host is known for."""

    @field_validator("model")
    @classmethod
    def _canonical(cls, value: str) -> str:
        return canonical_address(value)

    @field_validator("api_key_env")
    @classmethod
    def _is_a_name(cls, value: str | None) -> str | None:
        if value is not None and not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", value):
            raise ValueError("expected the name of an environment variable, not the key itself")
        return value

    @field_validator("base_url")
    @classmethod
    def _has_no_password(cls, value: str | None) -> str | None:
        if value is not None and not re.fullmatch(r"https?://[^\s@?#]+", value):
            raise ValueError("expected an http(s) URL without user, password or query")
        return value

    @field_validator("extra_body")
    @classmethod
    def _holds_no_secret(cls, value: dict[str, Any]) -> dict[str, Any]:
        for name in value:
            if SECRET_KEY.search(name):
                raise ValueError(f"{name}: name an environment variable in api_key_env instead")
        return value

    @field_validator("headers")
    @classmethod
    def _hold_no_secret(cls, value: dict[str, str]) -> dict[str, str]:
        for name, text in value.items():
            if SECRET_HEADER.search(name) and not re.search(r"\$\{\w+\}", text):
                raise ValueError(
                    f"{name}: put the secret into an environment variable and write ${{VARIABLE}}"
                )
        return value

    @model_validator(mode="before")
    @classmethod
    def _named(cls, data: object) -> object:
        if isinstance(data, Mapping) and data.get("model") and not data.get("name"):
            address = str(data["model"])
            target = canonical_address(address).partition(":")[2]
            is_file = target.lower().endswith(".gguf")
            return {**data, "name": Path(target).stem if is_file else target or address}
        return data

    def spec(self) -> ModelSpec:
        """What the backend's factory is given."""
        return ModelSpec(
            name=self.name,
            address=self.model,
            base_url=self.base_url,
            api_key_env=self.api_key_env,
            headers=self.headers,
            extra_body=self.extra_body,
            revision=self.revision,
            concurrency=self.concurrency,
            price=self.price.model_dump() if self.price else None,
            constrain=self.constrain,
        )


class TaskEntry(_Entry):
    """A task of the study: one of the table, or a user's file."""

    name: str = ""
    file: str | None = None
    kind: Kind | None = None
    instruction: str | None = None
    form: Literal["label", "text"] | None = None
    words: tuple[str, str] | None = None
    stratify: str | Literal[False] | None = None
    """Column over which samples are spread evenly; false for none."""
    columns: dict[str, str] | None = None
    """The file's own names for the columns ``question``, ``answer`` and so on."""
    answer_is: Literal["label", "text", "index"] | None = None
    """How the file writes the answers of a choice; None accepts labels and texts."""

    @model_validator(mode="before")
    @classmethod
    def _named(cls, data: object) -> object:
        if isinstance(data, Mapping) and data.get("file") and not data.get("name"):
            return {**data, "name": Path(str(data["file"])).stem}
        return data

    @model_validator(mode="after")
    def _file_keys_need_a_file(self) -> Self:
        if not self.name:
            raise ValueError("expected a task's name, or 'file'")
        if self.file is None and (self.kind or self.columns or self.answer_is):
            raise ValueError("'kind', 'columns' and 'answer_is' are for a task with 'file'")
        return self


class MessageEntry(_Entry):
    """One message template of a wrapper."""

    role: Literal["system", "user", "assistant"]
    content: str


class ContractEntry(_Entry):
    """The shape of the reply that a wrapper asks for."""

    shape: Literal["text", "json", "boxed"] = "text"
    before: str = ""
    after: str = ""
    preamble: bool = False
    key: str = "answer"


class WrapperEntry(_Entry):
    """A wrapper of the study, complete with its templates."""

    name: str
    messages: tuple[MessageEntry, ...]
    contract: ContractEntry

    @model_validator(mode="before")
    @classmethod
    def _template(cls, data: object) -> object:
        if isinstance(data, Mapping) and "template" in data and "messages" not in data:
            rest = {k: v for k, v in data.items() if k != "template"}
            return {**rest, "messages": [{"role": "user", "content": data["template"]}]}
        return data

    @classmethod
    def of(cls, wrapper: Wrapper) -> WrapperEntry:
        """The entry that spells out a built-in wrapper."""
        shape = {k: getattr(wrapper.contract, k) for k in ContractEntry.model_fields}
        messages = tuple(MessageEntry(role=m.role, content=m.content) for m in wrapper.messages)
        return cls(name=wrapper.name, messages=messages, contract=ContractEntry(**shape))

    def build(self) -> Wrapper:
        """The wrapper itself."""
        return from_data(self.model_dump())


class Budget(_Entry):
    """A length that prompts are padded to, stated as a number."""

    chars: int | None = Field(default=None, ge=1)
    tokens: int | None = Field(default=None, ge=1)

    @model_validator(mode="after")
    def _one_unit(self) -> Self:
        if (self.chars is None) == (self.tokens is None):
            raise ValueError("expected {chars: N} or {tokens: N}")
        return self


def _model(value: object) -> object:
    return {"model": value} if isinstance(value, str) else value


def _task(value: object) -> object:
    if not isinstance(value, str):
        return value
    return {"file": value} if value.lower().endswith(DATA_SUFFIXES) else {"name": value}


def _wrapper(value: object) -> object:
    if not isinstance(value, str):
        return value
    if value not in FAMILIES:
        raise ValueError(f"unknown wrapper {value!r}: expected {', '.join(FAMILIES)}, or a mapping")
    return WrapperEntry.of(family(value))


class Study(_Entry):
    """One declared experiment: models × tasks × wrappers × examples × seeds × decoding modes."""

    name: str = "study"
    models: tuple[Annotated[ModelEntry, BeforeValidator(_model)], ...] = Field(min_length=1)
    tasks: tuple[Annotated[TaskEntry, BeforeValidator(_task)], ...] = Field(min_length=1)
    wrappers: tuple[Annotated[WrapperEntry, BeforeValidator(_wrapper)], ...] = Field(
        default=FAMILIES, min_length=1, validate_default=True
    )
    examples: int = Field(default=200, ge=1)
    """Examples per task; a task with fewer rows gives all it has."""
    sample_seed: int = 0
    seeds: int = Field(default=1, ge=1)
    """Repeats of every prompt, with seed 0 … seeds - 1."""
    decoding: tuple[Mode, ...] = Field(default=("free",), min_length=1)
    max_tokens: int = Field(default=24, ge=1)
    temperature: float = Field(default=0.0, ge=0, le=5)
    top_p: float = Field(default=1.0, gt=0, le=1)
    stop: tuple[str, ...] = ()
    budget: Literal["none", "task", "example"] | Budget = "example"
    budget_unit: Literal["chars", "tokens"] = "chars"
    level: Level = "normalized"
    """Extraction level of the tables that a run prints."""
    matched_threshold: float = Field(default=0.05, ge=0)
    """Largest relative spread of prompt tokens over wrappers in the matched subset."""

    @model_validator(mode="after")
    def _names_are_unique(self) -> Self:
        for key in ("models", "tasks", "wrappers"):
            names = [entry.name for entry in getattr(self, key)]
            twice = sorted({n for n in names if names.count(n) > 1})
            if twice:
                raise ValueError(f"{key}: {twice[0]!r} appears twice: give each its own 'name'")
        for entry in self.wrappers:
            check(entry.build())
        return self

    @classmethod
    def build(cls, data: Mapping[str, Any], source: str = "study") -> Study:
        """A study from plain data.

        Raises:
            StudyError: Names the first key at fault and what would be right.
        """
        try:
            return cls.model_validate(dict(data))
        except ValidationError as error:
            raise StudyError(f"{source}: {explain(error, cls)}") from None

    @classmethod
    def from_file(cls, path: Path | str, overrides: Mapping[str, Any] | None = None) -> Study:
        """Read a study file; ``overrides`` replace its keys.

        Raises:
            StudyError: The file cannot be read, or a key is wrong.
        """
        path = Path(path)
        data = read_yaml(path)
        return cls.build({**_rooted(data, path.parent), **(overrides or {})}, str(path))

    @classmethod
    def preset(cls, name: str, overrides: Mapping[str, Any] | None = None) -> Study:
        """A study that ships with the package, see ``preset_names()``.

        Raises:
            StudyError: There is no such preset, or an override is wrong.
        """
        if name not in preset_names():
            raise StudyError(f"unknown preset {name!r}: expected {', '.join(preset_names())}")
        data = read_yaml(Path(__file__).parent / "presets" / f"{name}.yaml")
        return cls.build({**data, **(overrides or {})}, f"preset {name}")

    def sampling(self, model: ModelEntry) -> Sampling:
        """Decoding parameters of requests to ``model``."""
        tokens = model.max_tokens or self.max_tokens
        return Sampling(tokens, self.temperature, self.top_p, self.stop)

    def system(self, model: ModelEntry) -> tuple[Message, ...]:
        """Messages before the wrapper's own."""
        return (Message("system", model.system),) if model.system else ()

    def to_yaml(self) -> str:
        """The study as a complete file: every key, every template."""
        return write_yaml(self.model_dump(mode="json", exclude_none=True))


def preset_names() -> tuple[str, ...]:
    """Names of the presets, the demo first."""
    names = sorted(p.stem for p in (Path(__file__).parent / "presets").glob("*.yaml"))
    return tuple(sorted(names, key=lambda n: n != "demo"))


def _rooted(data: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """Data files named in a study file are relative to that file."""
    tasks = data.get("tasks")
    if not isinstance(tasks, list):
        return dict(data)
    return {**data, "tasks": [_rooted_task(task, folder) for task in tasks]}


def _rooted_task(task: object, folder: Path) -> object:
    entry = _task(task)
    if isinstance(entry, Mapping) and isinstance(entry.get("file"), str):
        return {**entry, "file": str((folder / Path(entry["file"]).expanduser()).resolve())}
    return task

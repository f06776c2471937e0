"""A study: one declared experiment, validated and frozen. YAML and Python are the same.

Every mistake in a study file ends in one line that names the file, the key and what would be
right. Secrets have no place in a study: keys are named by environment variable.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self

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
from formatspan.backends.base_url import mistake_in
from formatspan.backends.table import canonical_address
from formatspan.errors import BackendError, RunError, StudyError, WrapperError
from formatspan.mistakes import explain, got, half_pair, keys_of, near
from formatspan.records import Kind, Level, Message, Mode, Sampling
from formatspan.routing import KEY as PROVIDER
from formatspan.routing import Routing
from formatspan.study_file import read_yaml, write_yaml
from formatspan.study_values import (
    Body,
    Column,
    Count,
    Name,
    Number,
    Truth,
    Whole,
    Words,
    list_of,
    one_line,
)
from formatspan.tasks.readers import READERS
from formatspan.wrappers import FAMILIES, Wrapper, check, family, from_data

SECRET_HEADER = re.compile(r"auth|key|token|secret|cookie", re.IGNORECASE)
"""Header names whose values must come from an environment variable."""

MAX_LENGTH = 1_000_000
"""Characters or tokens: no prompt is padded, and no reply let grow, beyond this."""

BUDGET_FORMS = "none, task, example, {chars: N} or {tokens: N}"


class _Entry(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=False)


class Price(_Entry):
    """US dollars per million tokens."""

    prompt: Number = Field(ge=0)
    completion: Number = Field(ge=0)


class ModelEntry(_Entry):
    """A model of the study. All but key, price, labels and concurrency shape its replies."""

    model: Name
    """Address: ``local:…``, ``openai:…``, ``openrouter/…`` or ``scripted:…``."""
    name: Name
    """Label in tables; by default the address without its scheme."""
    base_url: str | None = None
    api_key_env: str | None = None
    headers: dict[str, str] = {}
    """Extra HTTP headers; ``${VAR}`` is filled from the environment when sent."""
    extra_body: Body = {}
    system: str | None = None
    """System message put before the wrapper's messages."""
    max_tokens: Count | None = Field(default=None, le=MAX_LENGTH)
    revision: Name | None = None
    price: Price | None = None
    family: Name | None = None
    size_b: Number | None = Field(default=None, gt=0)
    """Billions of parameters."""
    concurrency: Count | None = Field(default=None, le=10_000)
    provider: Routing | None = None
    """Whom a router, such as OpenRouter, may hand the requests to."""
    constrain: Dialect | None = None
    """How the endpoint wants constraints to be written; by default what its host is known for."""

    @field_validator("model")
    @classmethod
    def _canonical(cls, value: str) -> str:
        try:
            return canonical_address(value)
        except BackendError as error:
            raise ValueError(str(error)) from None

    @field_validator("api_key_env")
    @classmethod
    def _is_a_name(cls, value: str | None) -> str | None:
        if value is not None and not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", value):
            raise ValueError("expected the name of an environment variable, not the key itself")
        return value

    @field_validator("base_url")
    @classmethod
    def _leads_somewhere(cls, value: str | None) -> str | None:
        if value is not None and (mistake := mistake_in(value)) is not None:
            raise ValueError(mistake)
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
        if not isinstance(data, Mapping) or data.get("name") is not None:
            return data
        return {**data, "name": _label(data.get("model"))}

    @model_validator(mode="after")
    def _routes_once(self) -> Self:
        if self.provider is not None and PROVIDER in self.extra_body:
            raise ValueError("'provider' is given twice: leave it out of extra_body")
        if self.provider is not None and self.model.partition(":")[0] in ("local", "scripted"):
            raise ValueError("'provider' is for models behind a router, such as openrouter/…")
        return self

    @property
    def body(self) -> dict[str, Any]:
        """What the request's body holds besides the study's decoding keys."""
        routed = {PROVIDER: self.provider.sent()} if self.provider else {}
        return {**self.extra_body, **routed}

    def spec(self) -> ModelSpec:
        """What the backend's factory is given."""
        return ModelSpec(
            name=self.name,
            address=self.model,
            base_url=self.base_url,
            api_key_env=self.api_key_env,
            headers=self.headers,
            extra_body=self.body,
            revision=self.revision,
            concurrency=self.concurrency,
            price=self.price.model_dump() if self.price else None,
            constrain=self.constrain,
        )


class TaskEntry(_Entry):
    """A task of the study: one of the table, or a user's file."""

    name: Name
    file: str | None = None
    kind: Kind | None = None
    instruction: str | None = None
    form: Literal["label", "text"] | None = None
    words: Words | None = None
    stratify: Column = None
    """Column over which samples are spread evenly; false for none."""
    columns: dict[str, str] | None = None
    """The file's own names for the columns ``question``, ``answer`` and so on."""
    answer_is: Literal["label", "text", "index"] | None = None
    """How the file writes the answers of a choice; None accepts labels and texts."""

    @model_validator(mode="before")
    @classmethod
    def _named(cls, data: object) -> object:
        if not isinstance(data, Mapping) or data.get("name") is not None:
            return data
        if data.get("file") is None:
            raise ValueError("expected a task's name, or 'file'")
        return {**data, "name": Path(str(data["file"])).stem}

    @field_validator("file")
    @classmethod
    def _is_readable(cls, value: str | None) -> str | None:
        if value is not None and Path(one_line(value)).suffix.lower() not in READERS:
            known = ", ".join(sorted(READERS))
            raise ValueError(f"{value}: expected a data file ending in one of {known}")
        return value

    @model_validator(mode="after")
    def _file_keys_need_a_file(self) -> Self:
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
    preamble: Truth = False
    key: Name = "answer"


class WrapperEntry(_Entry):
    """A wrapper of the study, complete with its templates."""

    FURTHER_KEYS: ClassVar[tuple[str, ...]] = ("template",)
    """Keys that stand for one of the fields."""

    name: Name
    messages: Annotated[
        tuple[MessageEntry, ...], list_of("messages, each with a role and its content")
    ] = Field(min_length=1)
    contract: ContractEntry

    @model_validator(mode="before")
    @classmethod
    def _template(cls, data: object) -> object:
        if not isinstance(data, Mapping):
            return data
        if "template" in data and "messages" in data:
            raise ValueError("expected 'template' or 'messages', not both")
        known = keys_of(cls)
        if "template" not in data and "messages" not in data and all(k in known for k in data):
            raise ValueError("expected 'template', or 'messages' with roles and contents")
        if "template" in data:
            if not isinstance(data["template"], str):
                raise ValueError(f"template: expected text, got {got(data['template'])}")
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

    chars: int | None = None
    tokens: int | None = None


def _label(address: object) -> object:
    """The label of a model that is given none."""
    if not isinstance(address, str) or not address.strip():
        return "model"  # the address itself is refused
    target = address.strip()
    with suppress(BackendError):  # an unknown scheme is refused at the address
        target = canonical_address(address).partition(":")[2]
    return Path(target).stem if target.lower().endswith(".gguf") else target or address


def _model(value: object) -> object:
    return {"model": value} if isinstance(value, str) else _entry(value, "a model's address")


def _task(value: object) -> object:
    if not isinstance(value, str):
        return _entry(value, "a task's name, a data file")
    looks_like_a_file = "/" in value or re.search(r"\.[A-Za-z0-9]{1,8}$", value)
    return {"file": value} if looks_like_a_file else {"name": value}


def _wrapper(value: object) -> object:
    if not isinstance(value, str):
        return _entry(value, "a wrapper's name")
    if value not in FAMILIES:
        known = ", ".join(FAMILIES)
        meant = near(value, FAMILIES)
        raise ValueError(f"unknown wrapper {value!r}: expected {known}, or a mapping{meant}")
    return WrapperEntry.of(family(value))


def _entry(value: object, or_else: str) -> object:
    if isinstance(value, Mapping | BaseModel):
        return value
    raise ValueError(f"expected {or_else} or a mapping, got {got(value)}")


def _budget(value: object) -> object:
    if isinstance(value, Budget) or value in ("none", "task", "example"):
        return value
    if isinstance(value, Mapping):
        value = {k: v for k, v in value.items() if v is not None}  # as a stored one is spelled
        length = next(iter(value.values()), None)
        whole = isinstance(length, int) and not isinstance(length, bool)
        if len(value) == 1 and value.keys() <= {"chars", "tokens"} and whole:
            if 1 <= length <= MAX_LENGTH:  # type: ignore[operator]
                return value
            raise ValueError(f"expected a length from 1 to {MAX_LENGTH:,}, got {got(value)}")
    raise ValueError(f"expected {BUDGET_FORMS}, got {got(value)}")


class Study(_Entry):
    """One declared experiment: models × tasks × wrappers × examples × seeds × decoding modes."""

    name: Name = "study"
    """Names the run's folder; in a study file the file's own name by default."""
    models: Annotated[
        tuple[Annotated[ModelEntry, BeforeValidator(_model)], ...],
        list_of("model addresses or mappings"),
    ] = Field(min_length=1)
    tasks: Annotated[
        tuple[Annotated[TaskEntry, BeforeValidator(_task)], ...],
        list_of("task names, data files or mappings"),
    ] = Field(min_length=1)
    wrappers: Annotated[
        tuple[Annotated[WrapperEntry, BeforeValidator(_wrapper)], ...],
        list_of("wrapper names or mappings"),
    ] = Field(default=FAMILIES, min_length=1, validate_default=True)
    examples: Count = 200
    """Examples per task; a task with fewer rows gives all it has."""
    sample_seed: Whole = 0
    seeds: Count = 1
    """Repeats of every prompt, with seed 0 … seeds - 1."""
    decoding: Annotated[tuple[Mode, ...], list_of("free and constrained")] = Field(
        default=("free",), min_length=1
    )
    max_tokens: Count = Field(default=24, le=MAX_LENGTH)
    temperature: Number = Field(default=0.0, ge=0, le=5)
    top_p: Number = Field(default=1.0, gt=0, le=1)
    stop: Annotated[tuple[str, ...], list_of("texts")] = ()
    budget: Annotated[Literal["none", "task", "example"] | Budget, BeforeValidator(_budget)] = (
        "example"
    )
    budget_unit: Literal["chars", "tokens"] = "chars"
    level: Level = "normalized"
    """Extraction level of the tables that a run prints."""
    matched_threshold: Number = Field(default=0.05, ge=0)
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
        if not isinstance(data, Mapping):
            raise StudyError(f"{source}: expected a mapping of study keys, got {got(data)}")
        try:
            study = cls.model_validate(dict(data))
        except ValidationError as error:
            raise StudyError(f"{source}: {explain(error, cls)}") from None
        except WrapperError as error:
            raise WrapperError(f"{source}: {error}") from None
        if (mistake := half_pair(data)) is not None:
            raise StudyError(f"{source}: {mistake}")
        return study

    @classmethod
    def stored(cls, text: str | None, run: Path) -> Study:
        """The study that a run's store keeps as JSON.

        Raises:
            RunError: There is none, or not one that this version reads.
        """
        if text is None:
            raise RunError(f"{run}: the run was never planned: run its study first")
        try:
            return cls.model_validate_json(text)
        except ValidationError as error:
            raise RunError(
                f"{run}: the run's study cannot be read ({explain(error, cls)}): the store is "
                "damaged or was made by another version of formatspan"
            ) from None

    @classmethod
    def from_file(cls, path: Path | str, overrides: Mapping[str, Any] | None = None) -> Study:
        """Read a study file; ``overrides`` replace its keys. Its own name is the file's by default.

        Raises:
            StudyError: The file cannot be read, or a key is wrong.
        """
        if not isinstance(path, Path | str):
            raise StudyError(f"expected the path of a study file, got {got(path)}")
        path = Path(path)
        data = read_yaml(path)
        given = {**_file_name(path), **_rooted(data, path), **(overrides or {})}
        return cls.build(given, str(path))

    @classmethod
    def preset(cls, name: str, overrides: Mapping[str, Any] | None = None) -> Study:
        """A study that ships with the package, see ``preset_names()``.

        Raises:
            StudyError: There is no such preset, or an override is wrong.
        """
        if name not in preset_names():
            known, meant = ", ".join(preset_names()), near(str(name), preset_names())
            raise StudyError(f"unknown preset {name!r}: expected {known}{meant}")
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


def _file_name(path: Path) -> dict[str, str]:
    """The name of a study whose file states none; none if the file's cannot be one."""
    with suppress(ValueError):
        return {"name": one_line(path.stem)}
    return {}


def _rooted(data: Mapping[str, Any], source: Path) -> dict[str, Any]:
    """Data files named in a study file are relative to that file."""
    tasks = data.get("tasks")
    if not isinstance(tasks, list):
        return dict(data)
    return {**data, "tasks": [_rooted_task(task, source) for task in tasks]}


def _rooted_task(task: object, source: Path) -> object:
    entry = _task(task) if isinstance(task, str | Mapping) else task
    if not isinstance(entry, Mapping) or not isinstance(entry.get("file"), str):
        return task
    if half_pair(entry["file"]) is not None:
        return task  # refused with the rest
    try:
        path = (source.parent / Path(entry["file"]).expanduser()).resolve()
    except (OSError, ValueError, RuntimeError) as error:  # a loop of links, an unknown ~user
        raise StudyError(f"{source}: tasks: {entry['file']!r}: {error}") from None
    return {**entry, "file": str(path)}

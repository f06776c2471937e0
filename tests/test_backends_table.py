from __future__ import annotations

import sys
from importlib.metadata import EntryPoint

import pytest

from formatspan.backends import table
from formatspan.backends.base import Backend, ModelSpec
from formatspan.backends.scripted import Scripted
from formatspan.backends.table import BACKENDS, canonical_address, open_backend, schemes
from formatspan.errors import BackendError


def make_plugin(spec: ModelSpec) -> Backend:
    return Scripted(lambda _: spec.target)


def make_nothing(spec: ModelSpec) -> object:
    return object()


def needs_absent(spec: ModelSpec) -> Backend:
    raise ModuleNotFoundError("No module named 'absent'", name="absent")


def spec(address: str) -> ModelSpec:
    return ModelSpec(name="m", address=address)


def plug_in(monkeypatch: pytest.MonkeyPatch, **points: str) -> None:
    group = table.ENTRY_POINTS
    found = tuple(EntryPoint(name, value, group) for name, value in points.items())
    monkeypatch.setattr(table, "entry_points", lambda group: found)


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("openrouter/microsoft/phi-4", "openrouter:microsoft/phi-4"),
        ("openrouter:microsoft/phi-4", "openrouter:microsoft/phi-4"),
        ("openrouter/deepseek/deepseek-r1:free", "openrouter:deepseek/deepseek-r1:free"),
        ("openai:gpt-4o-mini", "openai:gpt-4o-mini"),
        ("openai/gpt-4o-mini", "openai:gpt-4o-mini"),
        (" OpenAI: gpt-4o-mini ", "openai:gpt-4o-mini"),
        ("local:smollm2-135m-instruct", "local:smollm2-135m-instruct"),
        ("local:/path/x.gguf", "local:/path/x.gguf"),
        ("local//path/x.gguf", "local:/path/x.gguf"),
        ("scripted:accuracy=0.5,comply.json=0.1", "scripted:accuracy=0.5,comply.json=0.1"),
        ("scripted", "scripted:"),
    ],
)
def test_spellings_of_an_address(text: str, address: str) -> None:
    assert canonical_address(text) == address
    assert canonical_address(address) == address


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("openia:gpt-4o", "did you mean 'openai:gpt-4o'?"),
        ("open-router/microsoft/phi-4", "did you mean 'openrouter:microsoft/phi-4'?"),
        ("microsoft/phi-4", "local, openai, openrouter, scripted"),
        ("/models/x.gguf", "'local:/models/x.gguf'"),
        ("", "expected scheme:model"),
        ("a\nb", "expected scheme:model"),
    ],
)
def test_unknown_scheme_is_one_line_with_the_known_ones(text: str, hint: str) -> None:
    with pytest.raises(BackendError) as caught:
        canonical_address(text)
    assert hint in str(caught.value)
    assert "\n" not in str(caught.value)


def test_opening_an_unknown_scheme() -> None:
    with pytest.raises(BackendError, match="local, openai, openrouter, scripted"):
        open_backend(spec("azure:gpt"))


def test_scripted_opens() -> None:
    backend = open_backend(spec("scripted:accuracy=0.5"))
    assert isinstance(backend, Backend)
    assert backend.capabilities.coached


def test_http_backend_is_imported_only_when_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "formatspan.backends.openai_chat", raising=False)
    open_backend(spec("scripted:"))
    assert "formatspan.backends.openai_chat" not in sys.modules


def test_plugin_adds_a_scheme(monkeypatch: pytest.MonkeyPatch) -> None:
    plug_in(monkeypatch, mine=f"{__name__}:make_plugin")
    assert schemes() == (*BACKENDS, "mine")
    assert canonical_address("mine/x") == "mine:x"
    assert isinstance(open_backend(spec("mine:x")), Scripted)


def test_plugin_cannot_take_over_a_built_in_scheme(monkeypatch: pytest.MonkeyPatch) -> None:
    plug_in(monkeypatch, scripted=f"{__name__}:make_nothing")
    assert schemes() == tuple(BACKENDS)
    assert open_backend(spec("scripted:")).capabilities.coached


def test_two_plugins_of_one_scheme_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    points = tuple(
        EntryPoint("mine", f"{__name__}:{name}", table.ENTRY_POINTS)
        for name in ("make_plugin", "make_nothing")
    )
    monkeypatch.setattr(table, "entry_points", lambda group: points)
    with pytest.raises(BackendError, match="several packages offer 'mine'"):
        open_backend(spec("mine:x"))


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("make_nothing", "made a object, which is no Backend"),
        ("no_such_name", "is broken"),
        ("BACKENDS", "is not a factory"),
        ("needs_absent", "need the module 'absent', which is not installed"),
    ],
)
def test_broken_plugin(monkeypatch: pytest.MonkeyPatch, value: str, message: str) -> None:
    plug_in(monkeypatch, mine=f"{__name__}:{value}")
    with pytest.raises(BackendError, match=message):
        open_backend(spec("mine:x"))


def test_missing_extra_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(BACKENDS, "local", f"{__name__}:needs_absent")
    with pytest.raises(BackendError, match=r"'absent'.*pip install 'formatspan\[local\]'"):
        open_backend(spec("local:x"))


def test_library_that_cannot_be_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_: ModelSpec) -> Backend:
        raise ImportError("libx.so: wrong ELF class")

    monkeypatch.setattr(table, "_factory", lambda _: broken)
    with pytest.raises(BackendError, match=r"wrong ELF class.*formatspan\[local\]"):
        open_backend(spec("local:x"))

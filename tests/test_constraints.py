"""What holds a decoder to a contract, in every form and every server's own words."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from formatspan.backends.base import Dialect, ModelSpec
from formatspan.backends.chat_constraint import (
    DIALECTS,
    constraint_fields,
    constraint_types,
    dialect_of,
)
from formatspan.backends.chat_request import chat_body
from formatspan.constraints import forms, grammar, held_by, preamble_room
from formatspan.contracts import AnswerSpace, Contract, answers, reply
from formatspan.errors import BackendError, RunError, StudyError
from formatspan.grid import OpenModel, request_for
from formatspan.growth import merge
from formatspan.planning import open_models
from formatspan.records import Constraint, Message, Mode, Prompt, Request, Sampling
from formatspan.study import ModelEntry, Study

CONTRACTS = {
    "plain": Contract("plain"),
    "json": Contract("json", shape="json"),
    "structured": Contract("structured", before="answer: "),
    "delim": Contract("delim", before="<answer>", after="</answer>"),
    "deliberate": Contract("deliberate", before="Answer: ", preamble=True),
}
SPACES = {
    "choice": AnswerSpace.of_options("choice", ("Mars", 'the "red" \\ one', "a\nb")),
    "boolean": AnswerSpace("boolean"),
    "number": AnswerSpace("number"),
}


def types(contract: str, kind: str) -> list[str]:
    return [c.type for c in forms(CONTRACTS[contract], SPACES[kind])]


@pytest.mark.parametrize("kind", SPACES)
def test_every_contract_yields_the_forms_that_can_say_it(kind: str) -> None:
    listed = kind != "number"
    for name in CONTRACTS:
        found = types(name, kind)
        assert found[0] == "regex", "the tightest first"
        assert ("choice" in found) == (listed and name != "deliberate")
        assert ("json_schema" in found) == (name == "json")
        assert "grammar" in found


def test_a_decoder_gets_the_first_form_that_it_takes() -> None:
    json_, plain = CONTRACTS["json"], CONTRACTS["plain"]
    space = SPACES["choice"]

    def held(contract: Contract, *supported: str) -> str | None:
        found = held_by(contract, space, supported)
        return None if found is None else found.type

    assert held(json_, "json_schema", "regex", "grammar") == "regex"
    assert held(json_, "json_schema", "grammar") == "grammar"
    assert held(json_, "json_schema") == "json_schema"
    assert held(plain, "json_schema") is None
    assert held(plain, "choice") == "choice"


def test_the_schema_names_the_answer_vocabulary() -> None:
    def value(space: AnswerSpace, contract: Contract) -> Any:  # noqa: ANN401 - a schema
        schema = json.loads(list(forms(contract, space))[-1].value)
        assert schema["required"] == ["answer"]
        assert schema["additionalProperties"] is False
        return schema["properties"]["answer"]

    json_ = CONTRACTS["json"]
    assert value(SPACES["choice"], json_) == {"type": "string", "enum": ["A", "B", "C"]}
    assert value(SPACES["number"], json_) == {"type": "number"}
    assert value(SPACES["boolean"], json_) == {"type": "boolean"}
    words = Contract("json", shape="json", words=("on", "off"))
    assert value(SPACES["boolean"], words) == {"type": "string", "enum": ["on", "off"]}
    texts = Contract("json", shape="json", form="text")
    same = AnswerSpace.of_options("choice", ("Mars", "Mars", "Venus"))
    assert value(same, texts)["enum"] == ["Mars", "Venus"], "an enumeration names each value once"


def test_choices_are_the_strict_replies() -> None:
    found = held_by(CONTRACTS["structured"], SPACES["boolean"], {"choice"})
    assert found is not None
    assert json.loads(found.value) == ["answer: yes", "answer: no"]


@pytest.mark.parametrize("room", [None, 0, 5])
@pytest.mark.parametrize("kind", SPACES)
@pytest.mark.parametrize("name", CONTRACTS)
def test_the_grammar_says_what_the_regular_expression_says(
    name: str, kind: str, room: int | None
) -> None:
    contract, space = CONTRACTS[name], SPACES[kind]
    pattern = _as_pattern(grammar(contract, space, room))
    regex = next(forms(contract, space, room)).value
    tried = [reply(contract, space, value) for value in answers(space)]
    tried += ["Short\n" + tried[0], "Longer\n" + tried[0]]
    tried += ["", "A\n", "Think.\nMore.\n" + tried[0], "x\n" * 9 + tried[0], tried[0] + " ", "007"]
    for text in tried:
        assert bool(re.fullmatch(pattern, text)) == bool(re.fullmatch(regex, text)), text


def test_a_preamble_leaves_room_for_the_answer_at_a_small_cap() -> None:
    assert preamble_room(24) == 24
    assert preamble_room(8) == 0
    assert preamble_room(512) is None
    found = held_by(CONTRACTS["deliberate"], SPACES["boolean"], {"regex"}, preamble_room(24))
    assert found is not None
    assert re.fullmatch(found.value, "Ice is cold.\nAnswer: yes")
    assert not re.fullmatch(found.value, "Ice is colder than most.\nMore.\nAnswer: yes")


def _as_pattern(text: str) -> str:
    """A grammar without recursion as a pattern: rules put in place of their names."""
    rules = dict(line.split(" ::= ", 1) for line in text.split("\n"))
    tokens = re.compile(r'"(?:[^"\\]|\\.)*"|\[(?:[^\]\\]|\\.)*\]|\{[^}]*\}|\w+|[()|?+*]')

    def pattern(rule: str) -> str:
        return "(?:" + "".join(map(part, tokens.findall(rules[rule]))) + ")"

    def part(token: str) -> str:
        if token.startswith('"'):
            return re.escape(str(json.loads(token)))
        if token[0] in "[{()|?+*":
            return token
        return pattern(token)

    return pattern("root")


SCHEMA = Constraint("json_schema", '{"type":"object"}')
REGEX = Constraint("regex", "(?:A|B)")
CHOICE = Constraint("choice", '["A", "B"]')
GRAMMAR = Constraint("grammar", 'root ::= "A"')


@pytest.mark.parametrize(
    ("dialect", "held", "fields"),
    [
        (
            "response_format",
            SCHEMA,
            {
                "response_format": {
                    "type": "json_schema",
                    "json_schema": {
                        "name": "answer",
                        "strict": True,
                        "schema": {"type": "object"},
                    },
                }
            },
        ),
        ("vllm", REGEX, {"structured_outputs": {"regex": "(?:A|B)"}}),
        ("vllm", CHOICE, {"structured_outputs": {"choice": ["A", "B"]}}),
        ("vllm", SCHEMA, {"structured_outputs": {"json": {"type": "object"}}}),
        ("vllm_guided", REGEX, {"guided_regex": "(?:A|B)"}),
        ("vllm_guided", CHOICE, {"guided_choice": ["A", "B"]}),
        ("llama_cpp", GRAMMAR, {"grammar": 'root ::= "A"'}),
        ("llama_cpp", SCHEMA, {"json_schema": {"type": "object"}}),
        ("sglang", REGEX, {"regex": "(?:A|B)"}),
        ("sglang", GRAMMAR, {"ebnf": 'root ::= "A"'}),
    ],
)
def test_servers_are_told_in_their_own_words(
    dialect: Dialect, held: Constraint, fields: dict[str, Any]
) -> None:
    assert held.type in constraint_types(dialect)
    assert constraint_fields(held, dialect) == fields


def test_the_dialect_follows_from_the_host_unless_it_is_stated() -> None:
    def found(address: str, **keys: Any) -> str | None:  # noqa: ANN401 - keys vary
        return dialect_of(ModelSpec("m", address, **keys))

    assert found("openai:gpt") == found("openrouter:x/y") == "response_format"
    assert found("openai:m", base_url="https://api.openai.com/v1") == "response_format"
    assert found("openai:m", base_url="http://localhost:8000/v1") is None
    assert found("openai:m", base_url="http://localhost:8000/v1", constrain="vllm") == "vllm"
    assert constraint_types(None) == frozenset()
    assert all(constraint_types(name) for name in DIALECTS)


def test_the_body_holds_the_constraint_and_the_same_messages() -> None:
    spec = ModelSpec("m", "openai:m", base_url="http://h/v1", constrain="vllm")
    free = Request("r", "openai:m", "", (Message("user", "Q"),), Sampling(), 0)
    held = Request(
        "r", "openai:m", "", (Message("user", "Q"),), Sampling(), 0, "constrained", REGEX
    )
    body = chat_body(spec, held)
    assert body.pop("structured_outputs") == {"regex": "(?:A|B)"}
    assert body == chat_body(spec, free)


def test_how_a_server_is_told_may_be_stated_later_but_not_changed() -> None:
    def study(**keys: Any) -> Study:  # noqa: ANN401 - keys vary
        return Study.build({"models": [{"model": "openai:m", **keys}], "tasks": ["boolq"]})

    silent, stated = study(), study(constrain="vllm")
    assert merge(silent, stated).models[0].constrain == "vllm"
    with pytest.raises(RunError, match=r"models\[m\].constrain"):
        merge(stated, study(constrain="sglang"))


def test_constrained_requests_differ_by_how_the_server_is_told() -> None:
    def ids(mode: Mode, **keys: Any) -> str:  # noqa: ANN401 - keys vary
        entry = ModelEntry(model="openai:m", **keys)
        types = constraint_types(entry.constrain) or constraint_types("vllm")
        model = OpenModel(entry, "endpoint", None, "", False, types)
        study = Study(models=(entry,), tasks=({"name": "boolq"},))  # type: ignore[arg-type]
        prompt = Prompt("boolq", "1", "plain", (Message("user", "Q"),), 1, 0)
        asked = CONTRACTS["plain"], SPACES["boolean"]
        return request_for(study, model, prompt, asked, mode, 0).id

    assert ids("free") == ids("free", constrain="vllm")
    assert ids("constrained") != ids("constrained", constrain="vllm")


def test_a_model_that_cannot_be_constrained_is_named_beforehand() -> None:
    model = {"model": "openai:m", "base_url": "http://localhost:9/v1"}
    study = Study.build({"models": [model], "tasks": ["boolq"], "decoding": ["constrained"]})
    with pytest.raises(BackendError, match=r"model 'm' cannot be constrained.*'constrain'"):
        open_models(study)
    with pytest.raises(StudyError, match="constrain"):
        Study.build({"models": [{**model, "constrain": "outlines"}], "tasks": ["boolq"]})

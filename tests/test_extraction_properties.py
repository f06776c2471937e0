"""What holds for every reply: total, nested, placed, linear."""

from __future__ import annotations

import math
from time import process_time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from formatspan.contracts import CONTRACTS, AnswerSpace, Contract, answers, reply
from formatspan.extraction import extract_with
from formatspan.records import LEVELS, Extraction, Level, Status

CONTRACT_LIST = [
    *CONTRACTS.values(),
    Contract("fields", before="answer: "),
    Contract("tags", before="<answer>", after="</answer>"),
    Contract("scratchpad", before="Answer: ", preamble=True),
    Contract("texts", form="text"),
    Contract("text_json", shape="json", form="text"),
    Contract("yes_no", shape="json", words=("yes", "no")),
]
SPACES = [
    AnswerSpace.of_options("choice", ("Oslo", "Lima", "New Lima", "42")),
    AnswerSpace("choice", ("A", "B", "C", "D")),
    AnswerSpace.of_options("choice", tuple(f"option {i}" for i in range(30))),
    AnswerSpace("choice", ("1", "2", "3"), ("2", "3", "true")),
    AnswerSpace("boolean"),
    AnswerSpace("number"),
]
_FRAGMENTS = (
    "A¦B¦C¦D¦I¦a¦b¦c¦(B)¦**C**¦B)¦C.¦1¦2¦11¦Oslo¦Lima¦New Lima¦yes¦No¦true¦False¦not ¦is ¦or ¦and "
    "¦ANSWER: ¦Answer: ¦answer: ¦answer is ¦The answer is ¦the correct option is ¦I choose ¦so ¦It "
    '¦#### ¦\\boxed{¦}¦{¦{"answer": ¦"answer"¦"B"¦"42"¦true}¦: ¦, ¦[¦]¦"¦“¦”¦```¦```json\n¦<answer>'
    "¦</answer>¦<think>¦</think>¦<|im_end|>¦</s>¦12¦-3¦1,250¦2.5e3¦3/4¦6x7¦$¦%¦−¦ ¦\n¦\n\n¦.¦?¦!¦0"
    "¦Question: other?\n¦wrong¦correct¦答案¦：¦是¦选¦いいえ¦\u200b¦\ufeff¦\u00a0¦³¦½¦Ｂ¦\ud800¦\x00"
    "¦ to ¦between ¦minus ¦ hours ¦m²¦don't think ¦cannot be ¦ it is¦option ¦maybe ¦\\fbox{¦_B_"
    "¦\\text{¦\\frac{3}{4}¦because ¦I'm sorry, but I can't help with that.¦<s>¦|"
)
FRAGMENTS = _FRAGMENTS.split("¦")
TEXTS = st.one_of(
    st.lists(st.sampled_from(FRAGMENTS), max_size=9).map("".join),
    st.text(max_size=40),
    st.text(st.characters(), max_size=12),
)
FINISH = st.sampled_from(["stop", "length", None])


def run(
    contract: Contract, space: AnswerSpace, text: str, finish: str | None, level: Level
) -> Extraction:
    return extract_with(contract, space, text, finish, level, None)


@st.composite
def readings(draw: st.DrawFn) -> tuple[Contract, AnswerSpace, str, str | None]:
    contract = draw(st.sampled_from(CONTRACT_LIST))
    space = draw(st.sampled_from(SPACES))
    text = draw(TEXTS)
    if draw(st.booleans()):
        value = draw(st.sampled_from(answers(space)))
        if contract.form == "text" and space.kind == "choice" and not space.options:
            contract = CONTRACTS["letter_only"]
        inner = reply(contract, space, value)
        text = draw(st.sampled_from(["", text])) + inner + draw(st.sampled_from(["", "\n", text]))
    return contract, space, text, draw(FINISH)


@settings(max_examples=1500, deadline=None)
@given(readings())
def test_each_level_accepts_what_the_one_before_accepts(
    reading: tuple[Contract, AnswerSpace, str, str | None],
) -> None:
    strict, normalized, lenient = (run(*reading, level) for level in LEVELS)
    for narrow, wide in ((strict, normalized), (normalized, lenient)):
        if narrow.status is Status.OK:
            assert (wide.status, wide.value, wide.span) == (Status.OK, narrow.value, narrow.span)
    assert normalized.status is not Status.OFF_FORMAT
    assert lenient.status is not Status.OFF_FORMAT


@settings(max_examples=1500, deadline=None)
@given(readings(), st.sampled_from([*LEVELS, "paper"]))
def test_an_answer_is_one_of_the_space_and_has_its_place(
    reading: tuple[Contract, AnswerSpace, str, str | None], level: Level
) -> None:
    got = run(*reading, level)
    _, space, text, _ = reading
    assert (got.value is not None) == (got.status is Status.OK)
    if got.value is None:
        assert got.span is None
        return
    kinds = {"choice": str, "boolean": bool, "number": int | float}
    assert isinstance(got.value, kinds[space.kind])
    if space.kind == "choice":
        assert got.value in space.labels
    if isinstance(got.value, float):
        assert math.isfinite(got.value)
        assert got.value != int(got.value)
    assert got.span is not None
    assert 0 <= got.span[0] < got.span[1] <= len(text)


@pytest.mark.parametrize("contract", CONTRACT_LIST, ids=lambda c: c.name)
@pytest.mark.parametrize("space", SPACES, ids=lambda s: f"{s.kind}{len(s.labels)}")
def test_the_written_reply_is_strict(contract: Contract, space: AnswerSpace) -> None:
    if contract.form == "text" and space.kind == "choice" and not space.options:
        pytest.skip("no texts to write")
    for value in answers(space):
        text = reply(contract, space, value, "Some thought.\n" if contract.preamble else "")
        got = run(contract, space, text, "stop", "strict")
        assert (got.status, got.value) == (Status.OK, value), text


_UNITS = (
    '{¦[¦ANSWER: ¦7¦9 ¦ ¦`¦\\boxed{¦{"¦{"a":[¦{"answer": ¦{"answer": "¦(¦A ¦B) ¦\n¦<think>¦is ¦not '
    "¦true ¦Answer: A\n¦A or ¦1 000 ¦1,¦1+¦*¦A) x\n¦Oslo ¦e\u0301¦\u0301¦\ufeff¦Ａ¦The answer ¦=1 "
    '¦3/4 ¦{"answer": "B"} ¦{answer: "B"} ¦Q: a\n¦选¦答案¦yes or no ¦1 000¦<|¦[INST]¦“¦not the ¦'
    "does not ¦3 to ¦3, ¦5 h ¦2 of ¦(3 ¦A: x, ¦A & ¦A, B, C or D ¦option A: ¦no, ¦doubt it's ¦³¦±¦_"
)
UNITS = _UNITS.split("¦")


def _seconds(text: str, space: AnswerSpace, contract: Contract) -> float:
    started = process_time()
    run(contract, space, text, "stop", "lenient")
    return process_time() - started


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("space", [SPACES[0], SPACES[-2], SPACES[-1]], ids=lambda s: s.kind)
def test_time_grows_with_the_text_not_with_its_square(unit: str, space: AnswerSpace) -> None:
    for contract in (CONTRACTS["answer_line"], CONTRACTS["json"]):
        # A square would make eight times the text cost 64 times as much.
        for _ in range(3):
            small = _seconds(unit * (4_000 // len(unit)), space, contract)
            large = _seconds(unit * (32_000 // len(unit)), space, contract)
            if large <= 24 * small + 0.02:
                break
        else:
            pytest.fail(f"{contract.name}: {small:.4f} s, then {large:.4f} s for 8 times the text")

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formatspan.contracts import AnswerSpace, answers, reply
from formatspan.errors import WrapperError
from formatspan.extraction import extract_with
from formatspan.grid import content
from formatspan.records import Example, Kind, Message, Status, labels
from formatspan.tasks import TASKS, get_task
from formatspan.wrappers import FAMILIES, Content, Wrapper, check, family, from_data, render
from formatspan.wrappers.wrapper import SLOT, vocabulary

text = st.text(st.characters(exclude_categories=("Cs", "Cn", "Co")), min_size=1, max_size=40)


def _example(task: str, kind: Kind, question: str, context: str, options: list[str]) -> Example:
    shown = tuple(options) if kind == "choice" else ()
    return Example(task, "x", question, context, shown, "A", "x")


def _filled(name: str, made: Content) -> str:
    return "\n".join(m.content for m in render(family(name), made).messages)


@pytest.mark.parametrize("task", sorted(TASKS))
@given(question=text, context=text | st.just(""), options=st.lists(text, min_size=2, max_size=6))
def test_wrappers_carry_the_same_content(
    task: str, question: str, context: str, options: list[str]
) -> None:
    kind = get_task(task).kind
    made = content(get_task(task), _example(task, kind, question, context, options))
    shells = set()
    for name in FAMILIES:
        filled = _filled(name, made)
        for piece in (made.instruction, made.question, made.context, *made.options):
            assert piece in filled, "verbatim and unescaped"
        named = [v for v in (vocabulary(made), vocabulary(made, quoted=True)) if v in filled]
        assert named and named[0].replace('"', "") in (vocabulary(made), named[0].replace('"', ""))
        order = [filled.index(o) for o in made.options if filled.count(o) == 1]
        assert order == sorted(order), "options keep their order"
        shells.add(filled)
    assert len(shells) == len(FAMILIES)


@pytest.mark.parametrize("name", FAMILIES)
def test_each_slot_appears_once(name: str) -> None:
    check(family(name))


@pytest.mark.parametrize("name", FAMILIES)
@given(question=text, pad=st.integers(0, 50))
def test_padding_stays_inside(name: str, question: str, pad: int) -> None:
    rendered = render(family(name), Content("Do it.", question, "", ("x", "y"), "choice"))
    padded = rendered.padded(" " * pad)
    assert sum(len(m.content) for m in padded) == rendered.chars + pad
    assert padded[0].content.strip() == padded[0].content.strip(" ")
    assert rendered.padded("")[0].content.count(SLOT) == 0


@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize("task", sorted(TASKS))
def test_own_example_answers_parse_under_strict(name: str, task: str) -> None:
    written = get_task(task).answers
    contract = family(name).contract.asking(written)
    options = ("red", "green", "blue sky") if written.kind == "choice" else ()
    space = AnswerSpace.of_options(written.kind, options)
    for value in answers(space):
        found = extract_with(contract, space, reply(contract, space, value), "stop", "strict", None)
        assert (found.status, found.value) == (Status.OK, value)


@pytest.mark.parametrize("name", FAMILIES)
def test_no_placeholder_to_copy(name: str) -> None:
    made = Content("Do it.", "Why?", "", ("x", "y", "z"), "choice")
    filled = _filled(name, made)
    assert not re.search(r"\$|\.\.\.|…|\bX\b|\[[A-Z ]+\]|<[A-Z_ ]+>|LETTER|ANSWER_HERE", filled)
    space = AnswerSpace("choice", labels(3), made.options)
    contract = family(name).contract
    for value in answers(space):
        if contract.before:
            assert reply(contract, space, value) not in filled


def test_vocabulary() -> None:
    three = Content("", "", "", ("x", "y", "z"), "choice")
    assert vocabulary(three) == "A, B or C"
    assert vocabulary(three, quoted=True) == '"A", "B" or "C"'
    assert vocabulary(Content("", "", "", (), "boolean", words=("yes", "no"))) == "yes or no"
    spoken = Content("", "", "", (), "boolean", words=("true", "false"))
    assert vocabulary(spoken, quoted=True) == "true or false", "JSON's own booleans"


@pytest.mark.parametrize(
    ("template", "fault"),
    [
        ("{{ question }} {{ padding }} {{ answer }}", "instruction"),
        ("{{ instruction }}{{ padding }}{{ question }}{{ question }} {{ answer }}", "question"),
        ("{{ instruction }} {{ padding }} {{ question }} {{ context }} {{ answer }}", "option 1"),
        ("{{ instruction }} {{ question }} {{ answer }}", "padding"),
        ("{{ instruction }}{{ padding }}{{ nothing }}", "nothing"),
        ("{{ instruction }}{% for %}", "template"),
        ("{{ ''.__class__.__mro__ }}", "unsafe"),
        (
            "{{ padding }}{{ instruction }} {{ question }} {{ context }} {{ answer }}"
            "{% for o in options %}{{ o.text }}{% endfor %}",
            "message end",
        ),
        (
            "{{ instruction }}{{ padding }} {{ question }} {{ context }}"
            "{% for o in options %}{{ o.text }}{% endfor %} say it",
            "answer",
        ),
    ],
)
def test_a_bad_template_is_refused_by_name(template: str, fault: str) -> None:
    wrapper = Wrapper("mine", (Message("user", template),), family("plain").contract)
    with pytest.raises(WrapperError, match=f"'mine'.*{fault}"):
        check(wrapper)


@pytest.mark.parametrize("filtered", ["| upper", "| truncate(20)", "| e"])
def test_a_filter_that_alters_content_is_refused(filtered: str) -> None:
    template = (
        "{{ instruction }} {{ padding }} {{ context }} {{ question FILTER }} "
        "{% for o in options %}{{ o.text }}{% endfor %} {{ answer }}."
    ).replace("FILTER", filtered)
    with pytest.raises(WrapperError, match="question must appear exactly once and unchanged"):
        check(Wrapper("mine", (Message("user", template),), family("plain").contract))


def test_a_wrapper_may_have_a_system_message() -> None:
    made = from_data(
        {
            "name": "split",
            "contract": {"shape": "text"},
            "messages": [
                {"role": "system", "content": "{{ instruction }}{{ padding }} Be brief."},
                {
                    "role": "user",
                    "content": "{{ context }}{{ question }}{% for o in options %}{{ o.text }}"
                    "{% endfor %} Reply with {{ answer }}.",
                },
            ],
        }
    )
    check(made)

from __future__ import annotations

import re
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formatspan.records import Message
from formatspan.wrappers import FAMILIES, Content, family, render
from formatspan.wrappers.padding import TOKEN_TOLERANCE, TooLong, length, pad

CONTENT = Content("Do it.", "Why is it so?", "", ("one thing", "another"), "choice")


class Merging:
    """A tokenizer like real ones: a run of spaces is few tokens, a line break is one."""

    def count(self, messages: Sequence[Message]) -> int:
        text = "\n".join(m.content for m in messages)
        words = re.findall(r" {1,64}|\n|[^\s]{1,4}", text)
        return len(words) + 7


@given(st.integers(0, 400))
def test_character_padding_is_exact(extra: int) -> None:
    for name in FAMILIES:
        rendered = render(family(name), CONTENT)
        padded = pad(rendered, rendered.chars + extra, None)
        assert (
            padded.chars == rendered.chars + extra == sum(len(m.content) for m in padded.messages)
        )
        assert padded.pad_chars == extra
        assert " " * extra in padded.messages[0].content


@given(st.integers(0, 300))
def test_token_padding_is_within_one_token(extra: int) -> None:
    counter = Merging()
    longest = max(length(render(family(n), CONTENT), counter) for n in FAMILIES)
    for name in FAMILIES:
        padded = pad(render(family(name), CONTENT), longest + extra, counter)
        assert padded.tokens == counter.count(padded.messages)
        assert abs((padded.tokens or 0) - longest - extra) <= TOKEN_TOLERANCE


def test_equal_characters_are_not_equal_tokens() -> None:
    counter = Merging()
    prompts = [pad(render(family(n), CONTENT), 500, None) for n in FAMILIES]
    assert len({p.chars for p in prompts}) == 1
    assert len({counter.count(p.messages) for p in prompts}) > 1


def test_no_budget_pads_nothing() -> None:
    rendered = render(family("plain"), CONTENT)
    assert pad(rendered, None, None).pad_chars == 0


@pytest.mark.parametrize("counter", [None, Merging()])
def test_too_small_a_budget_says_what_is_needed(counter: Merging | None) -> None:
    rendered = render(family("plain"), CONTENT)
    with pytest.raises(TooLong) as caught:
        pad(rendered, 10, counter)
    assert caught.value.needed == length(rendered, counter)

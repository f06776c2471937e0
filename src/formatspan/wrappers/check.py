"""Holds a wrapper to content invariance before anything is asked with it."""

from __future__ import annotations

from dataclasses import replace

from formatspan.errors import WrapperError
from formatspan.records import Message
from formatspan.wrappers.wrapper import SLOT, Content, Rendered, Wrapper, render, vocabulary

_TEXT = 'Mixed Case, <b>&amp; "quotes"</b>, two  spaces,\nbreaks and {{ braces }} ' * 8


def _mark(number: int) -> str:
    """A text that a filter which alters, cuts or escapes it would change, and that is unique."""
    return f"{_TEXT}{chr(0x10FFF0 + number)} end"


_INSTRUCTION, _QUESTION, _CONTEXT = _mark(0), _mark(1), _mark(2)
_OPTIONS = (_mark(3), _mark(4), _mark(5))

PROBES: tuple[Content, ...] = (
    Content(_INSTRUCTION, _QUESTION, _CONTEXT, _OPTIONS, "choice"),
    Content(_INSTRUCTION, _QUESTION, _CONTEXT, _OPTIONS, "choice", form="text"),
    Content(_INSTRUCTION, _QUESTION, _CONTEXT, (), "boolean", words=("yes", "no")),
    Content(_INSTRUCTION, _QUESTION, _CONTEXT, (), "number"),
)
"""Contents with marks of their own, so that each slot can be counted in what comes out."""


def check(wrapper: Wrapper) -> None:
    """Refuse a wrapper that drops, repeats or alters content, or pads at an end.

    Raises:
        WrapperError: Names the slot at fault.
    """
    for probe in PROBES:
        _check_slots(wrapper, probe)
        _check_slots(wrapper, replace(probe, context=""))


def _check_slots(wrapper: Wrapper, probe: Content) -> None:
    rendered = render(wrapper, probe)
    text = "\n".join(m.content for m in rendered.messages)
    slots = {"instruction": probe.instruction, "question": probe.question}
    slots |= {f"option {i + 1}": mark for i, mark in enumerate(probe.options)}
    slots |= {"context": probe.context} if probe.context else {}
    for name, mark in slots.items():
        if text.count(mark) != 1:
            raise WrapperError(
                f"wrapper {wrapper.name!r}: the {name} must appear exactly once and unchanged, "
                f"found {text.count(mark)} times (kind {probe.kind})"
            )
    if not any(vocabulary(probe, quoted=q) in text for q in (False, True)):
        raise WrapperError(
            f"wrapper {wrapper.name!r}: expected {{{{ answer }}}} or {{{{ quoted_answer }}}}"
        )
    _check_padding(wrapper, rendered)


def _check_padding(wrapper: Wrapper, rendered: Rendered) -> None:
    # Chat templates trim message ends, which would silently remove the padding.
    message: Message = rendered.messages[rendered.slot]
    before, _, after = message.content.partition(SLOT)
    if not before.strip() or not after.strip():
        raise WrapperError(
            f"wrapper {wrapper.name!r}: {{{{ padding }}}} must not stand at a message end"
        )

"""What every level does first: cut the reply where the model's turn ended."""

from __future__ import annotations

import re
from typing import NamedTuple

from formatspan.extraction.normalise import INVISIBLE

_END_OF_TURN = re.compile(
    r"<\|(?:im_end|im_start|eot_id|eom_id|end|endoftext|end_of_text|start_header_id|user|"
    r"assistant|system|return|EOT|END_OF_TURN_TOKEN)\|>|</s>|<end_of_turn>|<start_of_turn>|<eos>|"
    r"<｜end▁of▁sentence｜>|\[/?INST\]"
)
_HEADER = re.compile(
    r"(?:\s*+(?:<s>|<bos>|\[/?INST\]|<\|begin_of_text\|>|"
    r"(?:<\|im_start\|>|<start_of_turn>)\s*+(?:assistant|model)\b|"
    r"<\|start_header_id\|>\s*+assistant\s*+<\|end_header_id\|>|<\|assistant\|>))+"
)
_OPENS = re.compile(r"\s*+<(think|thinking|reasoning|thought|reflection)>", re.IGNORECASE)
_CLOSES = re.compile(r"(?<![`\"'])</(think|thinking|reasoning|thought)>(?![`\"'])", re.IGNORECASE)
_BLANK = re.compile(f"[\\s{INVISIBLE}]*")


class Reply(NamedTuple):
    """The part of a raw reply that may hold the answer."""

    raw: str
    start: int
    end: int
    """Outer white space is left out of ``[start, end)``."""
    flags: tuple[str, ...] = ()
    cut: bool = False
    """Whether generation stopped at the length cap, inside the part kept."""
    unclosed: bool = False
    """Whether the reply never left its reasoning block."""
    header: bool = False
    """Whether template tokens stood before the answer, which strict does not forgive."""

    @property
    def blank(self) -> bool:
        """Whether nothing visible is left."""
        if self.start == self.end or self.raw.isascii():
            return self.start == self.end
        return _BLANK.fullmatch(self.raw, self.start, self.end) is not None


def prepare(raw: str, finish_reason: str | None) -> Reply:
    """Cut at the first end-of-turn token and drop the reasoning block that opens the reply."""
    cut = finish_reason == "length"
    if "<" in raw or "[" in raw:
        return _marked(raw, cut)
    return _trimmed(raw, 0, len(raw), (), cut)


def _marked(raw: str, cut: bool) -> Reply:
    """:func:`prepare` for a reply that may hold tags or tokens."""
    header = _HEADER.match(raw)
    start = header.end() if header else 0
    turn = _END_OF_TURN.search(raw, start)
    end = turn.start() if turn else len(raw)
    flags = ("special_token",) if turn or header else ()
    inner = _after_reasoning(raw, start, end)
    if inner is None:
        return Reply(raw, end, end, (*flags, "reasoning"), cut and not turn, unclosed=True)
    if inner != start:
        flags = (*flags, "reasoning")
    reply = _trimmed(raw, inner, end, flags, cut and not turn)
    return reply._replace(header=header is not None)


def _trimmed(raw: str, start: int, end: int, flags: tuple[str, ...], cut: bool) -> Reply:
    part = raw[start:end]
    if part and not part[0].isspace() and not part[-1].isspace():
        return Reply(raw, start, end, flags, cut)
    left = len(part) - len(part.lstrip())
    return Reply(raw, start + left, start + max(left, len(part.rstrip())), flags, cut)


def _after_reasoning(raw: str, start: int, end: int) -> int | None:
    """Where the answer begins behind reasoning blocks; None if a block never closes."""
    opening = _OPENS.match(raw, start, end)
    if not opening:
        return _after_lone_closing(raw, start, end)
    while opening:
        tag = f"</{opening[1]}>"
        closing = re.compile(re.escape(tag), re.IGNORECASE).search(raw, opening.end(), end)
        if not closing:
            return None
        start = closing.end()
        opening = _OPENS.match(raw, start, end)
    return start


def _after_lone_closing(raw: str, start: int, end: int) -> int:
    """Behind a closing tag whose opening one was part of the prompt."""
    closing = _CLOSES.search(raw, start, end)
    if not closing:
        return start
    # An opening tag before it makes both a mention in prose.
    opened = re.compile(f"<{closing[1]}>", re.IGNORECASE).search(raw, start, closing.start())
    return start if opened else closing.end()

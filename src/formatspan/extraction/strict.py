"""Strict: the reply is the contract, letter by letter."""

from __future__ import annotations

import re

from formatspan.contracts import Contract
from formatspan.extraction import boxes, json_reply
from formatspan.extraction.hits import Finding, Hit, Reader
from formatspan.extraction.prepare import Reply
from formatspan.records import Answer

_MATH_END = re.compile(r"[\s$.]*(?:\\[\])])?[\s$.]*")
_TEXT = re.compile(r"\\(?:text|textbf|mathrm|mathbf)\{([^{}]*)\}")


def read(reply: Reply, contract: Contract, reader: Reader) -> Finding | None:
    """The answer of a reply that is the contract, placed in the raw text."""
    if contract.shape == "json":
        return _json(reply, contract, reader)
    if contract.shape == "boxed":
        return _boxed(reply, reader)
    return _text(reply, contract, reader)


def _text(reply: Reply, contract: Contract, reader: Reader) -> Finding | None:
    body = reply.raw[reply.start : reply.end]
    if not contract.before and not contract.after:
        answer = reader.exact(body)
        return None if answer is None else Finding(Hit(answer, reply.start, reply.end))
    before, after = contract.before.lstrip(), contract.after.rstrip()
    at = body.rfind(before) if contract.preamble else 0
    if contract.preamble:
        if at < 0 or (at and body[at - 1] != "\n"):
            return None
    elif not body.startswith(before):
        return None
    start, end = at + len(before), len(body) - len(after)
    if start > end or not body.endswith(after):
        return None
    answer = reader.exact(body[start:end])
    if answer is None:
        return None
    changed = at > 0 and _earlier_differs(body[:at], before, after, answer, reader)
    return Finding(Hit(answer, reply.start + start, reply.start + end), changed=changed)


def _earlier_differs(head: str, before: str, after: str, answer: Answer, reader: Reader) -> bool:
    """Whether an answer line above gives another answer."""
    if before not in head:
        return False
    for line in head.splitlines():
        if line.startswith(before):
            body = line[len(before) :].strip().removesuffix(after)
            earlier = reader.exact(body)
            if earlier is not None and earlier != answer:
                return True
    return False


def _json(reply: Reply, contract: Contract, reader: Reader) -> Finding | None:
    body = reply.raw[reply.start : reply.end]
    if not body.startswith("{"):
        return None
    value = json_reply.decode(body)
    if not isinstance(value, dict) or isinstance(value, json_reply.Doubled):
        return None
    answer = reader.exact_json(value.get(contract.key))
    if answer is None:
        return None
    start, end = json_reply.place(body, 0, len(body), contract.key)
    return Finding(Hit(answer, reply.start + start, reply.start + end))


def _boxed(reply: Reply, reader: Reader) -> Finding | None:
    body = reply.raw[reply.start : reply.end]
    found = boxes.boxes(body) if "{" in body else []
    if not found or not found[-1].closed or not _MATH_END.fullmatch(body, found[-1].end):
        return None
    if not found[-1].asked:
        return None
    answers = [reader.exact(_unwrapped(body[slice(*box.inside)])) for box in found]
    answer = answers[-1]
    if answer is None:
        return None
    changed = any(a is not None and a != answer for a in answers)
    start, end = found[-1].start, found[-1].end
    return Finding(Hit(answer, reply.start + start, reply.start + end), changed=changed)


def _unwrapped(inside: str) -> str:
    text = _TEXT.fullmatch(inside.strip())
    return (text[1] if text else inside).strip()

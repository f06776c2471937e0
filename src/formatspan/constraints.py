"""What holds a decoder to a contract, in every form that decoders take.

All forms say the same: the strict reply of each answer there is, and for contracts with a
preamble some free text before it: up to eight lines, or one short line where the cap is small.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator

from formatspan.contracts import AnswerSpace, Contract, answers, constraint, reply, written
from formatspan.records import Constraint

PREAMBLE_LINES = 8
"""Lines of text before the answer line, as in the regular expression."""

CHARS_A_TOKEN = 2
"""Of free text; most tokens are longer, so that few replies are cut off."""
ANSWER_TOKENS = 12
"""Kept for the line break, the answer line and the end token."""
MOST_COUNTED = 60
"""A decoder unrolls a counted repetition: from about here on that costs more than it is worth."""

_MARKER = 987654321
"""A number that stands for any number while a reply's shell is written."""

_NUMBER_RULE = r'number ::= "-"? ("0" | [1-9] [0-9]{0,14}) ("." [0-9]{1,6})?'


def held_by(
    contract: Contract, space: AnswerSpace, supported: Collection[str], room: int | None = None
) -> Constraint | None:
    """The constraint that a decoder of these types is given; None if none of them will do.

    The first type out of regular expression, list of choices, grammar and JSON schema: a
    schema comes last because it allows white space, which small models fill until the cap.
    ``room`` is that of `preamble_room`.
    """
    return next((c for c in forms(contract, space, room) if c.type in supported), None)


def preamble_room(max_tokens: int) -> int | None:
    """Characters of free text before an answer line that leave tokens for the answer.

    Two characters a token, after the answer line's own. None, no bound, where that is more than
    a decoder can count at no cost: there a reply may still use its cap up.
    """
    room = max(0, CHARS_A_TOKEN * (max_tokens - ANSWER_TOKENS))
    return room if room <= MOST_COUNTED else None


def forms(contract: Contract, space: AnswerSpace, room: int | None = None) -> Iterator[Constraint]:
    """Every form that the contract's constraint can take, the tightest first."""
    yield constraint(contract, space, room)
    if space.kind != "number" and not contract.preamble:
        yield Constraint("choice", json.dumps(_replies(contract, space), ensure_ascii=False))
    yield Constraint("grammar", grammar(contract, space, room))
    if contract.shape == "json":
        yield Constraint("json_schema", json.dumps(schema(contract, space), ensure_ascii=False))


def grammar(contract: Contract, space: AnswerSpace, room: int | None = None) -> str:
    """A grammar in the notation of llama.cpp, which XGrammar shares.

    Source: https://github.com/ggml-org/llama.cpp/blob/master/grammars/README.md
    """
    if space.kind == "number":
        before, after = reply(contract, space, _MARKER).split(str(_MARKER))
        body, rules = " ".join([*_quoted(before), "number", *_quoted(after)]), [_NUMBER_RULE]
    else:
        body = " | ".join(text for r in _replies(contract, space) for text in _quoted(r))
        rules = []
    root = f"root ::= {'lines ' if contract.preamble else ''}({body})"
    if contract.preamble:
        rules += _preamble_rules(room)
    return "\n".join([root, *rules])


def _preamble_rules(room: int | None) -> list[str]:
    if room is None:
        return [f"lines ::= {_nested(PREAMBLE_LINES)}", r'line ::= [^\n]+ "\n"']
    return [rf'lines ::= ([^\n]{{1,{room}}} "\n")?' if room else 'lines ::= ""']


def _nested(lines: int) -> str:
    # Nested rather than repeated: one way to read each text, so that parsers keep one state.
    inner = "line?"
    for _ in range(lines - 1):
        inner = f"(line {inner})?"
    return inner


def _quoted(text: str) -> list[str]:
    """``text`` as a literal of the grammar; nothing for nothing."""
    if not text:
        return []
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return [f'"{escaped}"']


def _replies(contract: Contract, space: AnswerSpace) -> list[str]:
    return [reply(contract, space, value) for value in answers(space)]


def schema(contract: Contract, space: AnswerSpace) -> dict[str, object]:
    """The JSON schema of a JSON contract, with the answer vocabulary."""
    return {
        "type": "object",
        "properties": {contract.key: _value_schema(contract, space)},
        "required": [contract.key],
        "additionalProperties": False,
    }


def _value_schema(contract: Contract, space: AnswerSpace) -> dict[str, object]:
    if space.kind == "number":
        return {"type": "number"}
    if space.kind == "boolean" and contract.words in (None, ("true", "false")):
        return {"type": "boolean"}
    names = dict.fromkeys(written(contract, space, value) for value in answers(space))
    return {"type": "string", "enum": list(names)}

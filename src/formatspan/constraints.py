"""What holds a decoder to a contract, in every form that decoders take.

All forms say the same: the strict reply of each answer there is, and for contracts with a
preamble up to eight lines of free text before it.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator

from formatspan.contracts import AnswerSpace, Contract, answers, constraint, reply, written
from formatspan.records import Constraint

PREAMBLE_LINES = 8
"""Lines of text before the answer line, as in the regular expression."""

_MARKER = 987654321
"""A number that stands for any number while a reply's shell is written."""

_NUMBER_RULE = r'number ::= "-"? ("0" | [1-9] [0-9]{0,14}) ("." [0-9]{1,6})?'


def held_by(
    contract: Contract, space: AnswerSpace, supported: Collection[str]
) -> Constraint | None:
    """The constraint that a decoder of these types is given; None if none of them will do.

    The first type out of regular expression, list of choices, grammar and JSON schema: a
    schema comes last because it allows white space, which small models fill until the cap.
    """
    return next((c for c in forms(contract, space) if c.type in supported), None)


def forms(contract: Contract, space: AnswerSpace) -> Iterator[Constraint]:
    """Every form that the contract's constraint can take, the tightest first."""
    yield constraint(contract, space)
    if space.kind != "number" and not contract.preamble:
        yield Constraint("choice", json.dumps(_replies(contract, space), ensure_ascii=False))
    yield Constraint("grammar", grammar(contract, space))
    if contract.shape == "json":
        yield Constraint("json_schema", json.dumps(schema(contract, space), ensure_ascii=False))


def grammar(contract: Contract, space: AnswerSpace) -> str:
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
        rules += [f"lines ::= {_nested(PREAMBLE_LINES)}", r'line ::= [^\n]+ "\n"']
    return "\n".join([root, *rules])


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

"""Words that deny what stands beside them: "not B", "B is wrong", "I doubt it's tin"."""

from __future__ import annotations

import re

_REACH = 64
"""How far before an answer its denial may begin."""

_NOUN = r"(?:answers?|options?|choices?|candidates?|ones?)"
_LINKS = (
    r"(?:(?:the|la|el|le|die|der|das|an?|be|been|is|are|was|it|it's|that|this|to|for|of|in|by|as|if|"
    r"whether|both|either|"
    r"necessarily|really|definitely|clearly|actually|simply|likely|possibly|choose|choosing|pick|"
    r"picking|select|selecting|say|saying|call|agree|made|go|going|with|use|using|"
    r"take|answer|answering|"
    r"option|options|choice|letter|think|believe|suppose|consider|accept|trust|recommend|suggest|"
    r"would|could|can|should|correct|right|best)\s+)*"
)
_NOT = r"(?:\bnot|\bcannot|n't|\bnever)"
_DENIES = (
    r"(?:\bneither|\bnor|\bhardly|\bnone of|\bnicht|\bno es|n'est pas|\bpas|\bnão é|\bnon è|\bне|"
    r"\b(?:any|every)thing (?:but|except)|"
    r"\ball (?:but|except)|\bexcept(?: for)?|\binstead of|\brather than|\bagainst|\bunlike|"
    r"\bwithout|"
    r"(?<!\bno )(?<!\bwithout )(?<!\bwithout a )(?<!\bbeyond )(?<!\bbeyond a )(?<!\bany )\bdoubt|"
    r"\bdisagree with|\bunlikely|\bimpossible|\bno (?:way|chance)|"
    r"\b(?:exclud|reject|discard|dismiss|avoid)\w*|\beliminat(?:e|es|ed|ing)|"
    r"\brul\w+ out|\bwhether|"
    r"\b(?:wrong|incorrect|false|mistake|mistaken|untrue)\s+(?:that|to)|"
    rf"\b(?:wrong|incorrect|false|worst|poorest|weakest|improbable|implausible|other|"
    rf"least(?:\s+\w{{1,14}})?|'s|his|her|their)\s+{_NOUN}\s+(?:is|are|was|were|would be)|"
    r"\b(?:least\s+\w{1,14}|worst)\s+(?:is|are|was|would be))"
)
_PLAINLY = r"\b(?:no|than)\s+(?:(?:the|an?)\s+)?"
_OPENS = r"[\"'(\[*_]{0,3}$"
_NOT_WORD = r"(?:\s+(?!but|only|so|just|hard|that|wrong|incorrect|false)\w+(?=\s))?"
_BEFORE = re.compile(
    rf"(?:(?:{_NOT}{_NOT_WORD}|{_DENIES})\s+{_LINKS}|{_PLAINLY}){_OPENS}", re.IGNORECASE
)
_FIRMLY_BEFORE = re.compile(
    rf"(?:(?:{_NOT}|{_DENIES})\s+{_LINKS}|{_PLAINLY}){_OPENS}", re.IGNORECASE
)
_MAY_DENY = re.compile(
    r"no|n't|ne|ni|pas|nã|не|hardly|but|whe|xcept|han|nst|unli|with|doubt|impo|rej|eli|dis|avo|"
    r"rul|excl|wrong|incor|false|mist|untr|wors|poor|weak|impr|impl|other|least|'s|hi|her",
    re.IGNORECASE,
)

_ADVERBS = (
    r"(?:also|both|all|clearly|obviously|simply|just|definitely|certainly|probably|most|very|quite|"
    r"factually|be|been|therefore|thus|an?|the|completely|totally)"
)
AFTER = (
    r"(?:(?:is|are|was|were|be|seems?|looks?|sounds?|can|could|would|does|do|did|must|has|have|"
    rf"should|will)\b(?:\s+{_ADVERBS})*\s*"
    r"(?:not\b(?!\s+(?:only|wrong|incorrect|false|bad))|never\b|hardly\b|barely\b|no longer\b|"
    r"far from\b|anything but\b|wrong|incorrect|false|mistake|error\b|bad\b|worst|poor\b|"
    r"least\b|ruled|eliminated|excluded|rejected|discarded|dismissed|out\b|unlikely|improbable|"
    r"implausible|impossible|invalid|irrelevant|inaccurate|untrue)"
    r"|(?:is|are|ca|do|does|did|wo|was|were|could|would|should|has|have)n't\b|cannot\b|"
    r"fails\b|makes? no\b|\?\s{0,2}no\b(?!\s+\w)|"
    r"ではな|ではあり|じゃな|[가이] 아[니닙]|不[对對是]|不正[确確]|[错錯])"
)
"""What denies the words before it, as a pattern."""

_GAP = r"[)\]\"'*_`.$]{0,4}\s{0,3}(?-i:(?![A-Z][a-z]))"  # "A) Don't …" is an option's text
_AFTER = re.compile(_GAP + AFTER, re.IGNORECASE)
_FIRMLY_AFTER = re.compile(
    rf"{_GAP}(?:(?:(?:is|are|was|were|seems?|looks?|sounds?|(?:would|could|must|can|should) be)\b"
    rf"(?:\s+{_ADVERBS})*\s*(?:wrong|incorrect|false|mistake|error\b|bad\b|worst|poor\b|least\b|"
    r"unlikely|improbable|implausible|impossible|invalid|inaccurate|untrue|"
    rf"not(?:\s+{_ADVERBS})*\s+(?:right|correct|true|answer|best|choice|option|it)\b)|"
    r"(?:(?:is|was|are|were)n't|(?:can|could)(?:no|n')t be|can not be|could not be)"
    rf"(?:\s+{_ADVERBS})*\s+(?:right|correct|true|answer|best|choice|option)\b)|\?\s{{0,2}}no\b)",
    re.IGNORECASE,
)


def denied_before(text: str, at: int) -> bool:
    """Whether the words that lead up to ``at`` deny what stands there."""
    window = text[max(0, at - _REACH) : at]
    return _MAY_DENY.search(window) is not None and _BEFORE.search(window) is not None


def denied_after(text: str, end: int) -> bool:
    """Whether the words behind ``end`` deny what ends there."""
    return _AFTER.match(text, end) is not None


def firmly_denied(text: str, start: int, end: int) -> bool:
    """Whether the words around ``text[start:end]`` deny just that, as an answer.

    "Ryan didn't rise" is a statement about Ryan; "not Ryan" and "Ryan is wrong" leave him out.
    """
    window = text[max(0, start - _REACH) : start]
    return _FIRMLY_BEFORE.search(window) is not None or _FIRMLY_AFTER.match(text, end) is not None

"""Words that deny what stands beside them: "not B", "B is wrong", "I doubt it's tin"."""

from __future__ import annotations

import re

_REACH = 64
"""How far before an answer its denial may begin."""

_NOUN = r"(?:answers?|options?|choices?|candidates?|ones?)"
_LINKS = (
    r"(?:(?:the|an?|be|been|is|are|was|it|it's|that|this|to|for|of|in|by|as|if|whether|both|either|"
    r"necessarily|really|definitely|clearly|actually|simply|likely|possibly|choose|choosing|pick|"
    r"picking|select|selecting|say|saying|call|agree|made|go|going|with|use|using|take|answer|answering|"
    r"option|options|choice|letter|think|believe|suppose|consider|accept|trust|recommend|suggest|"
    r"would|could|can|should|correct|right|best)\s+)*"
)
_DENIES = (
    r"(?:(?:\bnot|\bcannot|n't|\bnever)(?:\s+(?!but|only|so|just|hard|that)\w+(?=\s))?|"
    r"\bneither|\bnor|\bhardly|\bnone of|"
    r"\b(?:any|every)thing (?:but|except)|"
    r"\ball (?:but|except)|\bexcept(?: for)?|\bthan|\binstead of|\bagainst|\bunlike|\bwithout|"
    r"(?<!\bno )(?<!\bwithout )(?<!\bwithout a )(?<!\bbeyond )(?<!\bbeyond a )(?<!\bany )\bdoubt|"
    r"\bdisagree with|\bunlikely|\bimpossible|\bno (?:way|chance)|"
    r"\b(?:exclud|reject|discard|dismiss|avoid)\w*|\beliminat(?:e|es|ed|ing)|"
    r"\brul\w+ out|\bwhether|"
    r"\b(?:wrong|incorrect|false|mistake|mistaken|untrue)\s+(?:that|to)|"
    rf"\b(?:wrong|incorrect|false|worst|poorest|weakest|improbable|implausible|other|"
    rf"least(?:\s+\w{{1,14}})?|'s|his|her|their)\s+{_NOUN}\s+(?:is|are|was|were|would be)|"
    r"\b(?:least\s+\w{1,14}|worst)\s+(?:is|are|was|would be))"
)
_BEFORE = re.compile(rf"(?:{_DENIES}\s+{_LINKS}|\bno\s+)[\"'(\[*_]{{0,3}}$", re.IGNORECASE)
_MAY_DENY = re.compile(
    r"no|n't|ne|hardly|but|whe|xcept|han|nst|unli|with|doubt|impo|rej|eli|dis|avo|rul|excl|wrong|incor|"
    r"false|mist|untr|wors|poor|weak|impr|impl|other|least|'s|hi|her",
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

_AFTER = re.compile(rf"[)\]\"'*_`.$]{{0,4}}\s{{0,3}}{AFTER}", re.IGNORECASE)


def denied_before(text: str, at: int) -> bool:
    """Whether the words that lead up to ``at`` deny what stands there."""
    window = text[max(0, at - _REACH) : at]
    return _MAY_DENY.search(window) is not None and _BEFORE.search(window) is not None


def denied_after(text: str, end: int) -> bool:
    """Whether the words behind ``end`` deny what ends there."""
    return _AFTER.match(text, end) is not None

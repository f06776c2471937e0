"""Explicit cues: words that announce an answer, in English and a few other languages."""

from __future__ import annotations

import re
from collections import deque
from functools import lru_cache

from formatspan.extraction.denial import denied_before
from formatspan.extraction.hits import Finding, Hit, Reader
from formatspan.extraction.labels import labels_of
from formatspan.extraction.normalise import ALNUM, ENDED, UNBROKEN, WORD

_MARKS = r"""[\s*_`"')\]]{0,6}"""
_LINK = (
    rf"{_MARKS}(?:(?:is|was|will be|would be|should be|must be|has to be|seems to be|"
    r"appears to be|remains|ist|lautet|es|est|è|é)(?=[\s:*\"'(])|[:=→—]|->|=>|"
    r"-(?=\s{0,2}[A-Za-z(*]))"
)
_MID = (
    r"(?:\s{1,3}(?:to|for|of|in|here|choice|option|letter|number|that|which|i|we|would|should|"
    r"richtig\w{0,2}|correct\w?|corre\w{2,5}|final\w?|bonne)(?=[\s:*])[^.:=\n?!]{0,60}?)?"
)
_FOREIGN = (
    "opción|opcion|opção|opzione|(?:richtige|korrekte)\\soption|option correcte|"
    "antwort|respuesta|réponse|reponse|risposta|resposta|antwoord|svar|odpowiedź|"
    "ответ|cevap"
)
_PRAISED = (
    r"(?:correct|right|best|final|chosen|selected|appropriate|most\s\w{1,14}|my)\s{1,3}"
    r"(?:choice|option|selection|solution|response|conclusion|alternative|letter|pick|one|verdict|"
    r"result|statement|value|number|total|amount)"
)
_CHOSE = (
    r"(?:'d|'ll|'m|'ve|'re|\s(?:would|will|must|shall|should|have to|have|am|are|'m going to|"
    r"am going to))?\s{1,3}(?:(?:now|also|therefore|thus|definitely|finally)\s)?"
    r"(?:choose|choosing|chose|chosen|pick|picking|picked|select|selecting|selected|go with|"
    r"going with|went with|opt for|opting for|vote for|settle on)"
)
_VERB = f"I{_CHOSE}"
_CJK = (
    r"(?:答案|答え|回答|正解|정답|답|选项|選項)\s{0,3}(?:应该|應該|应|應)?\s{0,3}"
    r"(?:是|为|為|選|选|は|은|는|:|=)"
    r"|(?:应|應|故)?(?:选择|選擇|选(?![项項擇择])|選(?![項擇択]))"
)
_LINE_LABEL = (
    r"^[ \t*_#>]{0,8}(?:final\s)?(?:final|choice|option|selection|result|conclusion|verdict|"
    rf"solution|response|output|correct|label){_MARKS}:"
)
_FORWARD = re.compile(
    rf"(?<![{WORD}-])(?:(?:answers?|ans\.?|{_FOREIGN}){_MID}{_LINK}|{_PRAISED}{_MID}{_LINK}|{_VERB}"
    rf"(?![{WORD}]))|{_CJK}|{_LINE_LABEL}|<(?:final_)?answer>",
    re.IGNORECASE | re.MULTILINE,
)
_DENIED = re.compile(
    r"\b(?:not|no|wrong|incorrect|bad|worst|least(?:\s\w{1,14})?|unlikely|false|another|other|"
    r"initial|previous|sample|example|"
    r"his|her|their|student's|any|each|every|if the|whether the)\s+(?:the\s+|an?\s+)?$|"
    r"(?:不|不能|不应|不应该|不该|不可|不會|不会|别|別|没|沒|勿)$",
    re.IGNORECASE,
)

_THINKS = (
    r"(?i:(?<![a-z])(?:think|guess|believe|say|it's|its|choose|pick)\s"
    r"(?:it's\s|its\s|it is\s)?)"
)
_MAX_CUES = 200
"""Only so many cues of a form, the last, are followed."""

LABEL = re.compile(
    rf"(?:the\s)?(?:(?:final|correct|right|best|my|short)\s){{0,2}}(?:answer|option|choice|label|"
    rf"letter|result|response|solution|output|verdict|conclusion|{_FOREIGN}|答案|答え|回答|正解|"
    rf"정답)(?:\s(?:choice|option|letter|number))?{_MARKS}[:=]",
    re.IGNORECASE,
)
"""A leading label such as "Answer:", which the normalized level takes off."""


def last_cue(text: str, reader: Reader, patterns: tuple[re.Pattern[str], ...]) -> Finding | None:
    """The answer behind the last cue that has a valid one."""
    hits = [hit for match in _cues(text, patterns) if (hit := _answer(text, reader, match))]
    if not hits:
        return None
    return Finding(hits[-1], changed=any(hit.value != hits[-1].value for hit in hits))


def _cues(text: str, patterns: tuple[re.Pattern[str], ...]) -> list[re.Match[str]]:
    found = [
        match
        for pattern in (_FORWARD, *patterns)
        for match in deque(pattern.finditer(text), maxlen=_MAX_CUES)
    ]
    return sorted(found, key=re.Match.end)


def _answer(text: str, reader: Reader, match: re.Match[str]) -> Hit | None:
    if _DENIED.search(text, max(0, match.start() - 24), match.start()):
        return None
    if denied_before(text, match.start()):
        return None
    if "label" in match.re.groupindex:
        # The label stands before the words that praise it.
        return reader.whole(text, *match.span("label"))
    return reader.after_cue(text, match.end())


@lru_cache(maxsize=512)
def own_cue(before: str) -> tuple[re.Pattern[str], ...]:
    """The contract's own opening as a cue, unless it is only white space."""
    word = before.strip()
    if not word:
        return ()
    edge = f"(?<![{WORD}-])" if re.match(f"[{WORD}]", word) else ""
    return (re.compile(edge + r"\s{1,3}".join(map(re.escape, word.split())), re.IGNORECASE),)


@lru_cache(maxsize=256)
def choice_cues(names: tuple[str, ...]) -> tuple[re.Pattern[str], ...]:
    """Cues for labels only: "B is the correct answer", "no, B", "we choose"."""
    if not names:
        return ()
    letter = labels_of(names).any
    label = rf"(?P<label>{letter})[)\]*\"'_.]{{0,3}}"
    noun = r"(?:answer|option|choice|one)"
    praise = (
        rf"(?:correct|right|best|true|answer|(?:accurate|appropriate|suitable|likely|plausible|"
        rf"logical|reasonable)\s{{1,3}}{noun}|my (?:\w+\s)?(?:answer|choice|pick)){ENDED}"
    )
    adverb = (
        r"(?:clearly|definitely|therefore|thus|probably|likely|also|indeed|actually|really|"
        r"in fact|most|the|only|a|my)"
    )
    is_ = r"(?:is|was|must be|would be|has to be|should be|seems|looks|sounds|appears)(?: to be)?"
    suits = (
        r"(?:fits|works|matches|makes)(?: (?:best|perfectly|(?:the )?(?:most )?sense))?"
        r"(?=\s{0,3}(?:[.!;,\n]|$|because|since|here))|it is(?=\s{0,3}(?:[.!,\n]|$))"
    )
    no = "" if "no" in map(str.casefold, names) else "|no"
    corrects = (
        rf"(?:correction|actually|sorry|wait|i mean|scratch that|or rather{no})"
        r"[,:.!—–-]{0,2}\s{1,3}(?:[—–-]{1,2}\s{1,3})?"
        r"(?:(?:no|wait|it's|it is|that's|actually|rather|the answer is|i mean)[,:]?\s{1,3}"
        r"(?:[—–-]{1,2}\s{1,3})?){0,3}"
    )
    return (
        re.compile(
            rf"{UNBROKEN}(?<!\bor )(?<!\bor \()(?<!\band )(?<!\bnor )(?<!ther )"
            rf"{label}\s{{1,3}}(?:{is_}\s{{1,3}}(?:{adverb}\s{{1,3}}){{0,4}}{praise}|{suits})"
            rf"(?!\s{{0,3}}\?)"
        ),
        re.compile(
            rf"(?<![{ALNUM}])(?i:{corrects})[(*\"']{{0,3}}{label}(?=\s{{0,3}}(?:\n|$))",
        ),
        re.compile(
            rf"(?<![{ALNUM}])(?:(?:we|let's){_CHOSE}|(?:i've|i have)\s(?:chosen|selected)){ENDED}",
            re.IGNORECASE,
        ),
        re.compile(rf"{_THINKS}(?![ai]){label}\s{{0,3}}$"),
        re.compile(
            rf"{_THINKS}(?![ai])(?=[a-z])(?i:{label})\s{{0,3}}"
            rf"(?:[!;]?$|\n(?!\s{{0,3}}(?:or\s|and\s)?(?i:{letter}){ENDED})"
            r"|,?\s{0,3}(?:because|since|as|but|not)\s)"
        ),
        re.compile(
            r"(?P<label>" + letter + r")\s{0,2}(?:选项|選項)?\s{0,2}是?\s{0,2}"
            r"(?:正确|正確|对的|對的|正解)(?!吗|嗎)"
        ),
    )

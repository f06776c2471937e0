"""Boolean replies: yes or no, by meaning."""

from __future__ import annotations

import re
from collections import deque

from formatspan.contracts import Contract
from formatspan.extraction.corrections import kept
from formatspan.extraction.denial import denied_before
from formatspan.extraction.hits import Finding, Hit, agree
from formatspan.extraction.normalise import ENDED, peel_item
from formatspan.records import Answer

_PLAIN = {"yes": True, "no": False, "true": True, "false": False}
_LETTERS = {"y": True, "n": False, "t": True, "f": False}
"""Stand for words where they are the whole of an answer."""
_LETTER = re.compile(r"[YNTF](?=[*_.)\]\"'}$]{0,4}[ \t]*(?:\n|$))", re.IGNORECASE)
_FOREIGN_TRUE = (
    "はい|そうです|正しい|是|是的|是这样|对|对的|對|對的|没错|正确|正確|예|네|да|oui|vrai|sí|verdadero|ja|wahr|richtig|"
    "sim|verdadeiro|vero"
)
_FOREIGN_FALSE = (
    "いいえ|違います|間違い|否|不|不是|不是的|不对|不對|错|错的|错误|錯誤|不正确|不正確|아니요|아니오|нет|non|faux|"
    "falso|nein|falsch|não"
)
_WORDS = {
    **_PLAIN,
    **dict.fromkeys(("correct", "right", "affirmative", "yep", "yeah"), True),
    **dict.fromkeys(("incorrect", "wrong", "negative", "untrue", "nope"), False),
    **dict.fromkeys(_FOREIGN_TRUE.split("|"), True),
    **dict.fromkeys(_FOREIGN_FALSE.split("|"), False),
}
_NOT = r"(?:(?:not|never|hardly)\s+|n't\s+)"
_ADVERB = (
    r"(?:(?:definitely|clearly|indeed|actually|certainly|simply|quite|entirely|completely|"
    r"strictly|always|necessarily|really|in fact|therefore|thus|also|most likely|probably|"
    r"likely|factually)\s+)"
)
_JOIN = r"\s{0,3}(?:or|and|/)\s{0,3}"
_ECHO = re.compile(
    r"(?<![A-Za-z])(?:(?:the )?answer\s?(?:is|:|=)\s?)?(?:(?:both|either)\s)?"
    rf"(?:true{_JOIN}false|false{_JOIN}true|yes{_JOIN}no|no{_JOIN}yes)(?![A-Za-z])[?:.]?",
    re.IGNORECASE,
)
_HEDGE = re.compile(
    r"\b(?:whether|if|may|might|could|possibly|perhaps|maybe|unsure|uncertain|unclear|depends|"
    r"not sure|not certain|cannot (?:say|tell|determine)|can't (?:say|tell|determine)|"
    r"hard to say|not clear|would be(?! an? (?:\w+ )?(?:yes|no)\b)|partially|partly|sometimes|"
    r"(?:don't|do not|doesn't|does not|can't|cannot) (?:think|believe|agree|see)|unlikely|"
    r"no (?:evidence|reason|indication|proof|way|sign)|"
    r"(?<!\bno )(?<!\bwithout )(?<!\bwithout a )(?<!\bbeyond )(?<!\bbeyond a )(?<!\bany )"
    r"doubt(?:ful)?)\b|\?",
    re.IGNORECASE,
)
_UN = r"(?:not|never|hardly|barely|scarcely|no longer|far from|anything but|in no way|by no means)"
_IMPOSSIBLE = re.compile(
    r"(?:(?:\bnot|n't|\bcannot|\bnever)\s+(?:possibly\s+)?"
    r"(?:(?:appear|seem|prove|turn out)\s+to\s+)?|"
    r"\bnot (?:the case|so) that (?:[\w']+\s){0,4})$",
    re.IGNORECASE,
)
_PREDICATE = re.compile(
    rf"(?<![A-Za-z])(?:is|are|was|were|it's|that's|this's|be|seems|sounds|remains|considered|isn't|aren't|"
    rf"wasn't|weren't|not|hold|holds)(?P<not>\s+{_UN})?\s+(?:{_ADVERB}|(?P<article>an?|the)\s+)*(?P<also>{_UN}\s+)?"
    rf"(?P<word>true|false|correct|incorrect|right|wrong|accurate|inaccurate|untrue){ENDED}(?!-)"
    r"(?!\s+(?:answer|option|choice|that|when|for|only)\s+(?:is|was)\b|\s+to\s)"
    r"(?(article)(?=[*_\"']{0,3}(?:\s+(?:statement|claim|assertion|one|answer|fact)\b|\s*(?:[.!,;:\n]|$))))",
    re.IGNORECASE,
)
_POSITIVE = frozenset(("true", "correct", "right", "accurate"))
_MARKS = re.compile(r"""[\s:=*_`"'(\[{<$>~|#→-]{0,16}""")
_LEAD = re.compile(
    r"""(?:[\s:=*_`"'(\[{<$>~|#→,-]{1,16}|\\[(\[]|\\(?:boxed|text\w{0,2}|math\w{2})\{"""
    r"""|(?:is|be|definitely|clearly|therefore|thus|most|likely|probably|simply|that|it|a|an|the|"""
    r"""this|statement|claim|answer|was|also|indeed)(?=[\s:*"'(])|是|は|为){0,8}+""",
    re.IGNORECASE,
)
_SURELY = (
    r"(?:(?:also|definitely|certainly|absolutely|clearly|undoubtedly|surely|simply|most likely|"
    r"very likely|likely|probably|oh|well|ok|okay|sure),?\s)"
)
_CLAUSE = re.compile(
    r"(?:^|[\n.!?;:,]|\s[-–—](?=\s)|(?<![A-Za-z])(?:so|therefore|thus|hence|says?|answer|is|think|believe|but|then|actually|mean|meant|and(?=\salso)|"
    r"(?:is|it's|that's|be)\s(?:an?|the)(?:\s(?:firm|clear|definite|resounding|big))?)[,:]?)"
    rf"[\s*_\"'(>✅✔☑❌✗✘👉→]{{0,6}}{_SURELY}{{0,2}}"
    r"(?P<word>yes|no|true|false|yep|nope|correct|incorrect|wrong)"
    rf"(?:{ENDED}|(?=_))(?!-\w|'\w)(?=(?P<rest>[\s\S]{{0,12}}))",
    re.IGNORECASE,
)
_ENDS = re.compile(
    r"[*_\"')\]}>]{0,4}(?:$|[.!,;:\n—<]|\s+[-—(]|\s+(?:it|they|he|she|this|that|there|the|because|since|you|we|as|not|and)(?![A-Za-z]))",
    re.IGNORECASE,
)


class BooleanReader:
    """Reads yes and no, true and false, and what else affirms or denies."""

    def __init__(self, contract: Contract) -> None:
        pair = contract.words
        asked = {pair[0]: True, pair[1]: False} if pair else _PLAIN
        self._exact = {form: v for w, v in asked.items() for form in (w, w.capitalize())}
        self._json_bool = pair in (None, ("true", "false"))
        own = {word.casefold(): value for word, value in asked.items()}
        self._plain = {**_PLAIN, **own}
        self._alone = {**_LETTERS, **self._plain}
        self._words = {**_WORDS, **own}
        longest = sorted(self._words, key=len, reverse=True)
        self._word = re.compile(
            rf"(?P<not>{_NOT}(?:the\s+)?)?(?P<word>{'|'.join(map(_bounded, longest))})"
            rf"{ENDED}(?!-\w|'\w)",
            re.IGNORECASE,
        )

    def exact(self, body: str) -> Answer | None:
        """The truth that one of the asked words stands for, as given or capitalised."""
        return self._exact.get(body)

    def exact_json(self, value: object) -> Answer | None:
        """A JSON boolean where the words are true and false; else one of the words."""
        if self._json_bool:
            return value if isinstance(value, bool) else None
        return self._exact.get(value) if isinstance(value, str) else None

    def json_value(self, value: object) -> Answer | None:
        """A JSON boolean, whatever the words; never a number."""
        return value if isinstance(value, bool) else None

    def whole(self, text: str, start: int, end: int) -> Hit | None:
        """One of yes, no, true, false or the asked words."""
        start, end = peel_item(text, start, end)
        value = self._plain.get(text[start:end].casefold())
        return None if value is None else Hit(value, start, end)

    def whole_leniently(self, text: str, start: int, end: int) -> Hit | None:
        """Any single word or negated word that affirms or denies."""
        start, end = peel_item(text, start, end)
        match = self._word.fullmatch(text, start, end)
        if match:
            return self._hit(match)
        words = set(text[start:end].casefold().split())
        if len(words) == 1 and (value := self._alone.get(words.pop())) is not None:
            return Hit(value, start, end)
        echo = _ECHO.fullmatch(text, start, end)
        return Hit(None, start, end) if echo else None

    def _hit(self, match: re.Match[str]) -> Hit:
        value = self._words[match["word"].casefold()]
        return Hit(value != bool(match["not"]), *match.span())

    def after_cue(self, text: str, start: int) -> Hit | None:
        """The affirming or denying word behind a cue; "yes or no" is a conflict."""
        marks = _MARKS.match(text, start)
        lead = _LEAD.match(text, start)
        # "是" is a link as well as a yes.
        bare = self._word.match(text, marks.end() if marks else start)
        at = lead.end() if lead and not bare else bare.start() if bare else start
        echo = _ECHO.match(text, at)
        if echo:
            return Hit(None, *echo.span())
        match = bare or self._word.match(text, at)
        if not match and (letter := _LETTER.match(text, at)):
            return Hit(_LETTERS[letter[0].casefold()], *letter.span())
        if not match or not _ends_clause(match["word"], text[match.end() : match.end() + 12]):
            return None
        both = re.compile(r"\s{0,2}(?:or|and|/)\s{0,2}").match(text, match.end())
        other = self._word.match(text, both.end()) if both else None
        if other and self._hit(other).value != self._hit(match).value:
            return Hit(None, match.start(), other.end())
        return self._hit(match)

    def prose(self, text: str) -> str:
        """The text with echoes such as "true or false" blanked out."""
        return _ECHO.sub(_blank, text)

    def anywhere(self, text: str) -> Finding | None:
        """The truth that the words at clause starts and the predicates agree on."""
        opening = self._opening(text)
        hits = [*([opening] if opening else []), *_clauses(text), *_predicates(text)]
        hit = agree(kept(text, sorted(hits, key=lambda hit: hit.start)))
        return Finding(hit, explicit=opening is not None) if hit else None

    def _opening(self, text: str) -> Hit | None:
        """The word that opens the reply and is followed by the end of its clause."""
        lead = _OPENING.match(text)
        match = self._word.match(text, lead.end() if lead else 0)
        if not match or not _ends_clause(match["word"], text[match.end() : match.end() + 12]):
            return None
        filler = match["word"].casefold() == "right" and text[match.end() : match.end() + 1] == ","
        return None if filler else self._hit(match)


_MOST = 100
"""Only so many words of truth, the last and the opening one, are weighed."""

_OPENING = re.compile(r"[\s*_`\"'(\[>#✅✔☑❌✗✘👉→-]{0,16}")


def _bounded(word: str) -> str:
    """A word's pattern; a single CJK sign must not be the first of a longer word."""
    return re.escape(word) + (r"(?![\u3400-\u9fff\uac00-\ud7af])" if len(word) == 1 else "")


def _blank(echo: re.Match[str]) -> str:
    """White space of the same length, which ends the clause where the echo did."""
    return " " * (len(echo[0]) - 1) + "\n"


_NUMBER_OF = re.compile(r"\.\s?(?:of\b|\d)", re.IGNORECASE)
"""Behind "no" where that is short for number."""


def _ends_clause(word: str, rest: str) -> bool:
    """Whether a clause ends behind the word: "No one knows" and "True friends" go on."""
    if word.casefold() == "no" and _NUMBER_OF.match(rest):
        return False
    return word.casefold() == "yes" or not word.isascii() or _ENDS.match(rest) is not None


def _clauses(text: str) -> list[Hit]:
    """Words of truth that make up a clause of their own."""
    found = []
    for match in deque(_CLAUSE.finditer(text), maxlen=_MOST):
        at = match.start("word")
        if not _ends_clause(match["word"], match["rest"]) or _impossible(text, match.start()):
            continue
        if not _hedged(text, at) and not denied_before(text, at):
            found.append(Hit(_WORDS[match["word"].casefold()], *match.span("word")))
    return found


def _predicates(text: str) -> list[Hit]:
    """Statements that something is true or false, correct or wrong, with their negations."""
    found = []
    for match in deque(_PREDICATE.finditer(text), maxlen=_MOST):
        verb = match[0][:6].casefold()
        negations = bool(match["not"]) + bool(match["also"])
        negations += verb.startswith(("not", "isn't", "aren't", "wasn't", "weren'"))
        impossible = _impossible(text, match.start())
        if not impossible and denied_before(text, match.start()):
            continue  # "does not say that it is true" says nothing
        negations += impossible
        positive = match["word"].casefold() in _POSITIVE
        if not _hedged(text, match.start("word")):
            found.append(Hit(positive == (negations % 2 == 0), *match.span()))
    return found


def _impossible(text: str, at: int) -> bool:
    """Whether the words before ``at`` say that what follows is not so: "cannot be true"."""
    return _IMPOSSIBLE.search(text, max(0, at - 48), at) is not None


def _hedged(text: str, at: int) -> bool:
    """Whether the sentence around ``at`` asks or leaves open instead of stating."""
    left = max(text.rfind(mark, max(0, at - 160), at) for mark in ".!?\n;")
    window = text[max(left + 1, at - 160) : at + 160]
    stop = re.search(r"[.!\n;]|\?", window[at - max(left + 1, at - 160) :])
    cut = len(window) if not stop else at - max(left + 1, at - 160) + stop.end()
    return _HEDGE.search(window[:cut]) is not None

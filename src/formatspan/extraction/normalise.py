"""Unicode normalisation that remembers where each character came from."""

from __future__ import annotations

import re
import unicodedata
from typing import NamedTuple

INVISIBLE = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f"
    "\u3164\ufe00-\ufe0f\ufeff\uffa0\U000e0000-\U000e01ef"
)
"""Characters without a glyph, as the inside of a regular expression's class."""

WORD = "0-9A-Za-z_\u00c0-\u024f"
"""What continues a word, as the inside of a class; not CJK, which sets no spaces."""

ALNUM = WORD.replace("_", "")
"""The same without the underscore, which may be a Markdown mark."""

UNBROKEN = rf"(?<![{ALNUM}])(?<![{ALNUM}]_)"
"""What must not stand before a word: the rest of one, also behind an underscore."""

ENDED = rf"(?![{ALNUM}]|_+[{ALNUM}])"
"""What must not stand behind a word, likewise."""

_HIDDEN = re.compile(f"[{INVISIBLE}]+")

_ONE_TO_ONE = str.maketrans(
    {
        **dict.fromkeys("“”„‟«»〝〞「」『』", '"'),
        **dict.fromkeys("【〔〖", "["),
        **dict.fromkeys("】〕〗", "]"),
        **dict.fromkeys("‘’‚‛′ʼ`´", "'"),
        # The em dash is left: it parts clauses more often than it means minus.
        **dict.fromkeys("‐‑‒–", "-"),
        **dict.fromkeys("\u2028\u2029\x85\x0b\x0c", "\n"),
        "⁄": "/",
        "∕": "/",
    }
)
del _ONE_TO_ONE[ord("`")]  # a Markdown mark, not a quotation mark

# NFKC would glue these to the digit before them: 10³ to 103, 3½ to 31/2.
_RAISED = {ord(c): f"^{i}" for i, c in enumerate("⁰¹²³⁴⁵⁶⁷⁸⁹")} | {ord("⁻"): "^−"}
_LOWERED = {ord(c): f"_{i}" for i, c in enumerate("₀₁₂₃₄₅₆₇₈₉")}
_SHIFTED = {**_RAISED, **_LOWERED}

# A base with its combining marks, at most 30 of them: the bound of Unicode's stream-safe
# format, without which ordering the marks takes quadratic time.
_CLUSTER = re.compile(
    "[\\s\\S][\u0300-\u036f\u0591-\u05bd\u064b-\u065f\u3099\u309a\uff9e\uff9f]{0,30}"
)


class View(NamedTuple):
    """A normalised text and the way back to the raw one."""

    text: str
    base: int
    """Raw offset of the first character."""
    starts: list[int] | None = None
    """Raw offset, less ``base``, of each character; None where they coincide."""
    ends: list[int] | None = None

    def raw(self, start: int, end: int) -> tuple[int, int]:
        """The raw offsets of ``text[start:end]``, which must not be empty."""
        if self.starts is None or self.ends is None:
            return self.base + start, self.base + end
        return self.base + self.starts[start], self.base + self.ends[end - 1]


def view(raw: str, start: int, end: int) -> View:
    """``raw[start:end]`` under NFKC, dashes and quotation marks unified, invisibles left out."""
    part = raw[start:end]
    if part.isascii():
        return View(part, start)
    if not _HIDDEN.search(part) and unicodedata.is_normalized("NFKC", part):
        return View(part.translate(_ONE_TO_ONE), start)
    return _mapped(part, start)


def _mapped(part: str, base: int) -> View:
    pieces: list[str] = []
    starts: list[int] = []
    ends: list[int] = []
    raised = False
    for match in _CLUSTER.finditer(part):
        piece = _normal(match[0], pieces[-1] if pieces else "")
        if ord(match[0][0]) in _RAISED:
            # One mark for the whole exponent: 10¹² is 10^12, 10⁻³ is 10^-3.
            piece, raised = piece[1:] if raised else piece, True
        else:
            raised = False
        pieces.append(piece)
        starts += [match.start()] * len(piece)
        ends += [match.end()] * len(piece)
    return View("".join(pieces).translate(_ONE_TO_ONE), base, starts, ends)


def _normal(cluster: str, before: str) -> str:
    if cluster.isascii():
        return cluster
    if _HIDDEN.fullmatch(cluster):
        return ""
    shifted = _SHIFTED.get(ord(cluster[0]))
    if shifted is not None:
        return shifted
    normal = unicodedata.normalize("NFKC", cluster)
    return f" {normal}" if "⁄" in normal and before[-1:].isdigit() else normal


def normal(text: str) -> str:
    """A short text, such as an option's, in the form that :func:`view` gives replies."""
    return view(text, 0, len(text)).text


_LEAD_MARKS = re.compile(
    r"""(?:[\s*_`"'(\[{<>$\#~|≈]|\\[(\[]|\\(?:text|textbf|textit|mathrm|mathbf|mathsf|mathit)\{)*+"""
)
_BULLET = re.compile(r"\s*+[-+•–]\s++")
_TAIL_MARKS = " \t\r\n*_`\"')]}<>$.,;:!?~|\\。、"
_FENCE = re.compile(r"\s*+```[\w+-]{0,20}[ \t]*+\r?\n")


def peel(text: str, start: int, end: int) -> tuple[int, int]:
    """The range inside ``[start, end)`` without marks, brackets, quotes and closing points."""
    lead = _LEAD_MARKS.match(text, start, end)
    inner = lead.end() if lead else start
    return inner, inner + len(text[inner:end].rstrip(_TAIL_MARKS))


def peel_item(text: str, start: int, end: int) -> tuple[int, int]:
    """As :func:`peel`, and without the bullet of a list of one: ``- Jupiter``.

    Not for numbers, where the bullet could be a minus.
    """
    bullet = _BULLET.match(text, start, end)
    return peel(text, bullet.end() if bullet else start, end)


def unfenced(text: str, start: int, end: int) -> tuple[int, int]:
    """The inside of the code fence that ``text[start:end]`` is, or the range unchanged."""
    opening = _FENCE.match(text, start, end) if "```" in text else None
    if not opening:
        return start, end
    closing = text.rfind("```", opening.end(), end)
    if closing < 0 or text[closing + 3 : end].strip():
        return start, end
    return opening.end(), closing


def key(text: str) -> str:
    """The form under which two spellings of an option's text are the same."""
    flat = " ".join(text.replace("*", "").replace("`", "").casefold().split())
    return flat.strip(" .,;:!?\"'_。、") or flat


def line_bounds(text: str, start: int, end: int) -> tuple[int, int]:
    """The last line of ``text[start:end]`` that is not blank."""
    end = start + len(text[start:end].rstrip())
    return max(start, text.rfind("\n", start, end) + 1), end

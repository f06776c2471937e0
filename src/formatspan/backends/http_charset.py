"""Bodies in another charset than UTF-8, where the response says which."""

from __future__ import annotations

import codecs
import re

_NAMED = re.compile(r";\s*charset\s*=\s*\"?([\w.:-]{1,40})", re.IGNORECASE | re.ASCII)
_KNOWN = frozenset(
    {
        *("iso8859-1", "iso8859-15", "cp1252", "mac-roman"),
        *("utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le", "utf-32-be"),
        *("shift_jis", "cp932", "euc_jp", "gb2312", "gbk", "gb18030", "big5", "euc_kr"),
    }
)
"""Charsets of text by Python's names; its other codecs (``zip``, ``idna``) are none."""


def in_utf8(body: bytes, content_type: str) -> bytes:
    """``body`` in UTF-8, or as it is where that cannot be told.

    What is UTF-8 stays so whatever the header says: many servers name Latin-1 by default. JSON
    has no byte 0, so that text in UTF-16 is not taken for UTF-8.
    """
    named = _NAMED.search(content_type)
    if named is None or (body.isascii() and b"\0" not in body):
        return body
    try:
        name = codecs.lookup(named[1]).name
    except LookupError:
        return body
    if name not in _KNOWN or (b"\0" not in body and _decodes(body, "utf-8")):
        return body
    return body.decode(name).encode() if _decodes(body, name) else body


def _decodes(body: bytes, name: str) -> bool:
    try:
        body.decode(name).encode()
    except UnicodeError:
        return False
    return True

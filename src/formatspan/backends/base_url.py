"""What is wrong with an endpoint's base URL, said before anything is sent there."""

from __future__ import annotations

import ipaddress
import re
from urllib.parse import SplitResult, urlsplit

EXPECTED = "expected http(s)://host/path without user, password or query"
_HOST = re.compile(r"[A-Za-z0-9._-]+")
"""A host in ASCII. Underscores stand in names of containers, where no standard has them."""


def mistake_in(base_url: str) -> str | None:
    """What is wrong with a base URL and what would be right, or None if nothing is.

    Parts that may hold a secret are not repeated.
    """
    text = base_url.strip()
    why = _reason(text)
    return None if why is None else f"{EXPECTED}: {why}"


def _reason(text: str) -> str | None:
    if not re.match(r"https?:", text, re.IGNORECASE):
        return "it begins with neither http:// nor https://"
    if any(c.isspace() or not c.isprintable() for c in text):
        return "a space or an unprintable character is in it"
    try:
        parts = urlsplit(text)
    except ValueError:
        return "its brackets hold no IPv6 address"
    if "@" in text.partition("?")[0]:
        return "a key belongs into an environment variable that api_key_env names"
    if "?" in text or "#" in text:
        return "it ends before '?' and '#'"
    return _host_reason(parts) or _port_reason(parts)


def _host_reason(parts: SplitResult) -> str | None:
    host = parts.hostname or ""
    if not host:
        return "there is no host between '//' and the next '/'"
    try:
        if "[" in parts.netloc:
            ipaddress.ip_address(host.partition("%")[0])
            return None
        ascii_host = host.encode("idna").decode()  # a label may be empty or too long
    except ValueError:
        ascii_host = ""
    return None if _HOST.fullmatch(ascii_host) else "the host's name is malformed"


def _port_reason(parts: SplitResult) -> str | None:
    told = parts.netloc.rpartition("]")[2].partition(":")[2]
    try:
        usable = parts.port != 0
    except ValueError:
        usable = False
    if usable:
        return None
    port = f"port {told}" if re.fullmatch(r"-?\d{1,9}", told, re.ASCII) else "the port"
    return f"{port} is not a number from 1 to 65535"

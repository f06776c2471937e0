"""Why there was no whole response: the library's words turned into a kind and a plain sentence."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Mapping

import pycurl


class Broken(Exception):
    """The connection ended or failed before a whole response had come."""


class Refused(Broken):
    """No connection could be made."""


class NoAnswer(Refused):
    """A connection that did not stand in time, which takes long to find out."""


class NotTls(Broken):
    """Where ``https`` was asked for something else is spoken."""


class ProxyRefused(Broken):
    """A proxy lets nothing through, and will not the next time either."""


class Untrusted(Broken):
    """The server's certificate was refused."""


class NotHttp(Broken):
    """What came is not HTTP, or encoded in a way that was not asked for."""


class TooLong(Broken):
    """The response is longer than is read."""


class TimedOut(Broken):
    """The response, or its first byte, took too long."""


def trouble(curl: pycurl.Curl, code: int, said: str, host: str) -> Broken:
    """The exception for a transfer that the library gave up.

    Args:
        curl: The transfer.
        code: The library's error.
        said: Its text.
        host: Host and port that were asked.
    """
    said = _LOGIN.sub("//", said)
    if code in _UNREACHED:
        return _unreached(curl, code, said, host)
    if code == pycurl.E_PEER_FAILED_VERIFICATION:
        return Untrusted(f"the certificate of {host} was refused: {_distrust(said)}")
    if code in _KINDS:
        kind, told = _KINDS[code]
        return kind(f"{told}: {said}" if said else told)
    return Broken(said or pycurl.easy_strerror(code))


def _unreached(curl: pycurl.Curl, code: int, said: str, host: str) -> Broken:
    status = curl.getinfo(pycurl.HTTP_CONNECTCODE)
    if status >= 400:
        text = f"the proxy answered HTTP {status} instead of connecting to {host}"
        if status == 407:
            return ProxyRefused(f"{text}: {PROXY_LOGIN}")
        lasting = status < 500 and status not in (408, 429)
        return ProxyRefused(text) if lasting else Refused(text)
    if "wrong version number" in said:
        return not_tls(host)
    system = curl.getinfo(pycurl.OS_ERRNO)
    why = os.strerror(system) if code == pycurl.E_COULDNT_CONNECT and system else said
    return Refused(f"no connection to {host}: {why}")


def not_tls(host: str) -> NotTls:
    """The exception for a server that does not speak TLS."""
    return NotTls(f"{host} does not speak TLS: write http:// for https://, or mend the port")


def _distrust(said: str) -> str:
    """Why a certificate is refused, and what would help."""
    reason = re.sub(r"^SSL certificate OpenSSL verify result: (.*?)(?: \(\d+\))?$", r"\1", said)
    if "subject name" in said:
        return f"it is for another host than base_url names ({reason.removeprefix('SSL: ')})"
    if "expired" in said or "not yet valid" in said:
        return f"{reason}: it must be renewed, or the clock of this machine is wrong"
    return f"{reason}: SSL_CERT_FILE may name a file with the authority that vouches for it"


async def speaks_plainly(host: str, port: int) -> bool:
    """Whether a server answers without TLS; asked without key or path."""
    try:
        async with asyncio.timeout(_PLAIN_S):
            reader, writer = await asyncio.open_connection(host, port)
            try:
                writer.write(b"HEAD / HTTP/1.0\r\n\r\n")
                return (await reader.read(5)).startswith(b"HTTP/")
            finally:
                writer.close()
    except (OSError, ValueError):  # the time that is up, and names that cannot be looked up
        return False


PROXY_LOGIN = (
    "it wants a user and a password, as in http://user:password@host:port in HTTP_PROXY or "
    "HTTPS_PROXY"
)
_PLAIN_S = 3.0
"""Seconds for an answer without TLS."""
_LOGIN = re.compile(r"//[^/\s]*@")
"""User and password of a proxy, in a URL that the library quotes."""
_TOO_LARGE = 100
"""The library's code for headers that are too long, for which pycurl has no name."""
_UNREACHED = frozenset(
    {
        pycurl.E_COULDNT_CONNECT,
        pycurl.E_COULDNT_RESOLVE_HOST,
        pycurl.E_COULDNT_RESOLVE_PROXY,
        pycurl.E_SSL_CONNECT_ERROR,
    }
)
_NOT_HTTP = "the reply is not HTTP (is base_url's port right, and http:// or https://?)"
_KINDS: Mapping[int, tuple[type[Broken], str]] = {
    pycurl.E_SSL_CACERT_BADFILE: (Untrusted, "the certificate cannot be checked: SSL_CERT_FILE"),
    pycurl.E_UNSUPPORTED_PROTOCOL: (NotHttp, _NOT_HTTP),
    pycurl.E_FTP_WEIRD_SERVER_REPLY: (NotHttp, _NOT_HTTP),
    pycurl.E_GOT_NOTHING: (
        Broken,
        "the connection was closed without an answer (is https:// wanted?)",
    ),
    _TOO_LARGE: (TooLong, "headers that are too long"),
}

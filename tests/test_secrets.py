"""The key never leaves the header, whatever an endpoint does with it."""

from __future__ import annotations

import asyncio
import base64
import json
import logging
import sqlite3
import urllib.parse
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from formatspan.analysis import analyze
from formatspan.backends import openai_chat
from formatspan.backends.redaction import MASK, WITHHELD, Redactor, Secret
from formatspan.report.write import write_report
from formatspan.session import run
from formatspan.study import Study
from impatient import open_impatient

KEY = "sk-or-v1-0a1B2c/3D4e+5F6g7H8i9J0k1L2m3N4o5P6"

Spell = Callable[[str], str]
SPELLINGS: dict[str, Spell] = {
    "plain": lambda k: k,
    "slash": lambda k: k.replace("/", "\\/"),
    "unicode": lambda k: "".join(f"\\u{ord(c):04x}" for c in k),
    "unicode_some": lambda k: k.replace("-", "\\u002D"),
    "unicode_twice": lambda k: k.replace("-", "\\\\u002d"),
    "percent": lambda k: urllib.parse.quote(k, safe=""),
    "percent_all": lambda k: "".join(f"%{ord(c):02x}" for c in k),
    "percent_twice": lambda k: urllib.parse.quote(urllib.parse.quote(k, safe=""), safe=""),
    "html": lambda k: "".join(f"&#{ord(c)};" for c in k),
    "html_hex": lambda k: k.replace("-", "&#x2d;"),
    "base64": lambda k: base64.b64encode(k.encode()).decode(),
    "base64_header": lambda k: base64.b64encode(f"Bearer {k}".encode()).decode(),
    "base64_shifted": lambda k: base64.b64encode(f"x{k}, and more".encode()).decode(),
    "base64_url": lambda k: base64.urlsafe_b64encode(f"key={k}&".encode()).decode(),
    "base64_lines": lambda k: "\\n".join(_pieces(base64.b64encode(k.encode()).decode(), 20)),
    "hex": lambda k: k.encode().hex(),
    "hex_upper": lambda k: k.encode().hex().upper(),
    "spaced": " ".join,
    "dashed": lambda k: "-".join(_pieces(k, 4)),
    "lines": lambda k: "\\n".join(_pieces(k, 10)),
    "quoted": lambda k: '\\" + \\"'.join(_pieces(k, 7)),
}


def _pieces(text: str, size: int) -> list[str]:
    return [text[i : i + size] for i in range(0, len(text), size)]


def _bare(text: str) -> str:
    return "".join(c for c in text if c.isascii() and c.isalnum())


def shows(text: str) -> bool:
    """Whether the key is in a text after all that was done to it is undone."""
    for spell in SPELLINGS.values():
        if spell(KEY) in text:
            return True
    plain = urllib.parse.unquote(urllib.parse.unquote(text))
    return any(_bare(KEY) in _bare(t) for t in (text, plain)) or any(
        base64.b64encode(b"x" * lead + KEY.encode()).decode()[4:-4] in text for lead in range(3)
    )


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_bodies_and_texts_in_every_spelling(spelling: str) -> None:
    redactor = Redactor([Secret(KEY)])
    spelled = SPELLINGS[spelling](KEY)
    body = f'{{"error": "got {spelled} there"}}'
    masked = redactor.body(body.encode()).decode()
    assert spelled not in masked and not shows(masked)
    if masked != WITHHELD:
        assert json.loads(masked)["error"].startswith("got ")
    text = json.loads(body)["error"]
    assert not shows(redactor.text(text))


def test_other_texts_stay_as_they_are() -> None:
    redactor = Redactor([Secret(KEY), Secret("not-needed"), Secret("token-abc123")])
    for text in (
        "50% of \\u00e9 &#233; and %41; is not needed, not  needed",
        "the token abc 123 is none",
        json.dumps({"answer": "Zürich %2D \ud83d\ude00"}),
        "",
    ):
        assert redactor.text(text) == text
        assert redactor.body(text.encode()) == text.encode()
    assert redactor.body(b"\xff\xfe% not UTF-8 \x00") == b"\xff\xfe% not UTF-8 \x00"
    assert redactor.text("key not-needed!") == f"key {MASK}!"


def _parts(text: str) -> list[dict[str, str]]:
    return [{"type": "text", "text": piece} for piece in _pieces(text, 6)]


class Parrot:
    """An endpoint that repeats the key in another way each time, in replies and in errors."""

    def __init__(self) -> None:
        self.turn = 0
        self.elsewhere: list[str] = []

    async def chat(self, request: web.Request) -> web.Response:
        self.turn += 1
        key = request.headers["Authorization"].removeprefix("Bearer ")
        names = list(SPELLINGS)
        spelled = SPELLINGS[names[self.turn % len(names)]](key)
        headers = {"X-Key": key, "Set-Cookie": f"key={key}"}
        if self.turn % 7 == 0:
            return web.Response(status=500, text=f"<html>{spelled}</html>", headers=headers)
        if self.turn % 7 == 1:
            told = f'{{"error": {{"message": "bad {spelled}", "code": 503}}}}'
            return web.Response(body=told.encode(), headers=headers)
        content: Any = f"KEY {self.turn}"
        if self.turn % 7 == 2:
            content = _parts(f"the key is {key}, you know")
        message = {"role": "assistant", "content": content, "reasoning": "KEY"}
        choice = {"index": 0, "finish_reason": "KEY", "message": message}
        body = {"id": "KEY", "model": "KEY", "provider": "KEY", "system_fingerprint": "KEY"}
        text = json.dumps({**body, "choices": [choice]}).replace("KEY", spelled)
        return web.Response(body=text.encode(), headers=headers)

    async def away(self, request: web.Request) -> web.Response:
        where = f"{request.url.origin()}/elsewhere?key={request.headers['Authorization']}"
        return web.Response(status=308, headers={"Location": where})

    async def other(self, request: web.Request) -> web.Response:
        self.elsewhere.append(request.headers.get("Authorization", ""))
        return web.Response()


@pytest.fixture
def keyed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_KEY", KEY)
    monkeypatch.setattr(openai_chat, "open_openai", open_impatient)


def _study(url: str, rows: Path) -> Study:
    model = {"model": "openai:m", "base_url": url, "api_key_env": "SECRET_KEY", "concurrency": 4}
    return Study.build({"models": [model], "tasks": [str(rows)], "examples": 12, "name": "keys"})


async def test_a_key_that_is_repeated_is_kept_nowhere(
    keyed: None,
    rows_file: Path,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    capsys: pytest.CaptureFixture[str],
) -> None:
    caplog.set_level(logging.DEBUG)
    parrot, app = Parrot(), web.Application()
    app.router.add_post("/v1/chat/completions", parrot.chat)
    async with TestServer(app) as server:
        url = str(server.make_url("/v1"))
        done = await _in_thread(lambda: run(_study(url, rows_file), out=tmp_path / "run"))
    assert done.done > 40
    assert parrot.turn > 60, "there were faults, too"
    analysis = analyze(tmp_path / "run")
    write_report(analysis, tmp_path / "run" / "run.sqlite", tmp_path / "report", figures=False)
    said = capsys.readouterr()
    texts = [caplog.text, said.out, said.err, repr(done), analysis.to_json()]
    texts += [p.read_text("utf-8", "replace") for p in tmp_path.rglob("*") if p.is_file()]
    texts += _stored(tmp_path / "run" / "run.sqlite")
    for text in texts:
        assert not shows(text)


def _stored(path: Path) -> list[str]:
    """Every value in a store, compressed bodies unpacked."""
    connection = sqlite3.connect(path)
    found = []
    for table in ("generations", "failures", "models", "meta"):
        for row in connection.execute(f"SELECT * FROM {table}"):
            found += [zlib.decompress(v).decode() if isinstance(v, bytes) else str(v) for v in row]
    connection.close()
    assert len(found) > 500
    return found


async def test_a_redirect_is_told_without_the_key_and_not_followed(
    keyed: None, rows_file: Path, tmp_path: Path
) -> None:
    parrot, app = Parrot(), web.Application()
    app.router.add_post("/v1/chat/completions", parrot.away)
    app.router.add_route("*", "/elsewhere", parrot.other)
    async with TestServer(app) as server:
        url = str(server.make_url("/v1"))
        study = _study(url, rows_file)
        done = await _in_thread(lambda: run(study, out=tmp_path / "run", check=False))
    assert done.done == 0
    assert "redirected" in done.stopped["m"]
    assert parrot.elsewhere == []
    assert not shows(repr(done))
    assert not any(shows(text) for text in _failures(tmp_path / "run" / "run.sqlite"))


def _failures(path: Path) -> list[str]:
    connection = sqlite3.connect(path)
    found = [str(row) for row in connection.execute("SELECT * FROM failures")]
    connection.close()
    assert found
    return found


async def _in_thread(call: Callable[[], Any]) -> Any:  # noqa: ANN401 - whatever it returns
    return await asyncio.to_thread(call)

"""The reader of an endpoint's replies, without a server."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from formatspan.backends.chat_fault import WAIT_CAP_S, Fault, clip
from formatspan.backends.chat_reply import Parsed, Reply, Usage, parse_reply, read_usage
from formatspan.backends.chat_wait import WAIT_MOST_S, retry_after
from formatspan.records import FailureKind

CASES = Path(
    os.environ.get("FORMATSPAN_CASES", Path(__file__).parents[1].parent / "shared" / "cases")
)
NOW = datetime(2026, 1, 1, tzinfo=UTC)

DEFERRED = {
    "b017": "a pair: comparing reasoning between wrappers is the report's",
    "b023": "a sequence: the scripted server in test_openai_chat.py plays it",
    "b025": "a spending cap: the later HTTP work",
    "b026": "usage objects without a reply: test_usage_of_the_field_cases",
    "b031": "a server: test_openai_chat.py counts its hits",
    "b034": "a report on the providers stored with each generation",
    "b035": "a run's breaker: the runner's; the fatal 402 is tested here",
    "b036": "a run's exit code: the runner's; the refused connection is in test_openai_chat.py",
}
"""Cases that are not one reply, and where they are covered."""


def load_cases() -> list[dict[str, Any]]:
    path = CASES / "api.jsonl"
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text("utf-8").splitlines() if line.strip()]


ALL_CASES = load_cases()


def body_of(value: object) -> bytes:
    return value.encode() if isinstance(value, str) else json.dumps(value).encode()


def parse(body: object, status: int = 200, headers: dict[str, str] | None = None) -> Parsed:
    data = body if isinstance(body, bytes) else body_of(body)
    return parse_reply(status, headers or {}, data, NOW)


def fault(body: object, status: int = 200, headers: dict[str, str] | None = None) -> Fault:
    parsed = parse(body, status, headers)
    assert isinstance(parsed, Fault), parsed
    return parsed


def reply(body: object) -> Reply:
    parsed = parse(body)
    assert isinstance(parsed, Reply), parsed
    return parsed


def completion(content: object = "B", finish: object = "stop", **message: object) -> dict[str, Any]:
    told = {"role": "assistant", "content": content, **message}
    return {"id": "x1", "choices": [{"index": 0, "finish_reason": finish, "message": told}]}


@pytest.mark.skipif(not ALL_CASES, reason=f"no api.jsonl in {CASES}: set FORMATSPAN_CASES")
def test_every_case_is_run_or_deferred() -> None:
    run = {case["id"] for case in ALL_CASES if "status" in case["input"]}
    assert run | DEFERRED.keys() == {case["id"] for case in ALL_CASES}
    assert not run & DEFERRED.keys()


@pytest.mark.skipif(not ALL_CASES, reason=f"no api.jsonl in {CASES}: set FORMATSPAN_CASES")
@pytest.mark.parametrize(
    "case", [c for c in ALL_CASES if "status" in c["input"]], ids=lambda case: case["id"]
)
def test_field_case(case: dict[str, Any]) -> None:
    given, expected = case["input"], case["expected_strict"]
    # Adapting the refused parameter and asking again (b028) is the later HTTP work.
    outcome = expected.get("outcome") or case["expected_lenient"]["outcome"]
    parsed = parse_reply(given["status"], given["headers"], body_of(given["body"]), NOW)
    _CHECKS[outcome](parsed, expected)


def _check_retry(parsed: Parsed, expected: dict[str, Any]) -> None:
    assert isinstance(parsed, Fault)
    assert parsed.retry and not parsed.fatal
    assert parsed.kind == expected.get("class", parsed.kind)
    assert all(text in parsed.message for text in expected.get("log_contains", ()))
    if "keep" in expected:
        assert all(text in parsed.message for text in ("429", "P1 rate limit reached", "P1"))
    if "wait_s" in expected:
        assert parsed.wait_s == expected["wait_s"][0]


def _check_final(parsed: Parsed, expected: dict[str, Any]) -> None:
    if expected["status"] == "blocked":
        assert isinstance(parsed, Fault)
        assert parsed.kind is FailureKind.CONTENT_FILTER and not parsed.retry
        return
    assert isinstance(parsed, Reply)
    assert (parsed.text == "") == (expected["status"] == "empty" or "detail" in expected)
    assert (parsed.finish_reason == "length") == (expected["status"] == "truncated")
    assert parsed.text == expected.get("content", parsed.text)
    assert expected.get("value", "") in parsed.text
    if "tokens" in expected:
        assert parsed.usage == Usage()


def _check_pause(parsed: Parsed, expected: dict[str, Any]) -> None:
    assert isinstance(parsed, Fault)
    assert parsed.kind is FailureKind.QUOTA
    assert parsed.fatal and not parsed.retry


def _check_config_error(parsed: Parsed, expected: dict[str, Any]) -> None:
    assert isinstance(parsed, Fault)
    assert parsed.kind is FailureKind.REFUSED_PARAMETERS
    assert not parsed.retry and not parsed.fatal


_CHECKS = {
    "retry": _check_retry,
    "final": _check_final,
    "pause_run": _check_pause,
    "config_error": _check_config_error,
}


@pytest.mark.parametrize(
    ("status", "error", "kind", "retry", "fatal"),
    [
        (400, {"message": "Unknown parameter: 'seed'"}, "refused_parameters", False, False),
        (400, {"message": "max_tokens is too large: 9"}, "refused_parameters", False, False),
        (400, {"code": "context_length_exceeded", "message": "x"}, "context_overflow", 0, 0),
        (500, {"message": "exceeds the available context size"}, "context_overflow", 0, 0),
        (413, None, "context_overflow", False, False),
        (400, {"message": "phi-5 is not a valid model ID"}, "not_found", False, True),
        (404, {"message": "The model `gpt-9` does not exist"}, "not_found", False, True),
        (404, None, "not_found", False, True),
        (401, {"message": "Incorrect API key provided: sk-a***z"}, "auth", False, True),
        (400, {"message": "API key not valid. Please pass a valid one."}, "auth", False, True),
        (403, None, "auth", False, True),
        (403, {"message": "Key limit exceeded"}, "quota", False, True),
        (403, {"message": "m requires moderation. Your input was flagged"}, "content_filter", 0, 0),
        (400, {"code": "content_filter", "message": "Azure"}, "content_filter", False, False),
        (402, {"code": 402, "message": "Insufficient credits"}, "quota", False, True),
        (429, {"code": "insufficient_quota", "message": "x"}, "quota", False, True),
        (429, {"message": "Limit reached on tokens per day (TPD)"}, "quota", False, True),
        (429, {"message": "exceeded your current quota; retry in 12.5s"}, "rate_limit", 1, 0),
        (429, {"message": "Too many tokens, please wait"}, "rate_limit", True, False),
        (429, None, "rate_limit", True, False),
        (407, None, "proxy", False, True),
        (410, None, "not_found", False, True),
        (418, None, "refused", False, False),
        (422, None, "refused_parameters", False, False),
        (499, {"message": "x"}, "refused", False, False),
        (408, None, "timeout", True, False),
        (409, None, "server", True, False),
        (500, None, "server", True, False),
        (501, {"message": "not supported"}, "refused_parameters", False, False),
        (503, {"message": "loading model"}, "server", True, False),
        (504, None, "timeout", True, False),
        (524, None, "timeout", True, False),
        (529, None, "server", True, False),
        # Inside a reply with status 200.
        (200, {"code": 502, "message": "x"}, "server", True, False),
        (200, {"code": "429", "message": "x"}, "rate_limit", True, False),
        (200, {"code": 400, "message": "x"}, "refused_parameters", False, False),
        (200, {"code": 401, "message": "x"}, "auth", False, True),
        (200, {"type": "insufficient_quota", "message": "x"}, "quota", False, True),
        (200, {"type": "invalid_request_error", "message": "x"}, "refused_parameters", 0, 0),
        (200, {"code": 0, "message": "x"}, "server", True, False),
        (200, "something failed", "server", True, False),
        (200, ["a", "b"], "server", True, False),
    ],
)
def test_what_follows_from_an_error(
    status: int, error: object, kind: str, retry: bool, fatal: bool
) -> None:
    found = fault({"error": error} if error else "", status)
    assert (found.kind, found.retry, found.fatal) == (kind, bool(retry), bool(fatal))


@pytest.mark.parametrize(
    "body",
    [
        [{"error": {"code": 429, "message": "told"}}],
        {"object": "error", "message": "told", "code": 429},
        {"message": "told"},
        {"detail": "told"},
        {"detail": [{"msg": "told"}]},
        {"errors": [{"message": "told"}]},
        "told",
    ],
)
def test_errors_in_other_shapes(body: object) -> None:
    found = fault(body, 429)
    assert found.kind is FailureKind.RATE_LIMIT
    assert "told" in found.message


def test_error_stands_before_choices() -> None:
    assert fault({**completion(), "error": {"code": 502}}).kind is FailureKind.SERVER
    assert reply({**completion(), "error": None}).text == "B"


@pytest.mark.parametrize(
    "body",
    [
        {"choices": None},
        {},
        {"choices": []},
        {"choices": [None]},
        {"choices": {"0": 1}},
        {"choices": [{"finish_reason": "stop"}]},
        {"choices": [{"finish_reason": "stop", "message": "B"}]},
        completion(42),
        completion({"type": "text"}),
        [],
        [1, 2],
        None,
        "null",
        "<html>Welcome</html>",
        "",
        '{"choices": [{"mess',
        b"\xff\xfe{\x00}\x00",
        json.dumps(completion("é"), ensure_ascii=False).encode("latin-1"),
        b'{"choices": ' + b"9" * 5000 + b"}",
        b"[" * 100_000,
    ],
)
def test_malformed_bodies_may_heal(body: object) -> None:
    found = fault(body)
    assert (found.kind, found.retry, found.fatal) == (FailureKind.MALFORMED, True, False)


@pytest.mark.parametrize(
    ("body", "status", "said"),
    [
        (b"", 204, "HTTP 204: expected JSON, received an empty body"),
        (b" \n", 200, "expected JSON, received an empty body"),
        ('{"choices": "é"}'.encode("utf-16"), 200, "received a body in UTF-16: expected UTF-8"),
        ('{"choices": "é"}'.encode("utf-16-le"), 200, "received a body in UTF-16-LE"),
        ('{"choices": "é"}'.encode("latin-1"), 200, "(byte 0xe9 at 13 is not UTF-8"),
        (b'{"choices": "\0"}', 200, "(Invalid control character at character 13)"),
        (b'{"choices": [{"mess', 200, "(Unterminated string starting at character 14)"),
        (b"[" * 100_000, 200, "(nested too deeply)"),
    ],
)
def test_what_is_wrong_with_a_body(body: bytes, status: int, said: str) -> None:
    found = fault(body, status)
    assert (found.kind, found.retry) == (FailureKind.MALFORMED, True)
    assert said in found.message


def test_integers_beyond_what_python_reads() -> None:
    body = completion() | {"created": "long", "usage": {"prompt_tokens": "long"}}
    found = parse_reply(200, {}, json.dumps(body).replace('"long"', "9" * 5000).encode())
    assert isinstance(found, Reply)
    assert (found.text, found.usage.prompt_tokens) == ("B", None)


def test_error_in_the_choice() -> None:
    body = completion("partial", "error")
    assert fault(body).kind is FailureKind.SERVER
    body["choices"][0] |= {"finish_reason": "stop", "error": {"code": 429, "message": "later"}}
    assert fault(body).kind is FailureKind.RATE_LIMIT


@pytest.mark.parametrize(
    ("content", "text", "reasoning"),
    [
        (None, "", None),
        ("", "", None),
        ("  B ", "  B ", None),
        ([], "", None),
        ([{"type": "text", "text": "AN"}, "S", {"type": "image"}, None, 3], "ANS", None),
        ([{"type": "output_text", "text": "B"}, {"type": "text", "text": None}], "B", None),
        ([{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "B"}], "B", "hm"),
        ([{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}], "", "hm"),
        ([{"type": "reasoning", "text": "hm"}, {"type": "thinking", "thinking": 3}], "", "hm"),
        ("half a pair: \ud83d", "half a pair: \ufffd", None),
        ("a whole one: \U0001f600", "a whole one: \U0001f600", None),
    ],
)
def test_content(content: object, text: str, reasoning: str | None) -> None:
    found = reply(completion(content))
    assert (found.text, found.reasoning) == (text, reasoning)


def test_reasoning_in_a_field_of_its_own() -> None:
    assert reply(completion("B", reasoning="hm")).reasoning == "hm"
    assert reply(completion("B", reasoning_content="hm", reasoning="")).reasoning == "hm"
    assert reply(completion("B", reasoning_content=None)).reasoning is None


def test_tool_call_and_refusal_instead_of_text() -> None:
    called = reply(completion(None, "tool_calls", tool_calls=[{"id": "1"}]))
    assert (called.text, called.finish_reason_raw) == ("", "tool_calls")
    assert reply(completion(None, refusal="I can't.")).text == "I can't."


@pytest.mark.parametrize(
    ("raw", "finish"),
    [
        ("stop", "stop"),
        ("STOP", "stop"),
        ("eos", "stop"),
        ("end_turn", "stop"),
        ("length", "length"),
        ("MAX_TOKENS", "length"),
        ("SAFETY", "content_filter"),
        ("abort", None),
        (None, None),
        (7, None),
    ],
)
def test_finish_reason(raw: object, finish: str | None) -> None:
    found = reply(completion("B", raw))
    assert found.finish_reason == finish
    assert found.finish_reason_raw == (raw if isinstance(raw, str) else None)


def test_filtered_without_text_is_a_failure() -> None:
    found = fault(completion(None, "content_filter"))
    assert (found.kind, found.retry) == (FailureKind.CONTENT_FILTER, False)


def test_usage_of_the_field_cases() -> None:
    # api.jsonl, b026.
    usages = [
        {"prompt_tokens": 4, "cache_read_input_tokens": 19000},
        {"prompt_tokens": 19004, "prompt_tokens_details": {"cached_tokens": 19000}},
    ]
    assert [read_usage(usage).prompt_tokens for usage in usages] == [19004, 19004]
    assert [read_usage(usage).cached_tokens for usage in usages] == [19000, 19000]


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        (None, Usage()),
        ([], Usage()),
        ({"prompt_tokens": "9", "completion_tokens": True}, Usage(9)),
        (
            {"prompt_tokens": " 12", "completion_tokens": "4.0", "cost": "0.25"},
            Usage(12, 4, cost=0.25),
        ),
        ({"prompt_tokens": "many", "completion_tokens": "1.5", "cost": "-1"}, Usage()),
        ({"prompt_tokens": "1e3", "completion_tokens": "9" * 19}, Usage()),
        ({"prompt_tokens": -1, "completion_tokens": 1.5}, Usage()),
        ({"prompt_tokens": 2**63, "cost": "free"}, Usage()),
        ({"cost": 10**400}, Usage()),
        ({"prompt_tokens": 9.0, "completion_tokens": 0}, Usage(9, 0)),
        ({"input_tokens": 9, "output_tokens": 2}, Usage(9, 2)),
        ({"prompt_tokens": 9, "prompt_cache_hit_tokens": 5}, Usage(9, cached_tokens=5)),
        ({"prompt_tokens": 9, "cache_read_input_tokens": 5}, Usage(9, cached_tokens=5)),
        (
            {"prompt_tokens": 9, "completion_tokens": 1, "total_tokens": 15}
            | {"cache_read_input_tokens": 5},
            Usage(14, 1, cached_tokens=5),
        ),
        (
            {"prompt_tokens": 9, "completion_tokens_details": {"reasoning_tokens": 3}},
            Usage(9, reasoning_tokens=3),
        ),
        ({"prompt_tokens_details": None, "cost": 0.25}, Usage(cost=0.25)),
    ],
)
def test_usage(usage: object, expected: Usage) -> None:
    assert read_usage(usage) == expected


def test_names_of_what_replied() -> None:
    names = {"model": "phi-4-q8", "provider": "P1", "system_fingerprint": "fp", "id": "x9"}
    found = reply({**completion(), **names})
    assert (found.served_model, found.provider) == ("phi-4-q8", "P1")
    assert (found.fingerprint, found.response_id) == ("fp", "x9")
    odd = reply({**completion(), "model": 1, "provider": {}, "system_fingerprint": None})
    assert (odd.served_model, odd.provider, odd.fingerprint) == (None, None, None)


@pytest.mark.parametrize("location", ["https://u:p@evil.example/v1?k=1", "/other", "", "//[bad"])
def test_redirect_is_final_and_says_where_to(location: str) -> None:
    found = fault("", 307, {"Location": location})
    assert found.fatal and not found.retry
    assert "base_url" in found.message
    assert "u:p" not in found.message
    if "evil" in location:
        assert "https://evil.example/v1" in found.message


@pytest.mark.parametrize(
    ("location", "said"),
    [
        ("https://api.example/v1/chat/completions", "the base_url is https://api.example/v1"),
        ("/login", "redirected to 'http://h/login', which is not followed: mend base_url"),
        ("completions", "redirected to itself"),
        ("", "neither a reply nor a place"),
    ],
)
def test_a_redirect_says_what_to_do(location: str, said: str) -> None:
    url = "http://h/v1/chat/completions"
    found = parse_reply(302, {"Location": location} if location else {}, b"", NOW, url=url)
    assert isinstance(found, Fault)
    assert (found.kind, found.fatal) == (FailureKind.REDIRECTED, True)
    assert said in found.message


@pytest.mark.parametrize(
    ("headers", "wait_s"),
    [
        ({}, None),
        ({"retry-after": "95"}, 95.0),
        ({"retry-after": " 1.5 "}, 1.5),
        ({"retry-after-ms": "1500", "retry-after": "2"}, 1.5),
        ({"retry-after": "Thu, 01 Jan 2026 00:01:00 GMT"}, 60.0),
        ({"retry-after": "Wed, 31 Dec 2025 00:01:00 GMT"}, 0.0),
        # Against the server's own clock, an hour behind.
        (
            {"retry-after": "Wed, 31 Dec 2025 23:00:30 GMT"}
            | {"date": "Wed, 31 Dec 2025 23:00:00 GMT"},
            30.0,
        ),
        ({"retry-after": "-5"}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "9" * 40}, WAIT_MOST_S),
        ({"retry-after": "Thu, 99 Jan 2026 00:00:00 GMT"}, None),
    ],
)
def test_retry_after(headers: dict[str, str], wait_s: float | None) -> None:
    assert retry_after(headers, NOW) == wait_s


def test_a_wait_beyond_the_cap_is_never_shortened() -> None:
    assert fault("", 503, {"Retry-After": str(WAIT_CAP_S)}).wait_s == WAIT_CAP_S
    beyond = fault("", 429, {"Retry-After": "3600"})
    assert (beyond.kind, beyond.retry, beyond.fatal) == (FailureKind.QUOTA, False, True)
    assert "3600 s" in beyond.message


def test_messages_are_one_short_line() -> None:
    found = fault(
        {"error": {"message": "a\n\x1b[31mb" + "c" * 9000, "metadata": {"raw": "r"}}}, 500
    )
    assert found.message.startswith("HTTP 500: a [31mbc")
    assert len(found.message) <= 600
    assert "; r" in found.message
    assert clip("x" * 10, 5) == "xxxx…"


@settings(deadline=None)
@given(st.integers(100, 599), st.binary(max_size=60))
def test_any_bytes_are_read(status: int, body: bytes) -> None:
    parse_reply(status, {}, body, NOW)


NAMES = (
    *("error", "choices", "message", "content", "finish_reason", "usage", "code", "type"),
    *("text", "metadata", "raw", "prompt_tokens", "cost", "reasoning", "thinking"),
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(NAMES),
            inner,
            max_size=4,
        )
    ),
    max_leaves=20,
)


@settings(deadline=None)
@given(st.sampled_from([200, 400, 429, 500]), JSON, JSON, JSON)
def test_any_json_is_read(status: int, whole: object, message: object, usage: object) -> None:
    for body in (whole, {"choices": [{"message": message}], "usage": usage}):
        parsed = parse_reply(status, {}, json.dumps(body).encode(), NOW)
        assert isinstance(parsed, Fault) or "\n" not in (parsed.finish_reason or "")

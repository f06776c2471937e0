"""Provider routing in a study file: what is sent, what it changes, what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from formatspan.errors import RunError, StudyError
from formatspan.grid import content_hash, endpoint_hash
from formatspan.growth import merge
from formatspan.routing import is_pinned
from formatspan.study import Study


def _study(provider: object = None, **keys: Any) -> Study:  # noqa: ANN401
    model = {"model": "openrouter/m", **({"provider": provider} if provider else {}), **keys}
    return Study.build({"models": [model], "tasks": ["demo_number"]})


def test_it_is_sent_and_is_part_of_the_identity() -> None:
    rules = {"order": ["deepinfra", "together"], "allow_fallbacks": False}
    (entry,) = _study(rules).models
    assert entry.spec().extra_body == {"provider": rules}
    (plain,) = _study().models
    assert plain.spec().extra_body == {}
    assert endpoint_hash(entry, {}) != endpoint_hash(plain, {})
    assert Study.build(_study(rules).model_dump(mode="json", exclude_none=True)) == _study(rules)


def test_a_study_without_it_keeps_its_identity() -> None:
    (entry,) = _study(extra_body={"top_k": 1}).models
    assert entry.body == {"top_k": 1}
    before = {"base_url": None, "headers": {}, "extra_body": {"top_k": 1}, "revision": None}
    assert endpoint_hash(entry, {}) == content_hash({**before, "model_sha256": None})


def test_another_provider_is_another_run() -> None:
    with pytest.raises(RunError, match=r"models\[m\]\.provider"):
        merge(_study({"only": ["a"]}), _study({"only": ["b"]}))


@pytest.mark.parametrize(
    ("provider", "fault"),
    [
        ({"onli": ["a"]}, r"models\[0\]\.provider\.onli: unknown key"),
        ({"quantizations": ["fp7"]}, r"quantizations\[0\]"),
        ({"only": []}, "only"),
        ({"allow_fallbacks": "maybe"}, "allow_fallbacks"),
        ({"sort": "beauty"}, "sort"),
    ],
)
def test_what_is_refused(provider: object, fault: str) -> None:
    with pytest.raises(StudyError, match=fault) as raised:
        _study(provider)
    assert "\n" not in str(raised.value)


def test_it_is_given_once_and_to_a_router() -> None:
    with pytest.raises(StudyError, match="given twice"):
        _study({"only": ["a"]}, extra_body={"provider": {"only": ["b"]}})
    with pytest.raises(StudyError, match="behind a router"):
        Study.build(
            {
                "models": [{"model": "scripted:", "provider": {"only": ["a"]}}],
                "tasks": ["demo_number"],
            }
        )


@pytest.mark.parametrize(
    ("rules", "pinned"),
    [
        (None, False),
        ({"only": ["a"]}, True),
        ({"only": ["a", "b"]}, False),
        ({"order": ["a"]}, False),
        ({"order": ["a"], "allow_fallbacks": False}, True),
        ({"quantizations": ["fp8"]}, False),
    ],
)
def test_one_provider_is_pinned(rules: dict[str, Any] | None, pinned: bool) -> None:
    assert is_pinned("openrouter", rules) is pinned
    assert is_pinned("openai", rules)

from __future__ import annotations

import subprocess
import sys

import formatspan


def test_public_names_are_listed_once_and_there() -> None:
    # That they are sorted is the linter's business (RUF022).
    assert len(set(formatspan.__all__)) == len(formatspan.__all__)
    for name in formatspan.__all__:
        assert getattr(formatspan, name) is not None


def test_unknown_name_is_an_attribute_error() -> None:
    assert not hasattr(formatspan, "no_such_name")


def test_help_loads_nothing_heavy() -> None:
    code = (
        "import sys, formatspan.cli; "
        "heavy = {'polars', 'numpy', 'pydantic', 'aiohttp', 'openvino', 'jinja2', 'yaml'}; "
        "print(sorted(heavy & sys.modules.keys()))"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"

"""Templates: what could work without end is refused before it starts."""

from __future__ import annotations

import pytest

from formatspan.errors import WrapperError
from formatspan.records import Message
from formatspan.wrappers import Wrapper, check, family
from formatspan.wrappers.sandbox import MAX_TEMPLATE, fill

REST = (
    "{{ instruction }}{{ padding }} {{ question }} {{ context }}"
    "{% for o in options %}{{ o.label }} {{ o.text }}{% endfor %} say {{ answer }}"
)


def _check(template: str) -> None:
    check(Wrapper("mine", (Message("user", template + REST),), family("plain").contract))


@pytest.mark.parametrize(
    ("template", "said"),
    [
        ("{% for i in range(10**9) %}{% endfor %}", "a loop over anything but options"),
        (
            "{% for a in options %}{% for b in options %}{% for c in options %}"
            "{% endfor %}{% endfor %}{% endfor %}",
            "a loop inside 2 others",
        ),
        ("{% for c in question %}{% endfor %}", "a loop over anything but options"),
        ("{% set options = question %}", "another value for 'options'"),
        ("{% for options in ['x'] %}{% endfor %}", "another value for 'options'"),
        ("{% for o in options recursive %}{% endfor %}", "a recursive loop"),
        ("{{ 'x' * 10**9 }}", "a product"),
        ("{{ 10 ** 10 ** 10 }}", "a power"),
        ("{{ '%999999999d' % 1 }}", "the operator %"),
        ("{{ '{:>999999999}'.format(1) }}", "a call"),
        ("{{ 'x'.center(1000000000) }}", "a call"),
        ("{{ lipsum(n=1000000) }}", "a call"),
        ("{{ question | center(1000000000) }}", "the filter 'center'"),
        ("{{ question | indent(1000000000) }}", "the filter 'indent'"),
        ("{{ options | map('center', 1000000000) | join }}", "the filter 'map' with"),
        ("{{ question | replace('e', 'ee') | replace('e', 'ee') }}", "the filter 'replace'"),
        ("{{ ((question | replace('e', 'ee')) ~ '') | replace('e', 'ee') }}", "text put together"),
        ("{{ question | join(question) }}", "an argument that is not written out"),
        ("{{ question | tojson | tojson }}", "the filter 'tojson'"),
        ("{% macro f() %}{{ f() }}{{ f() }}{% endmacro %}{{ f() }}", "a macro"),
        ("{% set a = question ~ question %}" + "{% set a = a ~ a %}" * 60, "text put together"),
        ("{% set a = [question] %}" + "{% set a = [a, a] %}" * 60, "text put together"),
        ("{% set ns = namespace(a=1) %}", "a call"),
        ("{% set x %}a{% endset %}", "a set block"),
        ("{% include 'x' %}", "an include"),
        ("{{ " + "(" * 5000 + "1" + ")" * 5000 + " }}", "nested too deeply"),
        ("{% if true %}" * 3000, "nested too deeply"),
        ("x" * MAX_TEMPLATE, "longer than 50,000 characters"),
        ("{{ nothing }}", "a template sees instruction, context"),
        ("{{ question.__class__ }}", "unsafe"),
    ],
)
def test_refused_with_the_reason(template: str, said: str) -> None:
    with pytest.raises(WrapperError) as caught:
        _check(template)
    assert str(caught.value).startswith("wrapper 'mine': template: ")
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "template",
    [
        "{% if context %}Passage{% else %}None{% endif %}",
        "{% for o in options if o.text %}{{ loop.index + 1 }}{% endfor %}",
        "{% for o in options[1:] | reverse %}{{ o.label ~ ')' }}{% endfor %}",
        "{% set n = options | length %}{{ n }}",
        "{% for key in ['A', 'B'] %}{% for o in options %}-{% endfor %}{% endfor %}",
        "{{ options | map(attribute='label') | join(', ') }}",
        "{% raw %}{{ x }}{% endraw %}{# a comment #}",
        "{{ 'many' if options | length > 3 else 'few' }}",
    ],
)
def test_what_a_shell_needs_is_there(template: str) -> None:
    _check(template)


def test_output_is_bounded_by_what_goes_in() -> None:
    template = "{% for a in options %}{% for b in options %}{{ question }}{% endfor %}{% endfor %}"
    values = {"options": ["x"] * 62, "question": "q" * 10_000}
    with pytest.raises(WrapperError, match="makes more than 20 times the text that goes in"):
        fill(template, values)

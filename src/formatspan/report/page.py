"""The page: one HTML file that holds everything it needs and runs nothing it does not know.

Its content-security policy allows the scripts and styles below by hash and nothing else: no
inline handlers, no ``eval``, no connection anywhere. Data are JSON that no parser takes for
markup; the scripts show them as text only.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Sequence
from functools import cache
from importlib import resources
from typing import Any, NamedTuple

from jinja2 import Environment, PackageLoader, StrictUndefined

from formatspan._version import __version__
from formatspan.counting import counted
from formatspan.report import method
from formatspan.report.advice import advice
from formatspan.report.checklist import checklist
from formatspan.report.escape import one_line, visible
from formatspan.report.explorer import Explorer
from formatspan.report.falsifier_section import Section
from formatspan.report.figures.table import Drawn, missing_extra
from formatspan.report.figures.theme import colours
from formatspan.report.league import league
from formatspan.report.numbers import count, percent
from formatspan.report.provenance import Provenance
from formatspan.report.remarks import remarks
from formatspan.report.sentences import answer
from formatspan.report.table_list import TABLES
from formatspan.report.view import View

_STRETCHED = ("facet", "hconcat", "vconcat", "concat", "repeat")
_IN_JSON = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"})


class Content(NamedTuple):
    """What a page is made of."""

    view: View
    provenance: Provenance
    explorer: Explorer
    figures: Sequence[Drawn]
    falsifier: Section | None = None


def page(content: Content) -> str:
    """The whole HTML of a report.

    Raises:
        BackendError: The extra ``report`` is not installed.
    """
    falsified = [content.falsifier.figure] if content.falsifier else []
    shown = [f for f in (*content.figures, *falsified) if f.spec is not None]
    scripts = {
        "vega": _vega() if shown else "",
        "figures": asset("figures.js"),
        "explorer": asset("explorer.js"),
        "sideways": asset("sideways.js"),
    }
    style = asset("page.css") + _wrapper_colours(content.view.wrappers)
    return _environment().get_template("page.html.j2").render(
        **_sections(content),
        policy=policy(scripts=[s for s in scripts.values() if s], styles=[style]),
        scripts=scripts,
        style=style,
        figure_data=embedded([[f.figure.name, stretched(f.spec)] for f in shown if f.spec]),
        reply_data=embedded(content.explorer.data(content.view.study)),
    )  # fmt: skip


def _sections(content: Content) -> dict[str, Any]:
    view, found = content.view, content.provenance
    return {
        "view": view,
        "study": view.study,
        "analysis": view.analysis,
        "version": __version__,
        "answer": answer(view),
        "league": league(view),
        "figures": content.figures,
        "remarks": {f.figure.name: remarks(f.figure.name, view) for f in content.figures if f.spec},
        "tables": [(table, table.rows(view)) for table in TABLES],
        "explorer": content.explorer,
        "falsifier": content.falsifier,
        "advice": advice(view),
        "checklist": checklist(view, found),
        "provenance": found,
        "templates": method.templates(view, found),
        "assumed": method.assumed(view),
        "method": method,
    }


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("formatspan.report", "assets"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_unsteered,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "count": count,
        "counted": counted,
        "percent": percent,
        "line": one_line,
    }
    return environment


def _unsteered(value: object) -> object:
    """No text of a user or an endpoint turns or hides what stands beside it."""
    return visible(value) if type(value) is str else value  # not Markup: scripts and styles


def asset(name: str) -> str:
    """A file of the package's folder ``assets``."""
    return (resources.files("formatspan.report") / "assets" / name).read_text(encoding="utf-8")


@cache
def _vega() -> str:
    try:
        import vl_convert
    except ImportError as error:
        raise missing_extra(error) from None
    bundle: str = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;")
    return bundle.replace("\r", "").replace("</script", "<\\/script").replace("<!--", "<\\!--")


def policy(*, scripts: Sequence[str], styles: Sequence[str]) -> str:
    """The content-security policy of a page with these scripts and styles."""
    return "; ".join(
        (
            "default-src 'none'",
            f"script-src {' '.join(map(source_hash, scripts))}",
            f"style-src {' '.join(map(source_hash, styles))}",
            "img-src data:",
            "base-uri 'none'",
            "form-action 'none'",
        )
    )


def source_hash(text: str) -> str:
    """The CSP source expression of an inline script or style."""
    digest = hashlib.sha256(text.encode("utf-8")).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"


def embedded(data: object) -> str:
    """``data`` as JSON that can stand in a script element: ASCII, without markup."""
    text = json.dumps(data, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return text.translate(_IN_JSON)


def stretched(spec: dict[str, Any]) -> dict[str, Any]:
    """A figure of one panel as wide as its place on the page."""
    if any(key in spec for key in _STRETCHED):
        return spec
    return {**spec, "width": "container", "autosize": {"type": "fit-x", "contains": "padding"}}


def _wrapper_colours(wrappers: Sequence[str]) -> str:
    """A class for each wrapper's place: inline styles are not allowed."""
    rules = [f".w{i}{{--wrapper:{colour}}}" for i, colour in enumerate(colours(wrappers))]
    return "\n" + "\n".join(rules) + "\n"

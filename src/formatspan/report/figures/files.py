"""Figures as files: SVG, PNG and PDF through vl-convert."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from formatspan.atomic import write_bytes
from formatspan.report.figures.table import Drawn, missing_extra
from formatspan.report.figures.theme import CURRENT, FILE_FONT, INK

PNG_SCALE = 2.0


def write_figures(figures: Sequence[Drawn], folder: Path) -> list[Path]:
    """Write every figure that has data; returns the files.

    Raises:
        BackendError: The extra ``report`` is not installed.
    """
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for found in figures:
        for suffix, content in _rendered(found):
            path = folder / f"{found.figure.name}.{suffix}"
            write_bytes(path, content)
            written.append(path)
    return written


def _rendered(found: Drawn) -> Iterator[tuple[str, bytes]]:
    if found.spec is None:
        return
    try:
        import vl_convert
    except ImportError as error:
        raise missing_extra(error) from None
    svg: str = vl_convert.vegalite_to_svg(for_paper(found.spec))
    yield "svg", svg.encode("utf-8")
    yield "png", vl_convert.svg_to_png(svg, scale=PNG_SCALE)
    yield "pdf", vl_convert.svg_to_pdf(svg)


def for_paper(spec: dict[str, Any]) -> dict[str, Any]:
    """The specification with ink on white in place of the page's colours and fonts."""
    text = json.dumps({**spec, "config": {**spec["config"], "font": FILE_FONT}})
    printed: dict[str, Any] = json.loads(text.replace(f'"{CURRENT}"', f'"{INK}"'))
    printed["background"] = "white"
    printed["padding"] = 12
    return printed

"""What the doctor found, on the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text

from formatspan.report.terminal import plain

if TYPE_CHECKING:
    from formatspan.checks.doctor import Finding

_STYLES = {"ok": "green", "warn": "yellow", "stop": "bold red"}


def print_findings(findings: Sequence[Finding], console: Console) -> None:
    """One line each, under the model's name."""
    for model in dict.fromkeys(f.model for f in findings):
        console.print(Text(plain(model), style="bold"))
        for finding in (f for f in findings if f.model == model):
            text = Text(f"  {finding.mark.value:<5}", style=_STYLES[finding.mark.value])
            text.append(f"{finding.about:<11}", style="bold")
            text.append(plain(" ".join(finding.found.split())), style="default")
            console.print(text, soft_wrap=True)

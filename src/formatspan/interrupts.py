"""What Ctrl-C ends with; apart, since it may come while everything else is still loading."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import NoReturn

CODE = 130
"""Exit code, as a shell gives it to what SIGINT ended."""
RESUMING = ("run", "falsify")
"""Commands that go on where they stopped."""


def leave(args: Sequence[str]) -> NoReturn:
    """Say that the command was interrupted, and whether it can go on; exit code 130."""
    resumes = next((a for a in args if not a.startswith("-")), "") in RESUMING
    going_on = "; the same command goes on where it stopped" if resumes else ""
    sys.stderr.write(f"interrupted{going_on}\n")
    raise SystemExit(CODE)

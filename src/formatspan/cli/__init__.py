"""The command line: parse, one call of the library, print."""

from formatspan.cli.entry import app, main

__all__ = ["app", "main"]

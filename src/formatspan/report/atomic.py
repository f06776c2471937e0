"""Whole files at once, for the report's own: the one way in which this package writes files."""

from formatspan.atomic import write_bytes, write_text, write_with

__all__ = ["write_bytes", "write_text", "write_with"]

"""Wrappers: the shells around a question."""

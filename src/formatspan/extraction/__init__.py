"""Extraction: a pure function from a reply to an answer or the reason why there is none."""

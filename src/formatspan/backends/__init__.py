"""Backends: what answers requests. `base` is the protocol, `table` finds an implementation."""

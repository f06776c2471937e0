"""A stand-in for an OpenAI-compatible endpoint, made to misbehave: ``formatspan stub``.

It answers at once what a prompt's shape asks for, after a set latency, and gives a set share of
faulty replies: refusals, malformed bodies, dropped connections. What it does with a request is
fixed by its seed and the request's content, never by the order of arrival, and a request meets
a bounded number of faults in a row, so that a patient client always gets its answer.
"""

from formatspan.stub.faults import KINDS
from formatspan.stub.serve import Served, serving
from formatspan.stub.settings import Settings

__all__ = ["KINDS", "Served", "Settings", "serving"]

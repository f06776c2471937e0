"""``python -m formatspan.stub PORT LATENCY_S``: the fast stub that benchmarks measure against."""

from __future__ import annotations

import sys

from formatspan.stub.serve import serve
from formatspan.stub.settings import Settings

if __name__ == "__main__":
    serve(
        Settings(latency_s=float(sys.argv[2]), text="B"),
        "127.0.0.1",
        int(sys.argv[1]),
        lambda text: print(text, flush=True),
    )

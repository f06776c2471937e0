"""The embedded engine: GGUF models run in this process by OpenVINO GenAI.

`open_model` is the factory of addresses such as ``local:smollm2-135m-instruct`` and
``local:/path/to/model.gguf``. The parts, in the order a model passes through them: `models`
finds the file, `gguf_file` reads and re-encodes it, `cache` keeps what was made of it,
`runtime` loads the engine without its telemetry, `decoding` translates requests, `engine` is
the thread that drives the pipeline, `backend` ties them together.
"""

from formatspan.backends.local.backend import open_model

__all__ = ["open_model"]

"""What a stub server does, in one record; checked once."""

from __future__ import annotations

from dataclasses import dataclass, fields

from formatspan.errors import UserError

PARAMETERS = (
    "max_tokens",
    "max_completion_tokens",
    "temperature",
    "top_p",
    "seed",
    "stop",
    "response_format",
)
"""Parameters of a request that a stub can be told to refuse."""


@dataclass(frozen=True, slots=True)
class Settings:
    """How a stub server behaves."""

    latency_s: float = 0.0
    """Seconds before every reply."""
    jitter_s: float = 0.0
    """Further seconds, drawn uniformly from 0 to this."""
    faults: float = 0.0
    """Share of replies that are faulty."""
    kinds: tuple[str, ...] = ()
    """Kinds of fault that are drawn; empty means all."""
    most_faults: int = 2
    """Faults in a row that one request meets at most."""
    seed: int = 0
    """Decides which requests meet which faults."""
    slots: int | None = None
    """Requests in hand beyond which a 429 is the answer."""
    per_minute: int | None = None
    """Requests a minute beyond which a 429 with a reset time is the answer."""
    per_day: int | None = None
    """Requests after which a daily quota is used up."""
    refuses: tuple[str, ...] = ()
    """Parameters that every request is refused for."""
    text: str | None = None
    """The one text of every reply; None gives the shape that the prompt asks for."""
    retry_after_s: float = 1.0
    """Seconds that a refused request is told to wait."""
    hang_s: float = 30.0
    """Seconds after which a reply that hangs or stalls is given up."""
    huge_bytes: int = 50_000_000
    """Length of a body that is far too long."""
    echo: bool = False
    """Error texts repeat the request's Authorization header, as careless proxies do."""

    def __post_init__(self) -> None:
        if not 0 <= self.faults <= 1:
            raise UserError(f"faults: expected a share from 0 to 1, received {self.faults:g}")
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, int | float) and value < 0:
                raise UserError(f"{field.name}: expected 0 or more, received {value:g}")
        for name in self.refuses:
            if name not in PARAMETERS:
                raise UserError(f"refuses: {name!r}: expected one of {', '.join(PARAMETERS)}")

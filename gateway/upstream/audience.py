"""Who stands before a gateway."""

from __future__ import annotations

from gateway.values import dataclass


@dataclass(slots=True)
class Audience:
    """Whether anybody does whom a server may ask for something."""

    askable: bool = False
    """Set before sessions open: what a connection declares holds as long as it lives."""

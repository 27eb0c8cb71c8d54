"""Whether a gateway has callers that servers may ask for something."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class Audience:
    """Shared by a gateway and its sources."""

    askable: bool = False
    """Whether they can be asked; set before sessions open, which declare it once for all calls."""

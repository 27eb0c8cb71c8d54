"""What use says at one moment, for one tenant: what a search and its next steps read. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from gateway.search.usage.compat import Access, Together
from gateway.search.usage.sequences import Learned

Multipliers: TypeAlias = Mapping[str, float]
"""Of tools by canonical id, 0.85 to 1.15; see `gateway.search.usage.bounded`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Exposure:
    """What searches returned, and what together; see `gateway.search.usage.compat`."""

    accesses: Mapping[str, Access]
    pairs: Mapping[frozenset[str], Together]
    now_s: float
    """When it was read, in seconds since the epoch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Signals:
    """What the ledger said for one tenant when it was read last."""

    liked: Multipliers = field(default_factory=dict)
    learned: Learned = field(default_factory=Learned)
    """Next steps that calls have shown."""
    exposure: Exposure | None = None
    """Where rankings are those of an associative memory."""
    mark: int = 0
    """Equal for equal signals."""
    read_at: float = -math.inf


NOTHING = Signals()

"""What past calls say at one moment, for one tenant: searches and next steps read it. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from gateway.usage.associative import AccessStats, CoAccess
from gateway.usage.transitions import LearnedSteps

Multipliers: TypeAlias = Mapping[str, float]
"""Of tools by canonical id, 0.85 to 1.15; see `gateway.usage.outcome_rerank`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Associations:
    """What searches returned, and what together; see `gateway.usage.associative`."""

    accesses: Mapping[str, AccessStats]
    pairs: Mapping[frozenset[str], CoAccess]
    now_s: float
    """When it was read, in seconds since the epoch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageSignals:
    """What the call log said for one tenant when it was read last."""

    multipliers: Multipliers = field(default_factory=dict)
    learned: LearnedSteps = field(default_factory=LearnedSteps)
    """Next steps that calls have shown."""
    associations: Associations | None = None
    """Where rankings are those of an associative memory."""
    fingerprint: int = 0
    """Equal for equal signals, in this process."""
    read_at: float = -math.inf


NO_SIGNALS = UsageSignals()

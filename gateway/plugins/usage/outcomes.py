"""By how much the outcomes of past calls multiply a score: 0.85 to 1.15, decaying. Pure.

Only calls count, by how they ended. Being listed or searched for changes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

MAX_SHIFT = 0.15
"""Share of a score that outcomes may move it by."""
HALF_LIFE_S = 30 * 24 * 3600.0
"""Seconds, a month, after which a call counts half."""
PRIOR = 5.0
"""Calls, half of them successes, that are assumed of each tool."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcomes:
    """How the calls of one tool ended, decayed to one moment."""

    succeeded: float = 0.0
    failed: float = 0.0

    @property
    def calls(self) -> float:
        """How many there were."""
        return self.succeeded + self.failed

    def __add__(self, other: Outcomes) -> Outcomes:
        """Add the calls of both."""
        return Outcomes(
            succeeded=self.succeeded + other.succeeded, failed=self.failed + other.failed
        )


def decay(age_s: float) -> float:
    """Return what a call that is *age_s* old counts, in (0, 1]; one from the future counts 1."""
    return float(0.5 ** (max(age_s, 0.0) / HALF_LIFE_S))


def multiplier(outcomes: Outcomes) -> float:
    """Return the factor that outcomes multiply a score by, 0.85 to 1.15; 1 without any calls.

    What the rate of success, shrunk to a half, differs from a half counts by how many calls there
    were.
    """
    rate = (outcomes.succeeded + PRIOR / 2) / (outcomes.calls + PRIOR)
    certainty = outcomes.calls / (outcomes.calls + PRIOR)
    return 1 + MAX_SHIFT * certainty * (2 * rate - 1)

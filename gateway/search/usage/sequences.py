"""What is called after what, in one task: next steps that use has shown. Pure.

* Only calls that succeeded, in the order in which they were made, each with the one before it.
* A pair is believed by how often it was seen, and by what share of the first tool's calls it was.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

PRIOR = 2.0
"""So many times a pair must be seen to be believed half of its share."""
MIN_COUNT = 2
MAX_EACH = 10
"""At most so many next steps of one tool."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Followed:
    """One tool was called after another."""

    before: str
    """Canonical ids."""
    after: str
    count: int
    """In how many tasks."""
    confidence: float
    """In (0, 1]: the share of the tasks in which the first was not the last, shrunk."""


def followed(tasks: Iterable[Sequence[str]], *, min_count: int = MIN_COUNT) -> tuple[Followed, ...]:
    """Count what follows what.

    Args:
        tasks: The tools called in each task, in order, only calls that succeeded. One that is
            called again right away does not follow itself.
        min_count: A pair of fewer tasks says nothing.

    Returns:
        By the tool before, then the surest first; ties by name.
    """
    pairs: Counter[tuple[str, str]] = Counter()
    for task in tasks:
        pairs.update({pair for pair in pairwise(task) if pair[0] != pair[1]})
    return of_counts(pairs, min_count=min_count)


def of_counts(
    pairs: Mapping[tuple[str, str], int], *, min_count: int = MIN_COUNT
) -> tuple[Followed, ...]:
    """Judge pairs that were counted already; see `followed`."""
    starts: Counter[str] = Counter()
    for (before, _), count in pairs.items():
        starts[before] += count
    judged = sorted(
        (
            Followed(
                before=before,
                after=after,
                count=count,
                confidence=round(count / (starts[before] + PRIOR), 6),
            )
            for (before, after), count in pairs.items()
            if count >= min_count
        ),
        key=lambda each: (each.before, -each.confidence, each.after),
    )
    taken: Counter[str] = Counter()
    kept = []
    for each in judged:
        taken[each.before] += 1
        if taken[each.before] <= MAX_EACH:
            kept.append(each)
    return tuple(kept)

"""Effect of past calls on suggested next steps, and score multipliers by outcome.

The evaluation tests each past task against all others. For each call after another, it ranks next
steps without signals, by the other tasks' transitions, and by their outcomes. The correct answer is
the next called tool. Queries are not used, because they are usually not stored.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from gateway.index.snapshot import Snapshot
from gateway.plugins.usage.call_log import Task
from gateway.plugins.usage.transitions import TransitionCounts
from gateway.runtime.gains import Gain, measure_gain
from gateway.search.expand.next_steps import score_next_steps
from gateway.search.expand.supplements import Supplement
from gateway.search.learned import LearnedSteps
from gateway.search.rank.fusion import rerank
from gateway.types import Filters

MAX_SHIFT = 0.15
"""Maximum change of a tool's score by outcomes of calls, as a share of the score."""
HALF_LIFE_S = 30 * 24 * 3600.0
"""Age in seconds at which the weight of a call is one half."""
PRIOR = 5.0
"""Number of calls, half of them successful, that are added to those of each tool."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcomes:
    """Sums of the weights of one tool's successful and failed calls."""

    succeeded: float = 0.0
    failed: float = 0.0

    @property
    def calls(self) -> float:
        """Sum of the weights of all calls."""
        return self.succeeded + self.failed

    def __add__(self, other: Outcomes) -> Outcomes:
        return Outcomes(
            succeeded=self.succeeded + other.succeeded, failed=self.failed + other.failed
        )


def decay(age_s: float) -> float:
    """Return the weight of a call by its age in seconds, in (0, 1]; 1 for negative ages."""
    return float(0.5 ** (max(age_s, 0.0) / HALF_LIFE_S))


def multiplier(outcomes: Outcomes) -> float:
    """Return the factor for a tool's score, 0.85 to 1.15; 1 without calls.

    The factor grows with the success rate, and is 1 at a rate of one half. With more calls, it is
    farther from 1.
    """
    rate = (outcomes.succeeded + PRIOR / 2) / (outcomes.calls + PRIOR)
    certainty = outcomes.calls / (outcomes.calls + PRIOR)
    return 1 + MAX_SHIFT * certainty * (2 * rate - 1)


MAX_CALLS = 400
"""Maximum number of calls in an evaluation, from the newest tasks."""
MAX_RANK = 50
"""Rank below which a suggested tool counts as not found."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageEvaluation:
    """Measured gains of learned next steps (`learn`) and score multipliers (`rerank`)."""

    learn: Gain = field(default_factory=Gain)
    rerank: Gain = field(default_factory=Gain)


def evaluate_usage(
    snapshot: Snapshot, tasks: Sequence[Task], outcomes: Mapping[str, Outcomes]
) -> UsageEvaluation:
    """Measure the gains of learned steps and of outcomes, leaving out one task at a time.

    Args:
        snapshot: Catalog. Tools outside it are skipped.
        tasks: Tasks, oldest first.
        outcomes: Outcomes of each tool's calls, including those of *tasks*.
    """
    if snapshot.vectors is not None and snapshot.vectors.blocking:
        # A vector database would be scanned twice for each call.
        snapshot = replace(snapshot, vectors=None)
    learn: list[list[float]] = []
    reranked: list[list[float]] = []
    counts = TransitionCounts.of(
        [task.tools for task in tasks], [decay(task.age_s) for task in tasks]
    )
    remaining = MAX_CALLS
    for task in reversed(tasks):
        if remaining <= 0:
            break
        weight = decay(task.age_s)
        counts.remove(task.tools, weight)
        other_outcomes = dict(outcomes)
        for tool in task.tools:
            counted = other_outcomes.get(tool, Outcomes())
            other_outcomes[tool] = replace(counted, succeeded=max(counted.succeeded - weight, 0.0))
        gains = list(_judge(snapshot, task, counts, other_outcomes))
        counts.add(task.tools, weight)
        remaining -= len(gains)
        learn.append([gain for gain, _ in gains])
        reranked.append([gain for _, gain in gains])
    return UsageEvaluation(learn=measure_gain(learn), rerank=measure_gain(reranked))


def _judge(
    snapshot: Snapshot, task: Task, counts: TransitionCounts, other_outcomes: Mapping[str, Outcomes]
) -> Iterator[tuple[float, float]]:
    """Yield two gains for each call of *task*: by learned next steps, and by outcomes.

    Args:
        snapshot: Catalog.
        task: Task to evaluate.
        counts: Transitions of the other tasks.
        other_outcomes: Outcomes of the calls of other tasks, keyed by tool id.
    """
    if snapshot.graph is None:
        return
    mask, by_id = snapshot.mask(Filters()), snapshot.eligibility.by_id
    positions = [by_id[tool] for tool in dict.fromkeys(task.tools) if tool in by_id]
    visible = [position for position in positions if mask[position]]
    for index in range(1, len(visible)):
        used, target = visible[:index], visible[index]
        last = snapshot.entities[used[-1]].id
        learned = counts.learned_steps(before=(last,))
        scores = score_next_steps(snapshot, used, mask=mask, learned=learned)
        plain = scores.best(MAX_RANK, LearnedSteps())
        base = _reciprocal_rank(plain, target)
        ids = [snapshot.entities[step.position].id for step in plain]
        multipliers = {
            tool: multiplier(other_outcomes[tool]) for tool in ids if tool in other_outcomes
        }
        order = rerank(ids, [step.score for step in plain], multipliers)
        yield (
            _reciprocal_rank(scores.best(MAX_RANK, learned), target) - base,
            _reciprocal_rank([plain[place] for place in order], target) - base,
        )


def _reciprocal_rank(steps: Sequence[Supplement], target: int) -> float:
    positions = [step.position for step in steps]
    return 1 / (1 + positions.index(target)) if target in positions else 0.0

"""What past calls would have added to the suggestions of next steps.

Each past task is judged by all the others. For each call that followed another, tools are ranked as
next steps three times: plainly, with the transitions of the other tasks, and with the outcomes of
their calls. The right one is the tool that was called next. There is no query, since queries are
never kept.

By how much the outcomes of past calls multiply a score: 0.85 to 1.15, decaying. Pure.

Only calls count, by how they ended. Being listed or searched for changes nothing.
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


MAX_CALLS = 400
"""Calls that are judged, those of the newest tasks."""
MAX_RANK = 50
"""A tool further down counts as not found."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageEvaluation:
    """What each signal would have gained."""

    learn: Gain = field(default_factory=Gain)
    rerank: Gain = field(default_factory=Gain)


def evaluate_usage(
    snapshot: Snapshot, tasks: Sequence[Task], outcomes: Mapping[str, Outcomes]
) -> UsageEvaluation:
    """Judge each task by what the others say.

    Args:
        snapshot: The catalog; tools that are not in it are passed over.
        tasks: Oldest first.
        outcomes: How the calls of each tool ended, those of the tasks too.
    """
    if snapshot.vectors is not None and snapshot.vectors.blocking:
        # Each call would scan the database twice.
        snapshot = replace(snapshot, vectors=None)
    learn: list[list[float]] = []
    reranked: list[list[float]] = []
    counts = TransitionCounts.of(
        [task.tools for task in tasks], [decay(task.age_s) for task in tasks]
    )
    left = MAX_CALLS
    for task in reversed(tasks):
        if left <= 0:
            break
        weight = decay(task.age_s)
        counts.remove(task.tools, weight)
        others = dict(outcomes)
        for tool in task.tools:
            counted = others.get(tool, Outcomes())
            others[tool] = replace(counted, succeeded=max(counted.succeeded - weight, 0.0))
        gains = list(_judge(snapshot, task, counts, others))
        counts.add(task.tools, weight)
        left -= len(gains)
        learn.append([gain for gain, _ in gains])
        reranked.append([gain for _, gain in gains])
    return UsageEvaluation(learn=measure_gain(learn), rerank=measure_gain(reranked))


def _judge(
    snapshot: Snapshot, task: Task, counts: TransitionCounts, others: Mapping[str, Outcomes]
) -> Iterator[tuple[float, float]]:
    """Yield for each call of *task* what transitions and what outcomes would have gained."""
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
        multipliers = {tool: multiplier(others[tool]) for tool in ids if tool in others}
        order = rerank(ids, [step.score for step in plain], multipliers)
        yield (
            _reciprocal_rank(scores.best(MAX_RANK, learned), target) - base,
            _reciprocal_rank([plain[place] for place in order], target) - base,
        )


def _reciprocal_rank(steps: Sequence[Supplement], target: int) -> float:
    positions = [step.position for step in steps]
    return 1 / (1 + positions.index(target)) if target in positions else 0.0

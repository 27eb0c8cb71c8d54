"""What the signals of usage would have changed: past tasks, each judged by all the others.

For each call that followed another, all tools are ranked as next steps three times: plainly, with
the transitions of the other tasks, and with the outcomes of their calls. The right one is the tool
that was called next. There is no query, since queries are never kept.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from gateway.index.snapshot import Snapshot
from gateway.search.expand.next_steps import NextStep, NextStepScores, score_next_steps
from gateway.types import Filters
from gateway.usage.call_log import Task
from gateway.usage.evaluation import UsageEvaluation, measure_gain
from gateway.usage.rerank import Outcomes, decay, multiplier, rerank
from gateway.usage.transitions import LearnedSteps, TransitionCounts

MAX_CALLS = 400
"""Calls that are judged, those of the newest tasks."""
MAX_RANK = 50
"""A tool further down counts as not found."""


def evaluate_usage(
    snapshot: Snapshot, tasks: Sequence[Task], outcomes: Mapping[str, Outcomes]
) -> UsageEvaluation:
    """Judge each task by what the others say.

    Args:
        snapshot: The catalog; tools that are not in it are passed over.
        tasks: Oldest first.
        outcomes: How the calls of each tool ended, those of the tasks too.
    """
    learn: list[list[float]] = []
    reranked: list[list[float]] = []
    evaluation = _LeaveOneOut(snapshot, tasks, outcomes)
    left = MAX_CALLS
    for task in reversed(tasks):
        if left <= 0:
            break
        gains = evaluation.task(task)
        left -= len(gains)
        learn.append([gain for gain, _ in gains])
        reranked.append([gain for _, gain in gains])
    return UsageEvaluation(learn=measure_gain(learn), rerank=measure_gain(reranked))


class _LeaveOneOut:
    def __init__(
        self, snapshot: Snapshot, tasks: Sequence[Task], outcomes: Mapping[str, Outcomes]
    ) -> None:
        self._snapshot = snapshot
        self._mask = snapshot.mask(Filters())
        self._outcomes = outcomes
        weights = [decay(task.age_s) for task in tasks]
        self._counts = TransitionCounts.of([task.tools for task in tasks], weights)

    def task(self, task: Task) -> list[tuple[float, float]]:
        """Judge the calls of *task*: what transitions and what outcomes would have gained."""
        weight = decay(task.age_s)
        self._counts.remove(task.tools, weight)
        others = dict(self._outcomes)
        for tool in task.tools:
            counted = others.get(tool, Outcomes())
            others[tool] = replace(counted, succeeded=max(counted.succeeded - weight, 0.0))
        gains = [self._call(used, target, others) for used, target in self._steps(task)]
        self._counts.add(task.tools, weight)
        return gains

    def _steps(self, task: Task) -> Iterator[tuple[list[int], int]]:
        """Yield what was used so far and what came next, by position; each tool once."""
        entities = self._snapshot.entities
        wanted = frozenset(task.tools)
        positions = {each.id: at for at, each in enumerate(entities) if each.id in wanted}
        tools = [tool for tool in dict.fromkeys(task.tools) if tool in positions]
        visible = [positions[tool] for tool in tools if self._mask[positions[tool]]]
        for index in range(1, len(visible)):
            yield visible[:index], visible[index]

    def _call(
        self, used: list[int], target: int, others: Mapping[str, Outcomes]
    ) -> tuple[float, float]:
        scores = score_next_steps(self._snapshot, used, task=None, mask=self._mask)
        plain = scores.best(MAX_RANK, LearnedSteps())
        last = self._snapshot.entities[used[-1]].id
        learned = scores.best(MAX_RANK, self._counts.learned_steps(before=(last,)))
        base = _reciprocal_rank([step.position for step in plain], target)
        return (
            _reciprocal_rank([step.position for step in learned], target) - base,
            _reciprocal_rank(self._by_outcomes(scores, plain, others), target) - base,
        )

    def _by_outcomes(
        self, scores: NextStepScores, plain: Sequence[NextStep], others: Mapping[str, Outcomes]
    ) -> list[int]:
        ids = [scores.snapshot.entities[step.position].id for step in plain]
        multipliers = {tool: multiplier(Outcomes(), others[tool]) for tool in ids if tool in others}
        order = rerank(ids, [step.score for step in plain], multipliers)
        return [plain[index].position for index in order]


def _reciprocal_rank(positions: Sequence[int], target: int) -> float:
    return 1 / (1 + positions.index(target)) if target in positions else 0.0

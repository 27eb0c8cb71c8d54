"""What the signals of use would have changed: past tasks, each judged by all the others.

For each call that followed another, all tools are ranked as next steps three times: plainly, with
what the other tasks have shown, and with how their calls ended. The right one is the tool that was
really called next. There is no query, since queries are never kept.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from gateway.index.eligibility import Mask
from gateway.index.snapshot import Snapshot
from gateway.search.expand.next_steps import NextStep, NextStepScores, score_next_steps
from gateway.search.usage import bounded
from gateway.search.usage.bounded import Outcomes
from gateway.search.usage.gain import Gain, gain
from gateway.search.usage.sequences import Habits, Learned
from gateway.types import Filters
from gateway.usage.call_log import Task

MOST_CALLS = 400
"""How many calls are judged at most, those of the newest tasks."""
DEPTH = 50
"""A tool further down counts as not found."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayed:
    """What each signal would have gained."""

    learn: Gain = field(default_factory=Gain)
    rerank: Gain = field(default_factory=Gain)


def replay(snapshot: Snapshot, tasks: Sequence[Task], outcomes: Mapping[str, Outcomes]) -> Replayed:
    """Judge each task by what the others say.

    Args:
        snapshot: The catalog; tools that are not in it are passed over.
        tasks: Oldest first.
        outcomes: How the calls of each tool ended, those of the tasks too.
    """
    learn: list[list[float]] = []
    rerank: list[list[float]] = []
    judge = _Judge(snapshot, tasks, outcomes)
    left = MOST_CALLS
    for task in reversed(tasks):
        if left <= 0:
            break
        found = judge.task(task)
        left -= len(found)
        learn.append([each for each, _ in found])
        rerank.append([each for _, each in found])
    return Replayed(learn=gain(learn), rerank=gain(rerank))


class _Judge:
    def __init__(
        self, snapshot: Snapshot, tasks: Sequence[Task], outcomes: Mapping[str, Outcomes]
    ) -> None:
        self._snapshot = snapshot
        self._mask: Mask = snapshot.mask(Filters())
        self._outcomes = outcomes
        weights = [bounded.decayed(each.age_s) for each in tasks]
        self._habits = Habits.of([each.tools for each in tasks], weights)

    def task(self, task: Task) -> list[tuple[float, float]]:
        """Judge the calls of *task*: what shown steps and what outcomes would have gained."""
        weight = bounded.decayed(task.age_s)
        self._habits.remove(task.tools, weight)
        others = dict(self._outcomes)
        for tool in task.tools:
            known = others.get(tool, Outcomes())
            others[tool] = replace(known, succeeded=max(known.succeeded - weight, 0.0))
        found = [self._call(used, target, others) for used, target in self._steps(task)]
        self._habits.add(task.tools, weight)
        return found

    def _steps(self, task: Task) -> Iterator[tuple[list[int], int]]:
        """Give what was used so far and what came next, by position; each tool once."""
        by_id = self._snapshot.eligibility.by_id
        known = [by_id[tool] for tool in dict.fromkeys(task.tools) if tool in by_id]
        spots = [position for position in known if self._mask[position]]
        for at in range(1, len(spots)):
            yield spots[:at], spots[at]

    def _call(
        self, used: list[int], target: int, others: Mapping[str, Outcomes]
    ) -> tuple[float, float]:
        weighed = score_next_steps(self._snapshot, used, task=None, mask=self._mask)
        plain = weighed.best(DEPTH, Learned())
        last = self._snapshot.entities[used[-1]].id
        shown = weighed.best(DEPTH, self._habits.learned(before=(last,)))
        base = _worth([each.position for each in plain], target)
        return (
            _worth([each.position for each in shown], target) - base,
            _worth(self._swapped(weighed, plain, others), target) - base,
        )

    def _swapped(
        self, weighed: NextStepScores, plain: Sequence[NextStep], others: Mapping[str, Outcomes]
    ) -> list[int]:
        ids = [weighed.snapshot.entities[each.position].id for each in plain]
        liked = {
            tool: bounded.multiplier(Outcomes(), others[tool]) for tool in ids if tool in others
        }
        order = bounded.reranked(ids, [each.score for each in plain], liked)
        return [plain[at].position for at in order]


def _worth(places: Sequence[int], target: int) -> float:
    return 1 / (1 + places.index(target)) if target in places else 0.0

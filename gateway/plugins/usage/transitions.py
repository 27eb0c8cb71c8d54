"""Transitions: pairs of tools called one after the other in a task.

* Only successful calls count. Each pair counts once in a task.
* The confidence of a pair is its share of the calls that directly followed the first tool, after
  absolute discounting, which leaves a quarter of a pair seen once (Ney, Essen and Kneser, *On
  structuring probabilistic dependences in stochastic language modelling*, 1994).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise, repeat

from gateway.search.learned import LearnedSteps, Transition

DISCOUNT = 0.75
"""Amount subtracted from the count of each pair."""
PRIOR = 2.0
"""Number of calls of other tools that are assumed to have followed each tool."""
MIN_COUNT = 2
"""Minimum number of tasks with a transition."""
MAX_FOLLOWERS = 10
"""Maximum number of transitions from one tool."""
PREDICTIONS = 5
MIN_PREDICTED = 0.2
"""Minimum share of calls that past tasks predict in a usable history."""
MIN_CALLS = 20
"""Minimum number of predicted calls in a usable history."""
_Pairs = Counter[tuple[str, str]]


@dataclass(slots=True)
class _PairCount:
    tasks: int = 0
    weight: float = 0.0

    @property
    def discounted(self) -> float:
        """Weight after discounting."""
        return self.weight * max(0.0, 1 - DISCOUNT / self.tasks) if self.tasks else 0.0


class TransitionCounts:
    """Counter of pairs of tools that were called directly after each other. Not thread-safe."""

    def __init__(self) -> None:
        self._followers: defaultdict[str, dict[str, _PairCount]] = defaultdict(dict)
        self._predecessors = Counter[str]()
        self._pairs = 0

    @classmethod
    def of(
        cls, tasks: Iterable[Sequence[str]], weights: Iterable[float] = repeat(1.0)
    ) -> TransitionCounts:
        """Return a counter of the pairs in *tasks*.

        Args:
            tasks: Ids of each task's called tools, in order.
            weights: Weight of each task, 0 to 1, by its age.
        """
        counts = cls()
        for task, weight in zip(tasks, weights, strict=False):
            counts.add(task, weight)
        return counts

    def add(self, task: Sequence[str], weight: float = 1.0) -> None:
        """Count the pairs of *task*."""
        self._count(task, 1, weight)

    def remove(self, task: Sequence[str], weight: float = 1.0) -> None:
        """Subtract the pairs of a task that was added with the same weight."""
        self._count(task, -1, -weight)

    def _count(self, task: Sequence[str], count: int, weight: float) -> None:
        for before, after in _successor_pairs(task):
            pair = self._followers[before].setdefault(after, _PairCount())
            was_there = pair.tasks > 0
            pair.tasks += count
            pair.weight += weight
            change = (pair.tasks > 0) - was_there
            self._predecessors[after] += change
            self._pairs += change

    @property
    def tools(self) -> tuple[str, ...]:
        """Ids of tools that another tool has followed."""
        return tuple(self._followers)

    def followers(self, before: str, *, min_count: int = 1) -> tuple[Transition, ...]:
        """Return at most `MAX_FOLLOWERS` transitions from a tool, by confidence, then by name.

        Args:
            before: Id of the tool.
            min_count: Minimum number of tasks with the pair.
        """
        pairs = self._followers.get(before, {})
        total = sum(pair.weight for pair in pairs.values())
        of = sum(pair.tasks for pair in pairs.values())
        transitions = []
        for after, pair in pairs.items():
            share = pair.discounted / (total + PRIOR)
            if share > 0 and pair.tasks >= min_count:
                transition = Transition(
                    before=before, after=after, count=pair.tasks, of=of, confidence=round(share, 6)
                )
                transitions.append(transition)
        transitions.sort(key=lambda transition: (-transition.confidence, transition.after))
        return tuple(transitions[:MAX_FOLLOWERS])

    def popularity(self) -> Mapping[str, float]:
        """Return the popularity of each tool as a follower, keyed by tool id.

        It is the number of different tools that the tool followed, as a share of all different
        pairs (Kneser and Ney, *Improved backing-off for m-gram language modeling*, 1995).
        """
        counts = self._predecessors.items()
        return {after: count / self._pairs for after, count in counts if count > 0}

    def open_share(self, before: str) -> float:
        """Return the probability in (0, 1] that a new tool follows *before*."""
        pairs = self._followers.get(before, {}).values()
        total = sum(pair.weight for pair in pairs)
        return 1 - sum(pair.discounted for pair in pairs) / (total + PRIOR)

    def learned_steps(self, *, before: Iterable[str] | None = None) -> LearnedSteps:
        """Return the learned next steps of the tools *before*; None is all tools."""
        tools = self.tools if before is None else tuple(before)
        followers = ((tool, self.followers(tool)) for tool in tools)
        return LearnedSteps(
            edges={tool: transitions for tool, transitions in followers if transitions},
            open={tool: self.open_share(tool) for tool in tools},
            often=self.popularity(),
        )


def count_transitions(
    tasks: Iterable[Sequence[str]], *, min_count: int = MIN_COUNT
) -> tuple[Transition, ...]:
    """Return the transitions in *tasks*, by first tool, then by confidence, then by name.

    Args:
        tasks: Ids of each task's successfully called tools, in order.
        min_count: Minimum number of tasks with a pair.
    """
    counts = TransitionCounts.of(tasks)
    return tuple(
        transition
        for before in sorted(counts.tools)
        for transition in counts.followers(before, min_count=min_count)
    )


def _successor_pairs(task: Sequence[str]) -> frozenset[tuple[str, str]]:
    """Return the pairs of different tools called directly after each other."""
    return frozenset(pair for pair in pairwise(task) if pair[0] != pair[1])


def is_predictive(tasks: Sequence[Sequence[str]]) -> bool:
    """Return whether the tasks predict each other's next steps.

    Each next call is predicted as one of the `PREDICTIONS` most frequent ones in other tasks. Real
    histories predict 0.44 to 0.54 of the next calls, shuffled ones at most 0.07.
    """
    task_pairs = [_successor_pairs(task) for task in tasks]
    pairs = _Pairs(pair for task_pair in task_pairs for pair in task_pair)
    followers: defaultdict[str, list[str]] = defaultdict(list)
    for before, after in sorted(pairs):
        followers[before].append(after)
    predicted = total = 0
    for task_pair in task_pairs:
        for before, after in task_pair:
            counts = {
                tool: pairs[before, tool] - ((before, tool) in task_pair)
                for tool in followers[before]
            }
            likely = sorted((tool for tool in counts if counts[tool]), key=lambda t: -counts[t])
            total += bool(likely)
            predicted += after in likely[:PREDICTIONS]
    return total >= MIN_CALLS and predicted >= MIN_PREDICTED * total

"""Which tool is called after which, in one task: next steps that calls have shown. Pure.

* Only calls that succeeded, in the order in which they were made; a task counts a pair once.
* A pair counts by its share of what came right behind the first tool, discounted: a single sighting
  is a quarter of one. Absolute discounting: Ney, Essen and Kneser, *On structuring probabilistic
  dependences in stochastic language modelling* (1994).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise, repeat

from gateway.search.learned import LearnedSteps, Transition

DISCOUNT = 0.75
"""Sightings that are taken off the count of each pair."""
PRIOR = 2.0
"""Sightings of other pairs that are assumed for each tool."""
MIN_COUNT = 2
"""Tasks that a pair needs to be written down."""
MAX_FOLLOWERS = 10
"""Followers of one tool."""
PREDICTIONS = 5
MIN_PREDICTED = 0.2
"""Share of calls that a history must predict to be used."""
MIN_CALLS = 20
"""Calls that could be predicted; a history of fewer says nothing."""
_Pairs = Counter[tuple[str, str]]


@dataclass(slots=True)
class _PairCount:
    tasks: int = 0
    weight: float = 0.0

    @property
    def discounted(self) -> float:
        """The weight after discounting."""
        return self.weight * max(0.0, 1 - DISCOUNT / self.tasks) if self.tasks else 0.0


class TransitionCounts:
    """Counts which tool came right behind which. Not for two threads at once."""

    def __init__(self) -> None:
        self._followers: defaultdict[str, dict[str, _PairCount]] = defaultdict(dict)
        self._predecessors = Counter[str]()
        self._pairs = 0

    @classmethod
    def of(
        cls, tasks: Iterable[Sequence[str]], weights: Iterable[float] = repeat(1.0)
    ) -> TransitionCounts:
        """Count *tasks*, each by its weight in (0, 1]: what it counts at its age."""
        counts = cls()
        for task, weight in zip(tasks, weights, strict=False):
            counts.add(task, weight)
        return counts

    def add(self, task: Sequence[str], weight: float = 1.0) -> None:
        """Count the pairs of *task*."""
        self._count(task, 1, weight)

    def remove(self, task: Sequence[str], weight: float = 1.0) -> None:
        """Take back the pairs of a task that was added with this weight."""
        self._count(task, -1, -weight)

    def _count(self, task: Sequence[str], count: int, weight: float) -> None:
        for before, after in _pairs_of(task):
            pair = self._followers[before].setdefault(after, _PairCount())
            was_there = pair.tasks > 0
            pair.tasks += count
            pair.weight += weight
            change = (pair.tasks > 0) - was_there
            self._predecessors[after] += change
            self._pairs += change

    @property
    def tools(self) -> tuple[str, ...]:
        """The tools that have followers."""
        return tuple(self._followers)

    def followers(self, before: str, *, min_count: int = 1) -> tuple[Transition, ...]:
        """Return what follows a tool, the surest first, ties by name; at most `MAX_FOLLOWERS`.

        Args:
            before: Its id.
            min_count: A pair of fewer tasks says nothing.
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
        """Return behind how many other tools each tool came, as a share of all pairs.

        What comes behind many tools is likely behind one that is not known yet. Kneser and Ney,
        *Improved backing-off for m-gram language modeling* (1995).
        """
        counts = self._predecessors.items()
        return {after: count / self._pairs for after, count in counts if count > 0}

    def open_share(self, before: str) -> float:
        """Return the share of what follows a tool that its pairs leave open, in (0, 1]."""
        pairs = self._followers.get(before, {}).values()
        total = sum(pair.weight for pair in pairs)
        return 1 - sum(pair.discounted for pair in pairs) / (total + PRIOR)

    def learned_steps(self, *, before: Iterable[str] | None = None) -> LearnedSteps:
        """Return what follows each of the tools *before*, None for all; see `followers`."""
        tools = self.tools if before is None else tuple(before)
        every = ((tool, self.followers(tool)) for tool in tools)
        return LearnedSteps(
            edges={tool: transitions for tool, transitions in every if transitions},
            open={tool: self.open_share(tool) for tool in tools},
            often=self.popularity(),
        )


def count_transitions(
    tasks: Iterable[Sequence[str]], *, min_count: int = MIN_COUNT
) -> tuple[Transition, ...]:
    """Count what follows what.

    Args:
        tasks: The tools called in each task, in order, only calls that succeeded.
        min_count: A pair of fewer tasks says nothing.

    Returns:
        By the tool before, then the surest first; ties by name.
    """
    counts = TransitionCounts.of(tasks)
    return tuple(
        transition
        for before in sorted(counts.tools)
        for transition in counts.followers(before, min_count=min_count)
    )


def _pairs_of(task: Sequence[str]) -> frozenset[tuple[str, str]]:
    """Return what came right behind what; a call that is made again does not follow itself."""
    return frozenset(pair for pair in pairwise(task) if pair[0] != pair[1])


def is_predictive(tasks: Sequence[Sequence[str]]) -> bool:
    """Return whether a history predicts its own next steps: each task by the others.

    For each call the `PREDICTIONS` likeliest next ones are read from all other tasks, wherever they
    know the tool. Real histories predict 0.44 to 0.54 of what followed, the same calls in a
    shuffled order at most 0.07.
    """
    task_pairs = [_pairs_of(task) for task in tasks]
    pairs = _Pairs(pair for own in task_pairs for pair in own)
    followers: defaultdict[str, list[str]] = defaultdict(list)
    for before, after in sorted(pairs):
        followers[before].append(after)
    predicted = total = 0
    for own in task_pairs:
        for before, after in own:
            counts = {
                tool: pairs[before, tool] - ((before, tool) in own) for tool in followers[before]
            }
            likely = sorted((tool for tool in counts if counts[tool]), key=lambda t: -counts[t])
            total += bool(likely)
            predicted += after in likely[:PREDICTIONS]
    return total >= MIN_CALLS and predicted >= MIN_PREDICTED * total

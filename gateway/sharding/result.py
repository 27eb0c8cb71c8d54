"""What the parts told of the best entities -> the result of a search. Pure.

As `gateway.search.results` writes it in one process.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import itemgetter

from gateway.search.expand.supplements import Supplement
from gateway.search.rank.choice import Chosen
from gateway.search.rank.parameters import RELATED_COVERAGE
from gateway.search.state import SearchState
from gateway.sharding.merge import MergedSearch, number_of
from gateway.sharding.outline import CatalogOutline
from gateway.sharding.values import Details, DetailsAnswer
from gateway.types import Match, RankingMode, SearchResult


@dataclass(frozen=True, slots=True, kw_only=True)
class ChosenMatches:
    """What a search over all parts found; the position of a supplement is a number."""

    merged: MergedSearch
    chosen: Chosen
    displayed: tuple[float, ...]
    answers: Mapping[int, DetailsAnswer]
    """By part."""
    details: Mapping[int, Details]
    """By number."""

    @property
    def matches(self) -> list[int]:
        """The numbers of the matches, best first."""
        return [int(self.merged.rows.numbers[row]) for _, row, _ in self.chosen]

    def result(self, state: SearchState, mode: RankingMode) -> SearchResult:
        """Write the result of the search whose state is *state*."""
        queries, window = self.merged.queries, self.merged.window
        needed, related, following = self._supplements(state, window)
        state.counts = replace(
            state.counts,
            candidates=max(len(query.ranked.positions) for query in queries),
            window=len(window),
            graph_nodes=sum(answer.visited for answer in self.answers.values()),
        )
        result = replace(
            state.result(mode),
            matches=tuple(self._written_matches()),
            prerequisites=self._written(needed),
            related=self._written(related),
            next_steps=self._written(following),
            normalized=tuple(query.query.normalized for query in queries),
            display_scores=self.displayed,
        )
        return self._judge(state, result)

    def _written_matches(self) -> Iterable[Match]:
        for number, (query, _, score) in zip(self.matches, self.chosen, strict=True):
            details = self.details[number]
            confidence, evidence = details.assessed[query]
            yield replace(
                details.match, score=score, confidence=round(confidence, 6), evidence=evidence
            )

    def _supplements(
        self, state: SearchState, window: Sequence[int]
    ) -> tuple[Sequence[Supplement], ...]:
        options, matches = state.options, self.matches
        if state.request.display_limit or not matches:
            return (), (), ()
        needed = self._prerequisites(options.max_prerequisites)
        following = self._ordered("next_steps")[: options.max_next_steps]
        related = self._ordered("related")[: options.max_related]
        lists = (needed, following, related)
        listed = {*matches, *(each.position for found in lists for each in found)}
        free = [row for row in window if int(self.merged.rows.numbers[row]) not in listed]
        related += self._text_hits(free, options.max_related - len(related))
        return needed, related, following

    def _neighbours(self, name: str) -> list[Supplement]:
        """Return the neighbours of one list of all parts."""
        return [
            replace(each, position=number_of(part, each.position))
            for part, answer in self.answers.items()
            for each in getattr(answer, name)
        ]

    def _ordered(self, name: str) -> list[Supplement]:
        """Return one list of neighbours: declared ones first, then the strongest."""

        def order(each: Supplement) -> tuple[bool, float, tuple[str, str]]:
            return not _is_declared(each), -each.score, self.details[each.position].node

        return sorted(self._neighbours(name), key=order)

    def _prerequisites(self, budget: int) -> list[Supplement]:
        """Return what the matches need, by match, what the host declares first.

        Args:
            budget: How many of those that are no matches themselves.
        """
        matches = self.matches
        order = {self.details[number].match.id: rank for rank, number in enumerate(matches)}
        found = self._neighbours("prerequisites")
        # Sorting is stable: of one match they stay as its part ordered them.
        found.sort(key=lambda each: (not _is_declared(each), order[each.path[0].subject]))
        chosen = []
        for each in found:
            if each.position not in matches:
                if budget <= 0:
                    continue
                budget -= 1
            chosen.append(each)
        return chosen

    def _text_hits(self, free: Container[int], room: int) -> list[Supplement]:
        """Return what holds nearly as much of the query's words as the best that was found.

        Args:
            free: The rows of the window that stand in no list.
            room: How many at most.
        """
        hits: list[tuple[int, float]] = []
        for query in range(len(self.merged.queries)):
            scored = [
                (-score, self.merged.rows.by_number[number_of(part, position)], share)
                for part, answer in self.answers.items()
                for position, score, share in answer.hits[query]
            ]
            hits += ((row, share) for _, row, share in sorted(scored))
        floor = RELATED_COVERAGE * max((share for _, share in hits), default=0.0)
        near = dict(hit for hit in hits if hit[1] >= floor and hit[0] in free)
        found = list(near.items())[: max(room, 0)]
        return [
            Supplement(position=int(self.merged.rows.numbers[row]), score=share)
            for row, share in found
        ]

    def _written(self, found: Sequence[Supplement]) -> tuple[Match, ...]:
        written = []
        for each in found:
            details = self.details[each.position]
            confidence, evidence = max(details.assessed, key=itemgetter(0))
            match = replace(
                details.match,
                score=each.score,
                confidence=round(confidence, 6),
                evidence=replace(evidence, path=each.path),
                direct=each.direct and details.match.direct,
            )
            written.append(match)
        return tuple(written)

    def _judge(self, state: SearchState, result: SearchResult) -> SearchResult:
        """Note how far *result* can be trusted; take its lists out if nothing serves."""
        best = max((match.confidence for match in result.matches), default=0.0)
        is_empty = not result.matches or best < state.options.no_match_confidence
        if is_empty:
            state.add_diagnostic("confidence", "no_match")
        else:
            if best < state.options.min_confidence:
                state.add_diagnostic("confidence", "low_confidence_results")
            notes = {each.match.id: each.notes for each in self.details.values()}
            lists = (result.matches, result.prerequisites, result.related, result.next_steps)
            found = (note for each in lists for match in each for note in notes[match.id])
            state.diagnostics += dict.fromkeys(found)
        state.record_time("confidence")
        result = replace(result, diagnostics=tuple(state.diagnostics))
        if not is_empty:
            return result
        outline = state.snapshot
        return replace(
            state.result(result.mode),
            normalized=result.normalized,
            nearest=result.matches[0] if result.matches else None,
            unmatched=self._unmatched(),
            servers=outline.overview.servers if isinstance(outline, CatalogOutline) else (),
        )

    def _unmatched(self) -> tuple[str, ...]:
        """Return the words of the queries that no part holds, in their order."""
        lists = zip(*(answer.unmatched for answer in self.answers.values()), strict=True)
        words = (
            word for first, *others in lists for word in first if all(word in w for w in others)
        )
        return tuple(dict.fromkeys(words))


def _is_declared(supplement: Supplement) -> bool:
    return all(step.declared for step in supplement.path)

"""What the parts told of the best entities -> the result of a search. Pure.

As `gateway.search.results` writes it in one process.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import itemgetter

from gateway.search.expand.supplements import Supplement
from gateway.search.rank.choice import Chosen
from gateway.search.state import SearchState
from gateway.sharding.merge import MergedQuery, PartAnswers, Place, Rows
from gateway.sharding.outline import CatalogOutline
from gateway.sharding.values import Details
from gateway.types import Match, RankingMode, SearchResult


@dataclass(frozen=True, slots=True, kw_only=True)
class ChosenMatches:
    """What a search over all parts found."""

    merged: Sequence[MergedQuery]
    rows: Rows
    chosen: Chosen
    displayed: tuple[float, ...]
    answers: PartAnswers
    details: Mapping[Place, Details]

    def result(self, state: SearchState, mode: RankingMode) -> SearchResult:
        """Write the result of the search whose state is *state*."""
        window = frozenset[int]().union(*(query.window for query in self.merged))
        lists = self._supplements(state, window)
        visited = sum(answer.visited for answer in self.answers.answers.values())
        state.counts = replace(
            state.counts,
            candidates=max(len(query.ranked.positions) for query in self.merged),
            window=len(window),
            graph_nodes=visited,
        )
        result = replace(
            state.result(mode),
            matches=tuple(self._matches()),
            prerequisites=self._written(lists[0]),
            related=self._written(lists[1]),
            next_steps=self._written(lists[2]),
            normalized=tuple(query.query.normalized for query in self.merged),
            display_scores=self.displayed,
        )
        return self._judge(state, result)

    def _matches(self) -> Iterable[Match]:
        for number, row, score in self.chosen:
            details = self.details[self.rows.places[row]]
            confidence, evidence = details.assessed[number]
            yield replace(
                details.match, score=score, confidence=round(confidence, 6), evidence=evidence
            )

    def _supplements(
        self, state: SearchState, window: frozenset[int]
    ) -> tuple[Sequence[tuple[Place, Supplement]], ...]:
        options, answers, rows = state.options, self.answers, self.rows
        places = [rows.places[row] for _, row, _ in self.chosen]
        if state.request.display_limit or not places:
            return (), (), ()
        matches = [(place, self.details[place].match.id) for place in places]
        needed = answers.prerequisites(matches, options.max_prerequisites)
        following = answers.ordered("next_steps", self.details)[: options.max_next_steps]
        related = answers.ordered("related", self.details)[: options.max_related]
        listed = {*places, *(place for found in (needed, following, related) for place, _ in found)}
        free = frozenset(row for row in window if rows.places[row] not in listed)
        related += answers.text_hits(rows, free, options.max_related - len(related))
        return needed, related, following

    def _written(self, found: Sequence[tuple[Place, Supplement]]) -> tuple[Match, ...]:
        written = []
        for place, each in found:
            details = self.details[place]
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
            unmatched=self.answers.unmatched(),
            servers=outline.overview.servers if isinstance(outline, CatalogOutline) else (),
        )

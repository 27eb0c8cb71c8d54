"""Conversion of rankings and their evidence into search results. Pure.

A *position* is the index of an entity in the snapshot. Results do not mention words or servers of
hidden entities.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from operator import itemgetter

import numpy as np

from gateway.index.candidates import Candidates
from gateway.index.eligibility import Mask
from gateway.index.snapshot import Snapshot
from gateway.runtime.vectors import Vector
from gateway.search.confidence import Features, closeness, estimate
from gateway.search.expand.supplements import Supplements
from gateway.search.query import Query
from gateway.search.rank.fusion import RankedList
from gateway.search.state import SearchState
from gateway.types import (
    Diagnostic,
    Entity,
    Evidence,
    Filters,
    Match,
    RankingMode,
    Scoring,
    SearchResult,
)
from graphs.lexical.bm25_index import BM25Index
from graphs.lexical.query import AnalyzedQuery, QueryTerm

_NO_EVIDENCE = Evidence()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Ranking:
    """The ranking of one query, with the evidence for its order and for confidence."""

    query: Query
    ranked: RankedList
    lexical: BM25Index
    reading: AnalyzedQuery
    """The query, analyzed with the words of `lexical`."""
    eligible: int
    window: frozenset[int] = frozenset()
    """Positions of the entities that may become supplements."""
    named: frozenset[int] = frozenset()
    """Positions of entities whose exact name is in the query."""
    candidates: Candidates | None = None
    """Candidates found by vectors. None if only words or the graph ranked."""
    model: str = ""
    """Model id of the embedder; empty without vectors."""
    graph: Mapping[int, float] = field(default_factory=dict)
    """Share of the query's words in an entity's graph node, keyed by position, best first."""
    scoring: Mapping[int, Scoring] = field(default_factory=dict)
    """Explanations by the ranking policy, keyed by position. Empty unless requested."""
    scores: Mapping[str, Vector] = field(default_factory=dict)
    """Scores of all entities by words (key ``lexical``) and by the graph (key ``graph``). Empty
    unless an explanation is requested."""
    terms: Mapping[str, Vector] = field(default_factory=dict)
    """Contribution of each signal to the candidates' scores, keyed by signal name. Empty if the
    ranking does not use signals."""

    def nearness(self, positions: Sequence[int]) -> Vector:
        """Return how near the entities at *positions* are to the query, on one scale per search.

        The values are scores by vectors if available, else shares of the query's words.
        """
        if self.candidates is not None:
            return self.candidates.strengths_at(np.asarray(positions, dtype=np.intp))
        word_matches = self.lexical.document_matches(self.reading, positions)
        return np.asarray(word_matches.coverage, dtype=np.float32)

    def confidences(self, positions: Sequence[int]) -> list[float]:
        """Return the confidence, 0 to 1, of the entity at each of *positions*."""
        return [confidence for confidence, _ in self.assess(positions)]

    def assess(self, positions: Sequence[int]) -> list[tuple[float, Evidence]]:
        """Return the confidence, 0 to 1, and the evidence of the entity at each of *positions*."""
        word_matches = self.lexical.document_matches(self.reading, positions)
        cosines: Sequence[float | None] = [None] * len(positions)
        if self.candidates is not None:
            cosines = self.candidates.cosines_at(positions)
        assessed = []
        for position, cosine, coverage, score, words in zip(
            positions,
            cosines,
            word_matches.coverage,
            word_matches.scores,
            word_matches.words,
            strict=True,
        ):
            agreement, exact_name = self.graph.get(position), position in self.named
            features = self.features(cosine, score, words)
            if cosine is None and agreement is not None and agreement > coverage:
                # The node also contains words of the entity's groups and documents.
                features = replace(features, coverage=agreement)
            confidence = estimate(
                features, graph=agreement, exact_name=exact_name, model=self.model
            )
            evidence = Evidence(
                vector=cosine, lexical=coverage, graph=agreement, words=words, exact_name=exact_name
            )
            assessed.append((confidence, evidence))
        return assessed

    def features(self, cosine: float | None, score: float, words: Sequence[str]) -> Features:
        """Return the confidence features of a match with this cosine and this BM25F *score*.

        *words* are the query's words in the match, including near spellings.
        """
        weight = sum(
            term.weight
            for term in self.reading.terms
            if term.word in words and not term.is_spelling_correction and not term.word.isdigit()
        )
        similarity = None
        if cosine is not None and self.candidates is not None:
            cosines = self.candidates.moments.cosines
            # A query of digits only is near to some vector by chance, so only words count.
            if not all(term.word.isdigit() for term in self.reading.terms):
                similarity = closeness(
                    cosine,
                    mean=cosines.mean,
                    spread=cosines.spread,
                    count=self.eligible,
                    model=self.model,
                )
        return Features(
            similarity=similarity,
            coverage=min(weight / self.reading.weight, 1.0),
            strength=score if weight else 0.0,
            count=self.eligible,
        )


def browse(state: SearchState) -> SearchResult:
    """Return the first eligible entities by name, for a request without a query."""
    request, entities = state.request, state.snapshot.entities
    limit = min(request.limit, request.display_limit or request.limit)
    positions = np.flatnonzero(state.mask)[:limit].tolist()
    state.diagnostics += suspicions(state.snapshot, positions)
    return state.result(
        "browse", tuple(to_match(entities[position], score=0.0) for position in positions)
    )


def build_result(
    state: SearchState,
    rankings: Sequence[Ranking],
    chosen: Sequence[tuple[int, int, float]],
    added: Supplements,
    *,
    mode: RankingMode,
) -> SearchResult:
    """Build the result: matches and supplements with their confidence and evidence.

    *chosen* are the matches: index of the ranking, position and score. A supplement gets its
    highest confidence over all rankings.
    """
    entities = state.snapshot.entities
    extra = (*added.prerequisites, *added.related, *added.next_steps)
    positions = [position for _, position, _ in chosen] + [
        supplement.position for supplement in extra
    ]
    assessed = [ranking.assess(positions) for ranking in rankings]
    matches: list[Match] = []
    for index, (number, position, score) in enumerate(chosen):
        confidence, evidence = assessed[number][index]
        match = to_match(entities[position], score=score, confidence=confidence, evidence=evidence)
        matches.append(match)
    for index, supplement in enumerate(extra, start=len(chosen)):
        confidence, evidence = max((scores[index] for scores in assessed), key=itemgetter(0))
        match = to_match(
            entities[supplement.position],
            score=supplement.score,
            confidence=confidence,
            evidence=replace(evidence, path=supplement.path),
            direct=supplement.direct,
        )
        matches.append(match)
    remaining = iter(matches)
    scoring = (rankings[number].scoring.get(position) for number, position, _ in chosen)
    return replace(
        state.result(mode),
        matches=tuple(islice(remaining, len(chosen))),
        prerequisites=tuple(islice(remaining, len(added.prerequisites))),
        related=tuple(islice(remaining, len(added.related))),
        next_steps=tuple(remaining),
        scoring=tuple(filter(None, scoring)),
        normalized=tuple(ranking.query.normalized for ranking in rankings),
    )


def judge(state: SearchState, rankings: Sequence[Ranking], result: SearchResult) -> SearchResult:
    """Add diagnostics about the confidence of *result*. Empty its lists if no match is likely.

    A result emptied here still contains the nearest match, the words of the queries that no
    eligible entity contains, and the first 50 servers of the eligible entities.
    """
    best = max((match.confidence for match in result.matches), default=0.0)
    unlikely = state.request.ranking == "strategy" and best < state.options.no_match_confidence
    is_empty = not result.matches or unlikely
    if is_empty:
        state.add_diagnostic("confidence", "no_match")
    else:
        if best < state.options.min_confidence:
            state.add_diagnostic("confidence", "low_confidence_results")
        lists = (result.matches, result.prerequisites, result.related, result.next_steps)
        position = state.snapshot.position
        state.diagnostics += suspicions(
            state.snapshot, (position(match.id) for matches in lists for match in matches)
        )
    state.record_time("confidence")
    result = replace(result, diagnostics=tuple(state.diagnostics))
    if not is_empty:
        return result
    snapshot = state.snapshot
    readings = [ranking.reading for ranking in rankings]
    return replace(
        state.result(result.mode),
        normalized=result.normalized,
        nearest=result.matches[0] if result.matches else None,
        unmatched=unmatched_terms(snapshot.lexical, readings, state.mask),
        servers=tuple(sorted(snapshot.eligibility.servers(state.mask))[:50]),
    )


def unmatched_terms(
    index: BM25Index, readings: Iterable[AnalyzedQuery], mask: Mask
) -> tuple[str, ...]:
    """Return the words of the queries that no entity in *mask* contains, as written."""
    terms = (word for reading in readings for word in reading.terms)
    return tuple(
        dict.fromkeys(word.word for word in terms if not _is_in_catalog(index, word, mask))
    )


def lacking_words(snapshot: Snapshot, text: str, positions: Sequence[int]) -> list[tuple[str, ...]]:
    """Return, for the entity at each of *positions*, the words of *text* that it lacks."""
    query = Query(text=text)
    reading = snapshot.lexical.analyze(query.tokens(text))
    matched_words = snapshot.lexical.document_matches(reading, positions).words
    return [tuple(word for word in reading.words if word not in words) for words in matched_words]


def _is_in_catalog(index: BM25Index, terms: QueryTerm, mask: Mask) -> bool:
    return any(index.occurs_in(row, mask) for rows, _ in terms.expansions for row in rows)


def visible_build_notes(snapshot: Snapshot, filters: Filters, mask: Mask) -> list[Diagnostic]:
    """Return the diagnostics of the index build that a search with *filters* repeats.

    Details of catalog and graph diagnostics may name servers. A detail is removed if it names a
    server without eligible entities, or if *filters* name servers and it names none of these.
    """
    diagnostics = list(snapshot.recurring_diagnostics)
    if not diagnostics or mask.all():
        return diagnostics
    servers_of, traits = snapshot.eligibility.servers, snapshot.eligibility.by_trait
    kinds = frozenset(str(value) for trait, value in traits if trait == "kind")
    eligible = snapshot.mask(replace(filters, kinds=kinds))
    hidden = servers_of(np.ones_like(mask)) - servers_of(eligible)
    return [
        replace(note, detail="") if _reveals_server(note, hidden, filters) else note
        for note in diagnostics
    ]


def _reveals_server(note: Diagnostic, hidden: Iterable[str], filters: Filters) -> bool:
    if note.stage not in {"catalog", "graph"}:
        return False
    if filters.servers and not any(map(note.detail.__contains__, filters.servers)):
        return True
    return any(re.search(rf"(?<!\w){re.escape(name)}(?!\w)", note.detail) for name in hidden)


def suspicions(snapshot: Snapshot, positions: Iterable[int]) -> tuple[Diagnostic, ...]:
    """Return diagnostics about suspicious definitions of the entities at *positions*."""
    definitions = (snapshot.entities[position].definition for position in positions)
    return tuple(
        dict.fromkeys(note for definition in definitions for note in definition.diagnostics)
    )


def to_match(
    entity: Entity,
    *,
    score: float,
    confidence: float = 0.0,
    evidence: Evidence = _NO_EVIDENCE,
    direct: bool = True,
) -> Match:
    """Return *entity* as a match. A suspicious entity never becomes a proxy."""
    suspicious = entity.suspicious
    return Match(
        id=entity.id,
        name=entity.exposed_name,
        server=entity.server,
        description=entity.definition.description,
        required=entity.required,
        score=score,
        confidence=round(confidence, 6),
        evidence=evidence,
        direct=direct and not suspicious,
        suspicious=suspicious,
    )

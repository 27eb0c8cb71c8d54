"""How the policies of the catalog made their scores, as values and in the log."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence

from gateway.catalog.kinds import REGISTRY_NAMES
from gateway.search.rank.fusion import RankedList
from gateway.search.rank.parameters import LEGACY_BOOST
from gateway.search.rank.policies import PolicyEvidence, has_vectors
from gateway.types import RankingPolicy, Scoring

log = logging.getLogger("gateway.search")


def explain(
    policy: RankingPolicy, evidence: PolicyEvidence, ranked: RankedList
) -> Iterator[tuple[int, Scoring]]:
    """Yield how the scores of *ranked*, which *policy* ranked, were made: positions and scorings.

    At most as many as `PolicyEvidence.count`, best first.
    """
    candidates, keywords = evidence.candidates, evidence.keywords
    positions = ranked.positions[: evidence.count]
    cosines: Sequence[float | None] = [None] * len(positions)
    ranks: list[dict[int, int]] = [{}, {}]
    if candidates is not None:
        embedded = has_vectors(candidates, positions).tolist()
        exact = candidates.cosines(positions.tolist())
        cosines = [each if has else None for each, has in zip(exact, embedded, strict=True)]
        if policy == "hybrid":
            ranks = [
                {at: place for place, at in enumerate(each.tolist(), 1)}
                for each in evidence.lists(candidates)
            ]
    for at, score, cosine in zip(positions.tolist(), ranked.scores.tolist(), cosines, strict=False):
        boost = float(keywords.boost[at])
        yield (
            at,
            Scoring(
                score=score,
                vector=cosine,
                text_boost=boost,
                keyword_share=float(keywords.share[at]),
                vector_rank=ranks[0].get(at),
                keyword_rank=ranks[1].get(at),
                rrf_score=score if ranks[0] or ranks[1] else None,
            ),
        )


def log_scoring(
    policy: RankingPolicy, evidence: PolicyEvidence, scoring: Mapping[int, Scoring]
) -> None:
    """Log how scores, by position, were made: lists at INFO, scores at DEBUG.

    The lines are those of registries.
    """
    if policy == "hybrid" and evidence.candidates is not None:
        near, words = map(len, evidence.lists(evidence.candidates))
        log.info("RRF inputs: %d vector-ranked docs, %d keyword-ranked docs", near, words)
    for position, each in scoring.items():
        entity = evidence.snapshot.entities[position]
        # A name is a stranger's text: %r keeps it on its line.
        about = entity.definition.title or entity.name, REGISTRY_NAMES.get(entity.kind, entity.kind)
        if each.rrf_score is not None:
            line = "RRF score for %r (type=%s): %.6f, text_boost=%.1f"
            log.debug(line, *about, each.rrf_score, each.text_boost)
        elif policy == "legacy" and each.vector is not None:
            line = (
                "Score for %r (type=%s): vector=%.4f, normalized_vector=%.4f, "
                "text_boost=%.1f, boost_contrib=%.4f, final=%.4f"
            )
            boost = each.text_boost
            numbers = each.vector, (each.vector + 1) / 2, boost, LEGACY_BOOST * boost, each.score
            log.debug(line, *about, *numbers)

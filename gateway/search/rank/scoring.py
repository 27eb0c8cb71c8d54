"""How the policies of the catalog made their scores, as values and in the log."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from gateway.catalog.kinds import REGISTRY_NAMES
from gateway.search.rank.fusion import RankedList
from gateway.search.rank.parameters import LEGACY_BOOST
from gateway.search.rank.policies import PolicyEvidence, has_vectors
from gateway.types import Entity, RankingPolicy, Scoring

log = logging.getLogger("gateway.search")


def explain(
    policy: RankingPolicy, evidence: PolicyEvidence, ranked: RankedList
) -> dict[int, Scoring]:
    """Return how the scores of *ranked*, which *policy* ranked, were made, by position; and log it.

    At most as many as `PolicyEvidence.count`, best first. Lists are logged at INFO and scores at
    DEBUG, in the lines of registries.
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
            lists = evidence.lists(candidates)
            line = "RRF inputs: %d vector-ranked docs, %d keyword-ranked docs"
            log.info(line, *map(len, lists))
            ranks = [{at: place for place, at in enumerate(each.tolist(), 1)} for each in lists]
    scorings: dict[int, Scoring] = {}
    for at, score, cosine in zip(positions.tolist(), ranked.scores.tolist(), cosines, strict=False):
        scorings[at] = Scoring(
            score=score,
            vector=cosine,
            text_boost=float(keywords.boost[at]),
            keyword_share=float(keywords.share[at]),
            vector_rank=ranks[0].get(at),
            keyword_rank=ranks[1].get(at),
            rrf_score=score if ranks[0] or ranks[1] else None,
        )
        _log(policy, evidence.snapshot.entities[at], scorings[at])
    return scorings


def _log(policy: RankingPolicy, entity: Entity, scoring: Scoring) -> None:
    # A name is a stranger's text: %r keeps it on its line.
    about = entity.definition.title or entity.name, REGISTRY_NAMES.get(entity.kind, entity.kind)
    boost = scoring.text_boost
    if scoring.rrf_score is not None:
        line = "RRF score for %r (type=%s): %.6f, text_boost=%.1f"
        log.debug(line, *about, scoring.rrf_score, boost)
    elif policy == "legacy" and scoring.vector is not None:
        line = (
            "Score for %r (type=%s): vector=%.4f, normalized_vector=%.4f, "
            "text_boost=%.1f, boost_contrib=%.4f, final=%.4f"
        )
        vector = scoring.vector
        numbers = vector, (vector + 1) / 2, boost, LEGACY_BOOST * boost, scoring.score
        log.debug(line, *about, *numbers)

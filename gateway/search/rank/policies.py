"""Ranking policies: their protocol, the policy *lexical*, and keyword scores. Pure.

A policy replaces the strategy for one search. Plugins add policies with the hook
`register_rankings`. Ties are ordered by name.

Keyword scores work as in server registries: only whole words count, once for each field.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol, get_args

import numpy as np

from gateway.errors import ConfigError, Failed, InvalidRequestError, missing_plugin
from gateway.index.candidates import Candidates
from gateway.index.eligibility import Mask, Positions
from gateway.index.snapshot import Snapshot
from gateway.runtime.vectors import NDArray, Vector
from gateway.search.rank.fusion import RankedList, attempt_plugin
from gateway.search.rank.parameters import (
    KEYWORD_BOOSTS,
    KEYWORD_TOOL,
    WORD_IN_DESCRIPTION,
    WORD_IN_NAME,
    WORD_IS_NAME,
)
from gateway.types import Entity, RankingPolicy, Scoring
from graphs.lexical.bm25_index import BM25Index
from graphs.lexical.query import AnalyzedQuery, Hits

_Flags = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PolicyEvidence:
    """Evidence about the catalog for one query."""

    snapshot: Snapshot
    lexical: Hits
    candidates: Candidates | None
    """Candidates found by vectors, if any."""
    mask: Mask
    """Eligible entities, shape (n,)."""
    tools: Mask
    """Tools whose words raise the score of their server, without filters by kind and tag;
    shape (n,)."""
    count: int
    """Maximum length of the lists that a policy fuses, and of an explanation."""

    @property
    def keywords(self) -> Keywords:
        """Keyword scores of the query."""
        snapshot = self.snapshot
        return count_keywords(snapshot.lexical, self.lexical, snapshot.entities, self.tools)


class CatalogRanking(Protocol):
    """A ranking policy, selected by name."""

    @property
    def uses_vectors(self) -> bool:
        """True if the policy needs the vectors of the queries."""

    @property
    def is_exact(self) -> bool:
        """True if exact names, copies and low confidence do not change the policy's order."""

    def rank(self, evidence: PolicyEvidence) -> RankedList:
        """Rank eligible entities. Other entities in the list are removed afterwards."""

    def explain(self, evidence: PolicyEvidence, ranked: RankedList) -> Mapping[int, Scoring]:
        """Explain the scores of *ranked*, keyed by position."""


class Lexical:
    """The policy *lexical*: only words, by BM25F."""

    uses_vectors, is_exact = False, False

    def rank(self, evidence: PolicyEvidence) -> RankedList:
        """Rank by the words of the query."""
        return by_words(evidence.lexical.scores, evidence.mask)

    def explain(self, evidence: PolicyEvidence, ranked: RankedList) -> Mapping[int, Scoring]:
        """Explain the scores of *ranked*, keyed by position."""
        return explain_scores(evidence, ranked)


OWN_RANKINGS: Mapping[str, CatalogRanking] = {"lexical": Lexical()}
"""Policies of the core, keyed by name."""


def all_rankings(of_plugins: Mapping[str, CatalogRanking]) -> Mapping[str, CatalogRanking]:
    """Return the ranking policies of plugins and of the core, keyed by name.

    Raises:
        ConfigError: If a plugin uses a name of the core.
    """
    if taken := sorted({"strategy", *OWN_RANKINGS} & of_plugins.keys()):
        raise ConfigError(
            f"a plugin registers a ranking with the name {taken[0]!r}, which the gateway uses "
            "itself: exclude the plugin with the option plugins"
        )
    return {**of_plugins, **OWN_RANKINGS}


def check_ranking(name: str, rankings: Mapping[str, CatalogRanking]) -> None:
    """Raise an `InvalidRequestError` if *name* is neither ``strategy`` nor in *rankings*."""
    if name == "strategy" or name in rankings:
        return
    if name in get_args(RankingPolicy):
        raise InvalidRequestError(str(missing_plugin(f"ranking {name!r}", "rankings")))
    policies = ", ".join(("strategy", *rankings))
    raise InvalidRequestError(f"ranking must be one of {policies}, got {name!r}")


def rank_catalog(
    policy: CatalogRanking, evidence: PolicyEvidence
) -> tuple[RankedList, Failed | None]:
    """Rank the eligible entities by *policy*, or by words if the policy fails.

    Returns:
        The ranking, and the failure of the policy, if any.

    Raises:
        StoreError: If the vectors cannot be read.
    """
    ranked = attempt_plugin(partial(_rank_eligible, policy, evidence))
    if isinstance(ranked, Failed):
        return by_words(evidence.lexical.scores, evidence.mask), ranked
    return ranked, None


def explain_ranking(
    policy: CatalogRanking, evidence: PolicyEvidence, ranked: RankedList
) -> Mapping[int, Scoring]:
    """Explain the scores of *ranked* by *policy*, keyed by position; empty if the policy fails.

    Raises:
        StoreError: If the vectors cannot be read.
    """
    scorings = attempt_plugin(partial(policy.explain, evidence, ranked))
    return {} if isinstance(scorings, Failed) else scorings


def _rank_eligible(policy: CatalogRanking, evidence: PolicyEvidence) -> RankedList:
    ranked = policy.rank(evidence)
    eligible = evidence.mask[ranked.positions]
    return ranked if eligible.all() else ranked.at(np.flatnonzero(eligible).tolist())


def by_words(scores: Vector, mask: Mask) -> RankedList:
    """Rank the eligible entities with a score above 0. *scores* has one score per entity."""
    positions = np.flatnonzero(mask & (scores > 0))
    return RankedList.of(positions, scores[positions])


def has_vectors(candidates: Candidates, positions: Positions) -> _Flags:
    """Return a flag for each of *positions*, True if the entity has a vector."""
    return candidates.index.has(positions)


def explain_scores(
    evidence: PolicyEvidence, ranked: RankedList, lists: Sequence[Positions] = ()
) -> dict[int, Scoring]:
    """Explain the best scores of *ranked*, at most `PolicyEvidence.count`, keyed by position.

    *lists* are the fused lists: by vectors, then by words; empty if the policy fused none.
    """
    candidates, keywords = evidence.candidates, evidence.keywords
    positions = ranked.positions[: evidence.count]
    cosines: Sequence[float | None] = [None] * len(positions)
    if candidates is not None:
        embedded = has_vectors(candidates, positions).tolist()
        exact = candidates.cosines_at(positions.tolist())
        cosines = [value if has else None for value, has in zip(exact, embedded, strict=True)]
    ranks = [
        {position: place for place, position in enumerate(value.tolist(), 1)} for value in lists
    ] or [{}, {}]
    scorings: dict[int, Scoring] = {}
    for position, score, cosine in zip(
        positions.tolist(), ranked.scores.tolist(), cosines, strict=False
    ):
        scorings[position] = Scoring(
            score=score,
            vector=cosine,
            text_boost=float(keywords.boost[position]),
            keyword_share=float(keywords.share[position]),
            vector_rank=ranks[0].get(position),
            keyword_rank=ranks[1].get(position),
            rrf_score=score if ranks[0] or ranks[1] else None,
        )
    return scorings


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Keywords:
    """Keyword scores of all entities for one query, shape (n,) each."""

    boost: Vector
    """Sum of the `KEYWORD_BOOSTS` whose fields contain a word of the query, plus `KEYWORD_TOOL` for
    each matching tool of a server, >= 0."""
    share: Vector
    """Keyword points of each entity, divided by the maximum possible for this query, in [0, 1]."""


def count_keywords(
    index: BM25Index, reading: AnalyzedQuery, entities: Sequence[Entity], tools: Mask
) -> Keywords:
    """Score the catalog by the keywords of *reading*, which was analyzed with *index*.

    *tools* raise the score of their server, shape (n,).
    """
    fields = {name: number for number, name in enumerate(index.fields)}

    def holds(bits: NDArray[np.uint64], *names: str) -> _Flags:
        field_bits = sum(1 << fields[name] for name in names if name in fields)
        return np.asarray(bits & np.uint64(field_bits), dtype=np.bool_)

    any_word = np.zeros(len(entities), dtype=np.uint64)
    points = np.zeros(len(entities))
    in_name: list[_Flags] = []
    for word in reading.terms:
        if word.is_spelling_correction:
            continue
        bits, exact = index.fields_containing(word, "name")
        any_word |= bits
        in_name.append(holds(bits, "name"))
        points += np.where(exact, WORD_IS_NAME, WORD_IN_NAME * holds(bits, "name", "title"))
        points += WORD_IN_DESCRIPTION * holds(bits, "description")
    if len(in_name) > 1:
        # The name consists of exactly the words of the query.
        alone = index.lengths[:, fields["name"]] == len(in_name)
        points[np.all(in_name, axis=0) & alone] = WORD_IS_NAME * len(in_name)
    boost = KEYWORD_TOOL * _count_tools(holds(any_word, "name", "description") & tools, entities)
    for names, weight in KEYWORD_BOOSTS.items():
        boost += weight * holds(any_word, *names)
    maximum = (WORD_IS_NAME + WORD_IN_DESCRIPTION) * max(len(reading.terms), 1)
    share = (points / maximum).astype(np.float32)
    return Keywords(boost=boost.astype(np.float32), share=share)


def _count_tools(matches: _Flags, entities: Sequence[Entity]) -> Vector:
    matched = (entities[position] for position in np.flatnonzero(matches).tolist())
    tools = Counter(entity.parent for entity in matched if entity.kind == "tool")
    return np.fromiter((tools[entity.id] for entity in entities), np.float32, len(entities))

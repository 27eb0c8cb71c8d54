"""Request and result of a search."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from gateway.types.diagnostics import DEGRADING, Diagnostic
from gateway.types.entities import Filters

Strategy = Literal["graph", "embeddings", "auto"]
RankingPolicy = Literal["strategy", "hybrid", "weighted", "legacy", "lexical"]
"""Ranking of one search: the gateway's strategy, or a policy of `gateway.search.rank.policies`. The
plugin ``rankings`` adds all policies except *lexical*."""
RankingMode = Literal["browse", "empty", "graph", "vector", "hybrid", "lexical"]
"""Ranking that a search used. *browse*: none, without a query. *empty*: none, because the catalog
is empty. *graph*: words and graph. *vector*: only vectors. *hybrid*: vectors and other evidence.
*lexical*: only words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchRequest:
    """A search with checked arguments."""

    queries: tuple[str, ...]
    """Queries as the caller wrote them, several for the steps of a task; () lists the catalog."""
    context: str = ""
    """Caller's ``context`` and ``context_summary`` as one text. It affects the ranking, but not the
    confidence."""
    limit: int = 5
    filters: Filters = field(default_factory=Filters)
    ranking: RankingPolicy = "strategy"
    diversify: bool = False
    """True limits the share of each kind; see `gateway.search.rank.display`."""
    display_limit: int = 0
    """Number of matches chosen for display from `limit`; 0 returns all."""
    tenant: str = ""
    """Id of the caller's tenant, or empty."""
    explain: bool = False
    """True explains the scores in the result and in the log."""
    reader: Filters = field(default_factory=Filters)
    """Filters of the reader of the explanation, which names only entities that pass them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PathStep:
    """An edge of a path in the graph to a supplement."""

    subject: str
    """Id of the entity or other node where the edge starts."""
    predicate: str
    object: str
    """Id of the entity or other node where the edge ends."""
    source: str = ""
    """Place that declares the edge: ``FILE:LINE`` in a host's document, or ``PLUGIN/FILE:LINE``.
    For other edges ``derived/RULE``, or ``learned, 4 of 12``; empty if unknown."""
    declared: bool = False
    """True if the host or a plugin declares the edge."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """Reasons why an entity is a match; None if a stage did not score it."""

    vector: float | None = None
    """Maximum cosine with the forms of the query, -1 to 1."""
    lexical: float | None = None
    """Share of the query's words in the entity, weighted by rarity, 0 to 1."""
    graph: float | None = None
    """Share of the query's words in the entity's graph node, 0 to 1."""
    words: tuple[str, ...] = ()
    """Words of the query in the entity."""
    path: tuple[PathStep, ...] = ()
    """Edges from a match to this supplement; empty for a match."""
    exact_name: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """An entity of a search result."""

    id: str
    name: str
    """Exposed name, by which a model calls the entity."""
    server: str
    description: str
    required: tuple[str, ...] = ()
    score: float
    """Score in the ranking; higher is better. Not comparable between queries."""
    confidence: float
    """Calibrated confidence that the entity fits the query, 0 to 1. Comparable between queries and
    ranking modes."""
    evidence: Evidence = field(default_factory=Evidence)
    direct: bool = True
    """True if the entity may become a proxy: a match, or a supplement inside the window."""
    suspicious: bool = False
    """True if the definition looks like an attack on a model. Models then never see its texts, and
    it never becomes a proxy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scoring:
    """Parts of a match's score by a ranking policy; None if the policy does not use them."""

    score: float
    """Score by the policy, before adjustments for an exact name or past calls."""
    vector: float | None
    """Cosine between the entity and the query, -1 to 1."""
    text_boost: float
    """Score of the query's keywords in the entity, weighted as in server registries, >= 0."""
    keyword_share: float
    """Score of the query's keywords in the entity, as a share of the maximum score, 0 to 1."""
    vector_rank: int | None
    """Rank by vectors, from 1, in the policy *hybrid*; None if not ranked by vectors."""
    keyword_rank: int | None
    """Rank by keywords, from 1, in the policy *hybrid*; None if not ranked by keywords."""
    rrf_score: float | None
    """Sum of 1/(60 + rank) over both lists (reciprocal rank fusion); None without fusion."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceRanks:
    """Ranks of a match among all eligible entities, from 1, by each kind of evidence.

    None means that the evidence does not apply to the match.
    """

    vector: int | None
    """Rank by vectors. Also None outside the candidates chosen by vectors."""
    lexical: int | None
    """Rank by words (BM25F)."""
    graph: int | None
    """Rank by the words of the match's graph node."""
    usage: int | None
    """Rank by outcomes of past calls, among called entities."""
    ranked: int | None
    """Rank by all evidence, before adjustments for past calls and for the share of each kind. None
    if only an exact name made the entity a match."""
    final: int
    """Rank in the result."""
    signals: tuple[tuple[str, float], ...] = ()
    """Name and contribution of each signal to the score of `auto`, in standard deviations. Empty
    for other rankings, or if only an exact name made it a match."""


FilterName = Literal[
    "kind", "status", "disabled", "described", "tag", "server", "left_out", "scope", "policy"
]
"""Filter that excludes an entity. *left_out* is `Filters.without`, or an unreachable server if only
healthy ones are searched. *policy* is an `AccessPolicy`. Other names are fields of `Filters`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FilteredEntity:
    """An entity that would be a match without the filters."""

    id: str
    kind: str
    rank: int
    """Rank without the filters, from 1."""
    confidence: float
    """Confidence, as in a `Match`."""
    filters: tuple[FilterName, ...]
    """All filters that exclude the entity."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """Work of one search."""

    eligible: int = 0
    """Number of entities that passed the filters."""
    candidates: int = 0
    """Number of candidates that all signals scored again."""
    window: int = 0
    """Number of candidates from which supplements may come."""
    graph_nodes: int = 0
    """Number of graph nodes visited to find supplements."""
    embedded_texts: int = 0
    """Number of texts sent to the embedder; 0 if the cache had their vectors."""
    tokens: int = 0
    """Number of tokens of these texts, by the embedder."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchResult:
    """Result of a search, whose diagnostics distinguish an empty result from a failed stage.

    Example:
        >>> result = await gateway.search("add numbers")
        >>> result.matches[0].id
        'local/add'
    """

    matches: tuple[Match, ...] = ()
    prerequisites: tuple[Match, ...] = ()
    """Tools to call before a match that requires them by an edge of the graph, in the order of the
    matches. A match that a better match requires is included."""
    related: tuple[Match, ...] = ()
    next_steps: tuple[Match, ...] = ()
    mode: RankingMode
    diagnostics: tuple[Diagnostic, ...] = ()
    counts: Counts = field(default_factory=Counts)
    normalized: tuple[str, ...] = ()
    """Each query in English if the normalizer changed it, else the original. A single query may
    have become several: its steps."""
    stages: Mapping[str, float] = field(default_factory=dict, compare=False)
    """Seconds in each stage, keyed by name."""
    nearest: Match | None = None
    """Entity closest to the query, if there is no match."""
    unmatched: tuple[str, ...] = ()
    """Words of the query that no entity contains, if there is no match."""
    servers: tuple[str, ...] = ()
    """Servers that the caller may see, if there is no match."""
    display_scores: tuple[float, ...] = ()
    """Display score of each match, 0 to 1; empty without ``display_limit``."""
    scoring: tuple[Scoring, ...] = ()
    """Parts of each match's score; empty unless explained and ranked by a policy."""
    ranks: tuple[EvidenceRanks, ...] = ()
    """Ranks of each match by each kind of evidence; empty unless explained."""
    filtered: tuple[FilteredEntity, ...] = ()
    """Entities that filters excluded, best first, at most 5; empty unless explained. It contains
    only entities that the reader of the explanation may see, and servers only if searched."""
    cached: bool = field(default=False, compare=False)

    @property
    def shown(self) -> tuple[Match, ...]:
        """All entities, each at its first position: matches, each before its prerequisites, then
        related tools and next steps.
        """
        after: dict[str, list[Match]] = {}
        for prerequisite in self.prerequisites:
            path = prerequisite.evidence.path
            after.setdefault(path[0].subject if path else "", []).append(prerequisite)
        ordered = [item for match in self.matches for item in (match, *after.pop(match.id, ()))]
        remaining = [item for group in after.values() for item in group]
        every = (*ordered, *remaining, *self.related, *self.next_steps)
        first = {item.id: item for item in reversed(every)}
        return tuple(first[key] for key in dict.fromkeys(item.id for item in every))

    @property
    def degraded(self) -> bool:
        """True if a stage failed that should have worked."""
        return any(note.code in DEGRADING for note in self.diagnostics)

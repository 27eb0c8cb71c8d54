"""Request and result of a search."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from gateway.types.diagnostics import DEGRADING, Diagnostic
from gateway.types.entities import Filters

Strategy = Literal["graph", "embeddings", "auto"]
RankingPolicy = Literal["strategy", "hybrid", "weighted", "legacy", "lexical"]
"""Ranking of one search: ``strategy`` is the gateway's strategy, other values are policies of
`gateway.search.rank.policies`. The plugin ``rankings`` adds all policies except *lexical*."""
RankingMode = Literal["browse", "empty", "graph", "vector", "hybrid", "lexical"]
"""Ranking that a search actually used. *browse*: none, because there is no query. *empty*: none,
because the catalog is empty. *graph*: words and graph. *vector*: only vectors. *hybrid*: vectors
and other evidence. *lexical*: only words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchRequest:
    """A search with checked arguments."""

    queries: tuple[str, ...]
    """Queries as the caller wrote them. Several are the steps of one task. Empty lists the
    catalog."""
    context: str = ""
    """The ``context`` and ``context_summary`` of the caller as one text. It affects the ranking,
    but not the confidence."""
    limit: int = 5
    filters: Filters = field(default_factory=Filters)
    ranking: RankingPolicy = "strategy"
    diversify: bool = False
    """True limits the share of each kind; see `gateway.search.rank.display`."""
    display_limit: int = 0
    """Number of matches chosen for display from *limit*; 0 returns all. See
    `gateway.search.rank.display`."""
    tenant: str = ""
    """Id of the caller's tenant, chosen by the host; empty without one."""
    explain: bool = False
    """True adds an explanation of the scores to the result and to the log."""
    reader: Filters = field(default_factory=Filters)
    """Filters of the caller who reads the explanation. It names only entities that pass them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PathStep:
    """One edge of a path in the graph to a supplement."""

    subject: str
    """Id of the entity or other graph node where the edge starts."""
    predicate: str
    object: str
    """Id of the entity or other graph node where the edge ends."""
    source: str = ""
    """Place that declares the edge: ``FILE:LINE`` in a host's document, or ``PLUGIN/FILE:LINE``.
    For other edges ``derived/RULE``, or ``learned, 4 of 12``; empty if unknown."""
    declared: bool = False
    """True if the host or a plugin declares the edge."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """Reasons why an entity is a match. A number is None if its stage did not score the entity."""

    vector: float | None = None
    """Maximum cosine between the entity and the forms of the query, -1 to 1."""
    lexical: float | None = None
    """Share of the query's words that the entity contains, weighted by rarity, 0 to 1."""
    graph: float | None = None
    """Share of the query's words that the entity's graph node contains, 0 to 1."""
    words: tuple[str, ...] = ()
    """Words of the query that the entity contains."""
    path: tuple[PathStep, ...] = ()
    """Edges in the graph from a match to this supplement; empty for a match."""
    exact_name: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """One entity of a search result, with its score."""

    id: str
    name: str
    """Exposed name of the entity, which a model uses to call it."""
    server: str
    description: str
    required: tuple[str, ...] = ()
    score: float
    """Score of the entity in the ranking; higher is better. Scores of different queries are not
    comparable."""
    confidence: float
    """Calibrated confidence that the entity fits the query, 0 to 1. It is comparable between
    queries and ranking modes."""
    evidence: Evidence = field(default_factory=Evidence)
    direct: bool = True
    """True if the entity may become a proxy: a match, or a supplement inside the window."""
    suspicious: bool = False
    """True if the definition looks like an attack on a model. The entity then never becomes a
    proxy, and models never see its texts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scoring:
    """Parts of a match's score that a ranking policy computed. A number is None if the policy does
    not use it.
    """

    score: float
    """Score by the policy, before adjustments for an exact name or past calls."""
    vector: float | None
    """Cosine between the entity and the query, -1 to 1."""
    text_boost: float
    """Score of the query's keywords in the entity, weighted as in server registries, >= 0."""
    keyword_share: float
    """Score of the query's keywords in the entity, as a share of the maximum score, 0 to 1."""
    vector_rank: int | None
    """Rank by vectors, from 1, in the fusion of the policy *hybrid*. None if the entity is not in
    the list by vectors."""
    keyword_rank: int | None
    """Rank by keywords, from 1, in the fusion of the policy *hybrid*. None if the entity is not in
    the list by keywords."""
    rrf_score: float | None
    """Sum of 1/(60 + rank) over both lists (reciprocal rank fusion); None without fusion."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceRanks:
    """Ranks of a match among all eligible entities, from 1, for each kind of evidence alone.

    A rank is None if that evidence does not apply to the match.
    """

    vector: int | None
    """Rank by vectors. Also None if the match is not among the candidates chosen by vectors."""
    lexical: int | None
    """Rank by words (BM25F)."""
    graph: int | None
    """Rank by the words of the match's graph node."""
    usage: int | None
    """Rank by the outcomes of past calls, among the entities that were called."""
    ranked: int | None
    """Rank by all evidence together, before adjustments for past calls and for the share of each
    kind. None if only an exact name made the entity a match."""
    final: int
    """Rank of the match in the result."""
    signals: tuple[tuple[str, float], ...] = ()
    """Name and contribution of each signal to the score of `auto`, in standard deviations. Empty if
    another ranking was used, or if only an exact name made it a match."""


FilterName = Literal[
    "kind", "status", "disabled", "described", "tag", "server", "left_out", "scope", "policy"
]
"""Name of a filter that excludes an entity. *left_out* is `Filters.without`, or an unreachable
server if only healthy ones are searched. *policy* is an `AccessPolicy`. Other names are fields of
`Filters`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FilteredEntity:
    """An entity that would be a match without the filters."""

    id: str
    kind: str
    rank: int
    """Rank that the entity would have without the filters, from 1."""
    confidence: float
    """Confidence of the entity, as in a `Match`."""
    filters: tuple[FilterName, ...]
    """Names of all filters that exclude the entity."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """Amounts of work that one search caused."""

    eligible: int = 0
    """Number of entities that passed the filters."""
    candidates: int = 0
    """Number of candidates that were scored again by all signals."""
    window: int = 0
    """Number of candidates from which supplements may come."""
    graph_nodes: int = 0
    """Number of graph nodes visited to find supplements. An entity without edges into the window
    adds 0."""
    embedded_texts: int = 0
    """Number of texts that the search sent to the embedder; 0 if the cache had their vectors."""
    tokens: int = 0
    """Number of tokens of the embedded texts, as reported by the embedder."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchResult:
    """The result of a search. Its diagnostics distinguish an empty result from a failed stage.

    Example:
        >>> result = await gateway.search("add numbers")
        >>> result.matches[0].id
        'local/add'
    """

    matches: tuple[Match, ...] = ()
    prerequisites: tuple[Match, ...] = ()
    """Tools to call before a match, because an edge of the graph says that the match requires them.
    They are in the order of the matches. A match that a better match requires is included."""
    related: tuple[Match, ...] = ()
    next_steps: tuple[Match, ...] = ()
    mode: RankingMode
    diagnostics: tuple[Diagnostic, ...] = ()
    counts: Counts = field(default_factory=Counts)
    normalized: tuple[str, ...] = ()
    """Each query in English if the normalizer changed it, else the original."""
    stages: Mapping[str, float] = field(default_factory=dict, compare=False)
    """Seconds spent in each stage of the search, keyed by the stage's name."""
    nearest: Match | None = None
    """Entity closest to the query, if the result has no match; else None."""
    unmatched: tuple[str, ...] = ()
    """Words of the query that no entity contains, if the result has no match; else empty."""
    servers: tuple[str, ...] = ()
    """Names of all servers that the caller may see, if the result has no match; else empty."""
    display_scores: tuple[float, ...] = ()
    """Score of each match for its display, 0 to 1. Empty without ``display_limit``."""
    scoring: tuple[Scoring, ...] = ()
    """Parts of each match's score. Empty unless an explanation was requested and a policy
    ranked."""
    ranks: tuple[EvidenceRanks, ...] = ()
    """Ranks of each match by each kind of evidence. Empty unless an explanation was requested."""
    filtered: tuple[FilteredEntity, ...] = ()
    """Entities that filters excluded, best first, at most 5. Empty unless an explanation was
    requested. Contains only entities that the reader of the explanation may see, and servers only
    if servers are searched.
    """
    cached: bool = field(default=False, compare=False)
    """True if the result came from the cache."""

    @property
    def shown(self) -> tuple[Match, ...]:
        """All entities of the result in one list: each match followed by its prerequisites, then
        related tools and next steps.

        An entity is listed once, at its first position.
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
        """True if a stage of the search failed that should have worked."""
        return any(note.code in DEGRADING for note in self.diagnostics)

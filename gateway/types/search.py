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
"""Ranking that was actually used. *browse*: none, without a query. *empty*: none, because the
catalog is empty. *graph*: words and graph. *vector*: only vectors. *hybrid*: vectors and other
evidence. *lexical*: only words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchRequest:
    """A search with checked arguments."""

    queries: tuple[str, ...]
    """Original queries; several are the steps of one task. Empty lists the catalog."""
    context: str = ""
    """Context and its summary as one text. It affects the ranking, but not the confidence."""
    limit: int = 5
    filters: Filters = field(default_factory=Filters)
    ranking: RankingPolicy = "strategy"
    diversify: bool = False
    """True limits the share of each kind; see `gateway.search.rank.display`."""
    display_limit: int = 0
    """Number of matches chosen for display from *limit*; 0 returns all. See
    `gateway.search.rank.display`."""
    tenant: str = ""
    """Name of the tenant, chosen by the host; empty without a tenant."""
    explain: bool = False
    """True adds an explanation of the scores to the result and to the log."""
    reader: Filters = field(default_factory=Filters)
    """Filters of the caller who reads the explanation. It names only entities that pass them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PathStep:
    """One edge of a path in the graph to a supplement."""

    subject: str
    """Id of an entity, or of another node of the graph."""
    predicate: str
    object: str
    """Id of an entity, or of another node of the graph."""
    source: str = ""
    """File and line that declare the edge, ``file:line``; empty for a derived edge."""
    declared: bool = False
    """True if the host declared the edge."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """Reasons for a match. A number is None if its stage did not score the entity."""

    vector: float | None = None
    """Maximum cosine over the forms of the query, -1 to 1."""
    lexical: float | None = None
    """Share of the query's words that the entity contains, weighted by rarity, 0 to 1."""
    graph: float | None = None
    """Share of the query's words that the entity's graph node contains, 0 to 1."""
    words: tuple[str, ...] = ()
    """Words of the query that the entity contains."""
    path: tuple[PathStep, ...] = ()
    """Edges from a match to this supplement."""
    exact_name: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """One entity of a result."""

    id: str
    name: str
    """Exposed name, which a model uses to call it."""
    server: str
    description: str
    required: tuple[str, ...] = ()
    score: float
    """Score of the ranking, highest first. Scores of different queries are not comparable."""
    confidence: float
    """Calibrated confidence, 0 to 1, comparable between queries and ranking modes."""
    evidence: Evidence = field(default_factory=Evidence)
    direct: bool = True
    """True if it may become a proxy: a match, or a supplement inside the window."""
    suspicious: bool = False
    """True if its definition looks like an attack on a model. It never becomes a proxy, and models
    never see its texts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scoring:
    """Parts of a score that a ranking policy computed. A number is None if the policy does not use
    it.
    """

    score: float
    """The policy's score, before adjustments for an exact name or past calls."""
    vector: float | None
    """Cosine, -1 to 1."""
    text_boost: float
    """Score of the keywords as registries count it, >= 0."""
    keyword_share: float
    """Score of the keywords as a share of the maximum, 0 to 1."""
    vector_rank: int | None
    """Rank by vectors in the fusion of *hybrid*, from 1; None if not in that list."""
    keyword_rank: int | None
    """Rank by keywords in the fusion of *hybrid*, from 1; None if not in that list."""
    rrf_score: float | None
    """Sum of 1/(60 + rank) over both lists; None without fusion."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceRanks:
    """Ranks of a match among all eligible entities, from 1, for each kind of evidence alone.

    A rank is None if that evidence does not apply to the match.
    """

    vector: int | None
    """Rank by vectors; None also beyond the candidates chosen by vectors."""
    lexical: int | None
    """Rank by words (BM25F)."""
    graph: int | None
    """Rank by the words of its graph node."""
    usage: int | None
    """Rank by the outcomes of past calls, among entities that were called."""
    ranked: int | None
    """Rank by all evidence, before adjustments for past calls and shares of kinds. None if only an
    exact name made it a match."""
    final: int
    """Rank in the result."""
    signals: tuple[tuple[str, float], ...] = ()
    """Name and contribution of each signal to the score of `auto`, in standard deviations. Empty if
    another ranking was used, or if only an exact name made it a match."""


FilterName = Literal[
    "kind", "status", "disabled", "described", "tag", "server", "left_out", "scope", "policy"
]
"""A field of `Filters` that excludes an entity. *left_out* is `Filters.without`, and unreachable
servers if only healthy ones are searched. *policy* is an `AccessPolicy`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FilteredEntity:
    """An entity that would be a match without the filters."""

    id: str
    kind: str
    rank: int
    """Rank without these filters, from 1."""
    confidence: float
    """Confidence, as in a `Match`."""
    filters: tuple[FilterName, ...]
    """All filters that exclude the entity."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """Amount of work of one search."""

    eligible: int = 0
    """Number of entities that passed the filters."""
    candidates: int = 0
    """Number of candidates that were scored again."""
    window: int = 0
    """Number of candidates from which supplements may come."""
    graph_nodes: int = 0
    """Number of graph nodes visited for supplements. Entities without edges into the window
    add 0."""
    embedded_texts: int = 0
    """Number of texts sent to the embedder; 0 on a cache hit."""
    tokens: int = 0
    """Number of tokens of these texts, as reported by the embedder."""


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
    """Tools to call before a match, from edges that require it, in the order of the matches.
    Includes a match that a better match requires."""
    related: tuple[Match, ...] = ()
    next_steps: tuple[Match, ...] = ()
    mode: RankingMode
    diagnostics: tuple[Diagnostic, ...] = ()
    counts: Counts = field(default_factory=Counts)
    normalized: tuple[str, ...] = ()
    """Each query in English if the normalizer changed it, else the original."""
    stages: Mapping[str, float] = field(default_factory=dict, compare=False)
    """Seconds spent in each stage, keyed by its name."""
    nearest: Match | None = None
    """The closest entity, if the result has no match."""
    unmatched: tuple[str, ...] = ()
    """Words of the query that no entity contains, if the result has no match."""
    servers: tuple[str, ...] = ()
    """Names of all servers, if the result has no match."""
    display_scores: tuple[float, ...] = ()
    """Display score of each match, 0 to 1; empty if matches were not chosen for display."""
    scoring: tuple[Scoring, ...] = ()
    """Parts of each match's score, if `SearchRequest.explain` and a policy ranked."""
    ranks: tuple[EvidenceRanks, ...] = ()
    """Ranks of each match, if `SearchRequest.explain`."""
    filtered: tuple[FilteredEntity, ...] = ()
    """Entities excluded by filters, best first, at most 5, if `SearchRequest.explain`. Contains
    only entities that the reader of the explanation may see, and servers only if servers are
    searched.
    """
    cached: bool = field(default=False, compare=False)
    """True if the result came from the cache."""

    @property
    def shown(self) -> tuple[Match, ...]:
        """All entities in one list: matches with their prerequisites, then related and next steps.

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
        """True if a stage failed that should have worked."""
        return any(note.code in DEGRADING for note in self.diagnostics)

"""What is asked of a search, and what it gives."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from gateway.types.diagnostics import DEGRADING, Diagnostic
from gateway.types.entities import Filters

Strategy = Literal["graph", "embeddings", "auto"]
RankingPolicy = Literal["strategy", "hybrid", "weighted", "legacy", "lexical"]
"""How one search weighs its evidence: as the gateway's strategy says, or by a policy of
`gateway.search.rank.policies`; all but *lexical* are of the plugin ``rankings``."""
RankingMode = Literal["browse", "empty", "graph", "vector", "hybrid", "lexical"]
"""What really ranked: *browse* nothing, without a query; *empty* nothing, without a catalog;
*graph* words and graph; *vector* vectors alone; *hybrid* vectors with other evidence; *lexical*
words alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchRequest:
    """One search, checked and ready for the pipeline."""

    queries: tuple[str, ...]
    """As the user said them; several are the steps of one task. Empty means browse."""
    context: str = ""
    """The context, flattened, and its summary: ranking reads them, confidence does not."""
    limit: int = 5
    filters: Filters = field(default_factory=Filters)
    ranking: RankingPolicy = "strategy"
    diversify: bool = False
    """Whether no kind may take most places; see `gateway.search.rank.display`."""
    display_limit: int = 0
    """How many of *limit* are displayed; 0 gives all. See `gateway.search.rank.display`."""
    tenant: str = ""
    """The host's label of the tenant; empty for none."""
    explain: bool = False
    """Whether the result says how its scores were made, and the log too."""
    reader: Filters = field(default_factory=Filters)
    """Those of the party that reads the explanation: it names what that may see."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PathStep:
    """One edge of the graph on the way to a supplement."""

    subject: str
    """An entity's id, or a node of the graph that is no entity."""
    predicate: str
    object: str
    """As the subject."""
    source: str = ""
    """File and line the edge came from, ``file:line``; empty for a derived edge."""
    declared: bool = False
    """True if the host wrote the edge."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """Why something was found. A number is None where its stage said nothing."""

    vector: float | None = None
    """Best cosine over the query texts, -1 to 1."""
    lexical: float | None = None
    """Share of the query's words that the entity holds, weighted by rarity, 0 to 1."""
    graph: float | None = None
    """Share of the query's words that the entity's graph node holds, 0 to 1."""
    words: tuple[str, ...] = ()
    """The query's words that the entity holds."""
    path: tuple[PathStep, ...] = ()
    """The edges from a primary match to this supplement."""
    exact_name: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """One found entity."""

    id: str
    name: str
    """The exposed name, by which a model calls it."""
    server: str
    description: str
    required: tuple[str, ...] = ()
    score: float
    """The ranking's own number, best first within one list; not comparable between queries."""
    confidence: float
    """Calibrated, 0 to 1, comparable between queries and ranking modes."""
    evidence: Evidence = field(default_factory=Evidence)
    direct: bool = True
    """Whether it may become a proxy tool: a match, or a supplement inside the semantic window."""
    suspicious: bool = False
    """Whether its definition looks like an attack on a model. Then it never becomes a proxy tool,
    and no model is shown its texts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scoring:
    """How a policy of the catalog made one score. A number is None where the policy has none."""

    score: float
    """The policy's own, before an exact name or past calls move a match."""
    vector: float | None
    """The cosine, -1 to 1."""
    text_boost: float
    """Of the keywords, >= 0; what registries count."""
    keyword_share: float
    """What the keywords earn of what they could, 0 to 1."""
    vector_rank: int | None
    """In the list that *hybrid* fuses, from 1; None if it is not in that list."""
    keyword_rank: int | None
    """As `vector_rank`."""
    rrf_score: float | None
    """The sum of 1/(60 + rank) over both lists; None if no lists were fused."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceRanks:
    """The places of one match among all that are eligible, from 1, by each kind of evidence alone.

    None if that evidence says nothing of it.
    """

    vector: int | None
    """By the model; None too beyond the candidates that vectors choose."""
    lexical: int | None
    """By words, BM25F."""
    graph: int | None
    """By the words of its graph node."""
    usage: int | None
    """By how its past calls ended, among those that were called."""
    ranked: int | None
    """By all of it, before past calls and the shares of kinds move it; None if an exact name alone
    brought it in."""
    final: int
    """In the result."""
    signals: tuple[tuple[str, float], ...] = ()
    """How much each signal of `auto` adds to the score, by its name, in deviations; empty if
    something else ranked, or an exact name alone brought it in."""


FilterName = Literal[
    "kind", "status", "disabled", "described", "tag", "server", "left_out", "scope", "policy"
]
"""What keeps an entity from being found: a field of `Filters`. *left_out* is what
`Filters.without` names, and servers that cannot be reached where only healthy ones are wanted;
*policy* is an `AccessPolicy`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FilteredEntity:
    """An entity that would be among the matches, if filters did not leave it out."""

    id: str
    kind: str
    rank: int
    """Its place without these filters, from 1."""
    confidence: float
    """As for a `Match`."""
    filters: tuple[FilterName, ...]
    """All that leave it out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """How much work one search took."""

    eligible: int = 0
    """Entities that passed the filters."""
    candidates: int = 0
    """Entities in the re-scoring pool."""
    window: int = 0
    """Entities that supplements may come from."""
    graph_nodes: int = 0
    """Graph nodes visited by expansion; none around an entity without edges into the window."""
    embedded_texts: int = 0
    """Texts sent to the embedder by this search; 0 on a cache hit."""
    tokens: int = 0
    """Tokens that the embedder reported for them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchResult:
    """What a search gives, in every case. Nothing found is not the same as could not look."""

    matches: tuple[Match, ...] = ()
    prerequisites: tuple[Match, ...] = ()
    """What must be called before a match, by hard edges; those of the first match come first. A
    match that a better match needs is listed here too."""
    related: tuple[Match, ...] = ()
    next_steps: tuple[Match, ...] = ()
    mode: RankingMode
    diagnostics: tuple[Diagnostic, ...] = ()
    counts: Counts = field(default_factory=Counts)
    normalized: tuple[str, ...] = ()
    """The English form of each query that normalization changed, else the query itself."""
    stages: Mapping[str, float] = field(default_factory=dict, compare=False)
    """Seconds spent in each stage, by name."""
    nearest: Match | None = None
    """If nothing serves the request: what came nearest."""
    unmatched: tuple[str, ...] = ()
    """If nothing serves the request: its words that no entity holds."""
    servers: tuple[str, ...] = ()
    """If nothing serves the request: which servers there are, by name."""
    display_scores: tuple[float, ...] = ()
    """The display score of each match, 0 to 1, if matches were chosen for display; else empty."""
    scoring: tuple[Scoring, ...] = ()
    """How the score of each match was made, if `SearchRequest.explain` and a policy ranked."""
    ranks: tuple[EvidenceRanks, ...] = ()
    """The places of each match, if `SearchRequest.explain`."""
    filtered: tuple[FilteredEntity, ...] = ()
    """What filters left out of the matches, best first, at most 5, if `SearchRequest.explain`: only
    what the reader of the explanation may see, and no servers where these are not searched."""
    cached: bool = field(default=False, compare=False)
    """True if this result came from the result cache."""

    @property
    def shown(self) -> tuple[Match, ...]:
        """All lists as one: each match, its prerequisites after it, then related and next steps.

        Each entity stands where it comes first, so that a match that a better one needs moves up.
        """
        after: dict[str, list[Match]] = {}
        for each in self.prerequisites:
            path = each.evidence.path
            after.setdefault(path[0].subject if path else "", []).append(each)
        ordered = [one for match in self.matches for one in (match, *after.pop(match.id, ()))]
        left = [one for found in after.values() for one in found]
        every = (*ordered, *left, *self.related, *self.next_steps)
        first = {each.id: each for each in reversed(every)}
        return tuple(first[key] for key in dict.fromkeys(each.id for each in every))

    @property
    def degraded(self) -> bool:
        """True if a stage that should have worked did not."""
        return any(note.code in DEGRADING for note in self.diagnostics)

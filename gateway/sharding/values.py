"""What a coordinator asks of the parts of a catalog, and what they answer.

A *position* is the number of an entity within its own part.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from gateway.errors import GatewayError
from gateway.index.eligibility import Positions
from gateway.index.statistics import CatalogStatistics
from gateway.index.vectors import Moments
from gateway.options import SearchOptions
from gateway.search.expand.supplements import Supplement
from gateway.search.query import Query
from gateway.search.rank.fusion import Pool, PoolMoments
from gateway.types import Diagnostic, Evidence, Filters, Match


class PartChangedError(GatewayError):
    """A part is not as the coordinator knows it: its catalog changed, or it began anew."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Overview:
    """What filters leave of a part, or of all parts."""

    size: int = 0
    """How many entities there are."""
    eligible: int = 0
    visible: int = 0
    """How many the caller could see with other filters."""
    embedded: int = 0
    """How many of the eligible have a vector."""
    dimensions: int | None = None
    """Of the vectors; None without any."""
    has_graph: bool = False
    tags: Mapping[str, int] = field(default_factory=dict)
    """Of the eligible entities."""
    servers: tuple[str, ...] = ()
    """The first of the servers of the eligible entities, sorted."""
    words: tuple[str, ...] = ()
    """Those of the words in question that eligible entities hold."""
    first: tuple[Match, ...] = ()
    """The first eligible entities by name, if some are wanted."""
    notes: tuple[Diagnostic, ...] = ()
    """Those of the index build that each search repeats."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OverviewRequest:
    """Asks what filters leave of a part."""

    key: str
    """The statistics that the part was compiled with."""
    filters: Filters
    words: tuple[str, ...] = ()
    """Words of which it is to be said whether eligible entities hold them."""
    first: int = 0
    """How many of the first entities by name are wanted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SurveyRequest:
    """Asks what a part has for queries."""

    key: str
    queries: tuple[Query, ...]
    """Not rewritten."""
    filters: Filters
    count: int
    """How many candidates are wanted of each query."""
    by_words: bool
    """Whether words rank beside the vectors."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Survey:
    """What a part has for one query."""

    eligible: int
    pool: Pool
    """The candidates, best first; where words do not rank, zeros stand for what they say."""
    moments: PoolMoments
    coverages: tuple[float, ...]
    """The largest share of each form of the query that one entity holds; empty for one form."""
    named: tuple[tuple[bool, tuple[int, ...]], ...]
    """For each name in the query: whether it is an id, and the entities of that name."""
    labels: Mapping[int, str]
    """Of the candidates, and of what the query calls by name: the exposed name without case, the id
    and the kind, with a tab between. Sorted by these, entities of all parts are in the order of
    names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SurveyAnswer:
    """What a part has for the queries of one search."""

    search: str
    """The name of the search within the part."""
    surveys: tuple[Survey, ...]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class QueryChoice:
    """What the whole catalog says of one query."""

    moments: Moments
    """Of vectors."""
    eligible: int
    form: int
    """The form that confidence is measured by."""
    listed: Positions
    """The positions that the graph is asked about."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DetailsRequest:
    """Asks about the entities that may be shown."""

    search: str
    queries: tuple[QueryChoice, ...]
    wanted: Positions
    """The positions of which all is to be told."""
    matches: Positions
    """The positions of the matches, best first: their neighbours are wanted."""
    leads: bool
    """Whether the first of these is the first match of all parts."""
    window: Positions
    """The positions that supplements may come from."""
    options: SearchOptions
    model: str
    """The embedder's model id."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Details:
    """An entity that may be shown."""

    position: int
    match: Match
    """Without score and confidence."""
    node: tuple[str, str]
    """The label and the id of its node in the graph: among equally strong neighbours its place."""
    trusted: bool
    generation: int
    assessed: tuple[tuple[float, Evidence], ...]
    """By query: how likely it is what was asked for, and why."""
    notes: tuple[Diagnostic, ...] = ()
    """What is to be said of its definition."""

    @property
    def server(self) -> str:
        """Its server."""
        return self.match.server

    @property
    def description(self) -> str:
        """What it says of itself."""
        return self.match.description


@dataclass(frozen=True, slots=True, kw_only=True)
class DetailsAnswer:
    """All that is told of entities, and the neighbours of matches."""

    details: tuple[Details, ...] = ()
    hits: tuple[tuple[tuple[int, float, float], ...], ...] = ()
    """By query: positions that hold nearly as much of the graph's words as the best of this part,
    with scores and shares of the words. All is told of those in the window."""
    prerequisites: tuple[Supplement, ...] = ()
    related: tuple[Supplement, ...] = ()
    next_steps: tuple[Supplement, ...] = ()
    unmatched: tuple[tuple[str, ...], ...] = ()
    """By query: its words that no eligible entity holds."""
    visited: int = 0
    """Graph nodes that were looked at."""


class Part(Protocol):
    """A part of a catalog, in this process or in another.

    Every method but the first two raises `PartChangedError` if the part was not compiled with the
    statistics that the request names.
    """

    @property
    def name(self) -> str:
        """What diagnostics call it."""
        ...

    async def statistics(self) -> CatalogStatistics:
        """Count what it holds by itself."""
        ...

    async def adopt(self, whole: CatalogStatistics) -> None:
        """Compile it with the statistics of all parts."""
        ...

    async def overview(self, request: OverviewRequest) -> Overview:
        """Return what filters leave of it."""
        ...

    async def survey(self, request: SurveyRequest) -> SurveyAnswer:
        """Return its candidates for queries, and sums over all that is eligible."""
        ...

    async def details(self, request: DetailsRequest) -> DetailsAnswer:
        """Return all that is shown of entities; the survey of the same search came before."""
        ...

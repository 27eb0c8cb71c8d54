"""What a coordinator asks of the parts of a catalog, and what they answer.

A *position* is the number of an entity within its own part. Arrays travel as base64: numbers of 32
bits, little-endian.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Protocol, TypeAlias

import numpy as np
from pydantic import PlainSerializer, PlainValidator

from gateway.errors import GatewayError
from gateway.index.eligibility import Positions
from gateway.index.statistics import CatalogStatistics
from gateway.options import SearchOptions
from gateway.runtime.vectors import Vector
from gateway.search.expand.supplements import Supplement
from gateway.search.query import Query
from gateway.search.rank.fusion import PoolMoments
from gateway.types import Diagnostic, Evidence, Filters, Match


def _encoder(dtype: str) -> PlainSerializer:
    def encode(array: np.ndarray) -> str:
        return base64.b64encode(np.ascontiguousarray(array, dtype=dtype).tobytes()).decode()

    return PlainSerializer(encode, return_type=str)


def _decoder(dtype: str, native: type[np.generic]) -> PlainValidator:
    def decode(value: Any) -> np.ndarray:
        if isinstance(value, np.ndarray):
            return value
        data = base64.b64decode(value, validate=True)
        return np.frombuffer(data, np.dtype(dtype)).astype(native)

    return PlainValidator(decode)


Numbers: TypeAlias = Annotated[Positions, _decoder("<i4", np.intp), _encoder("<i4")]
Floats: TypeAlias = Annotated[Vector, _decoder("<f4", np.float32), _encoder("<f4")]


class PartChangedError(GatewayError):
    """A part is not as the coordinator knows it: its catalog changed, or it began anew."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PartQuery:
    """One query in all its forms."""

    text: str
    corrected: str
    context: str
    clauses: tuple[str, ...]
    clause_count: int
    dimensions: int
    """Of its vectors; 0 without."""
    vectors: Floats
    """Those of the texts, then those of the clauses."""

    @classmethod
    def of(cls, query: Query) -> PartQuery:
        """Return what a part needs to know of *query*, which was not rewritten."""
        vectors = query.vectors
        return cls(
            text=query.text,
            corrected=query.corrected,
            context=query.context,
            clauses=query.clauses,
            clause_count=query.clause_count,
            dimensions=vectors.texts.shape[1],
            vectors=np.concatenate([vectors.texts.ravel(), vectors.clauses.ravel()]),
        )

    def query(self) -> Query:
        """Return the query."""
        query = Query(
            text=self.text,
            corrected=self.corrected,
            english=self.text,
            context=self.context,
            clauses=self.clauses,
            clause_count=self.clause_count,
        )
        if not self.dimensions:
            return query
        rows, count = self.vectors.reshape(-1, self.dimensions), len(query.texts)
        return query.with_rows(rows[:count], rows[count:])


@dataclass(frozen=True, slots=True, kw_only=True)
class Overview:
    """What filters leave of a part."""

    size: int
    """How many entities there are."""
    eligible: int
    visible: int
    """How many the caller could see with other filters."""
    embedded: int
    """How many of the eligible have a vector."""
    dimensions: int | None
    """Of the vectors; None without any."""
    has_graph: bool
    tags: Mapping[str, int]
    """Of the eligible entities."""
    servers: tuple[str, ...]
    """The first of the servers of the eligible entities, sorted."""
    words: tuple[str, ...]
    """Those of the words in question that eligible entities hold."""
    first: tuple[Match, ...]
    """The first eligible entities by name, if some are wanted."""
    notes: tuple[Diagnostic, ...]
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
    queries: tuple[PartQuery, ...]
    filters: Filters
    count: int
    """How many candidates are wanted of each query."""
    by_words: bool
    """Whether words rank beside the vectors."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Survey:
    """What a part has for one query."""

    eligible: int
    positions: Numbers
    """The candidates, best first, then what the query calls by name."""
    strengths: Floats
    """One for each candidate."""
    words: Floats
    clauses: Floats
    """As `gateway.search.rank.fusion.Pool`; empty where that has none."""
    groups: Numbers
    group_sizes: Numbers
    moments: PoolMoments
    coverages: tuple[float, ...]
    """The largest share of each form of the query that one entity holds; empty for one form."""
    named: tuple[tuple[bool, tuple[int, ...]], ...]
    """For each name in the query: whether it is an id, and the entities of that name."""
    names: tuple[str, ...]
    ids: tuple[str, ...]
    kinds: tuple[str, ...]
    """The exposed name, the id and the kind at each of *positions*."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SurveyAnswer:
    """What a part has for the queries of one search."""

    search: str
    """The name of the search within the part."""
    surveys: tuple[Survey, ...]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class QueryChoice:
    """What the whole catalog says of one query."""

    moments: PoolMoments
    eligible: int
    form: int
    """The form that confidence is measured by."""
    listed: Numbers
    """The positions that the graph is asked about."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DetailsRequest:
    """Asks about the entities that may be shown."""

    search: str
    queries: tuple[QueryChoice, ...]
    wanted: Numbers
    """The positions of which all is to be told."""
    matches: Numbers
    """The positions of the matches, best first: their neighbours are wanted."""
    leads: bool
    """Whether the first of these is the first match of all parts."""
    window: Numbers
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
    """By query: the positions that the graph's words found, with scores and coverages."""
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

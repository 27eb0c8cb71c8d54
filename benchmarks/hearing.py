"""What the search knows of requests that a catalog serves, and of others: what weights learn from.

Every catalog is asked its own requests and some of each other set that is not related. So are parts
of it, a drawn tool and those nearest to it, so that sizes and subjects vary: eight catalogs alone
would be learned by heart.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import NDArray

from benchmarks.confidence import NO_MATCH
from benchmarks.data import Benchmark, Row, read, rows
from benchmarks.metrics import gold_of
from benchmarks.ranking import opened
from benchmarks.recalled import Recalled
from gateway import LocalEmbedder
from gateway.embed.cache import QueryRows
from gateway.index.snapshot import Snapshot
from gateway.options import SearchOptions
from gateway.search.evidence import Ranking
from gateway.search.pipeline import Search
from gateway.search.run import Run
from gateway.search.served import Numbers, Request
from gateway.search.spelling.mending import Mending
from gateway.search.spelling.wordlists import installed
from gateway.types import RankingMode, SearchRequest, SearchResult

OWN, OTHERS = 400, 100
"""Requests of a catalog's own set, and of each other one."""
OWN_OF_PART, OTHERS_OF_PART = 100, 25
"""The same for a part of a catalog."""
SIZES = (20, 20, 40, 40, 80, 80, 160, 160, 320, 320)
"""Tools of the parts, of which none is more than two thirds of its catalog."""
_FEW = 8
"""A part with fewer requests of its own is left out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Heard:
    """What is known of many requests, one a row."""

    signals: Numbers
    """See `Request`, shape (n, s)."""
    served: NDArray[np.bool_]
    """Whether the catalog serves the request."""
    even: NDArray[np.bool_]
    """Whether the request's id hashes even."""
    agreement: Numbers
    """How much of the request the graph says that the best match holds, 0 to 1."""
    narrowness: Numbers
    """That of the catalog."""
    catalog: NDArray[np.str_]
    """Whose catalog was asked, behind a ``~`` the number of the part."""
    asked: NDArray[np.str_]
    """Whose request it is."""

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read what `save` wrote."""
        with np.load(path, allow_pickle=False) as known:
            names = known["names"]
            return cls(
                signals=known["signals"].astype(np.float64),
                served=known["served"],
                even=known["even"],
                agreement=known["agreement"].astype(np.float64),
                narrowness=known["narrowness"].astype(np.float64),
                catalog=names[known["catalog"]],
                asked=names[known["asked"]],
            )

    def save(self, path: Path) -> None:
        """Write to *path*, in half precision: what is read again is what weights are made of."""
        names = np.unique(np.concatenate([self.catalog, self.asked]))
        np.savez_compressed(
            path,
            allow_pickle=False,
            names=names,
            signals=self.signals.astype(np.float16),
            served=self.served,
            even=self.even,
            agreement=self.agreement.astype(np.float16),
            narrowness=self.narrowness.astype(np.float16),
            catalog=np.searchsorted(names, self.catalog).astype(np.uint8),
            asked=np.searchsorted(names, self.asked).astype(np.uint8),
        )

    @property
    def whole(self) -> NDArray[np.bool_]:
        """Whether the catalog is no part of one."""
        return np.asarray(self.catalog == self.sets)

    @property
    def sets(self) -> NDArray[np.str_]:
        """The set that each catalog, or part of one, is of."""
        return np.array([name.partition("~")[0] for name in self.catalog.tolist()])

    def at(self, rows: NDArray[np.bool_]) -> Self:
        """Give some of the rows."""
        return type(self)(
            signals=self.signals[rows],
            served=self.served[rows],
            even=self.even[rows],
            agreement=self.agreement[rows],
            narrowness=self.narrowness[rows],
            catalog=self.catalog[rows],
            asked=self.asked[rows],
        )


@dataclass(frozen=True, kw_only=True)
class Listening(Search):
    """A search that keeps what it ranked."""

    rankings: list[Ranking] = field(default_factory=list)

    def _finish(self, run: Run, rankings: Sequence[Ranking], mode: RankingMode) -> SearchResult:
        self.rankings[:] = rankings
        return super()._finish(run, rankings, mode)


@dataclass(frozen=True, slots=True, kw_only=True)
class One:
    """One request, and what is known of it."""

    request: Request
    served: bool
    even: bool
    agreement: float
    narrowness: float
    catalog: str
    asked: str


async def listen(folders: Sequence[Path], *, related: Sequence[frozenset[str]]) -> Heard:
    """Ask every catalog, and parts of it.

    Args:
        folders: Sets in the common format.
        related: Sets of which one may serve the requests of another: they are not paired.
    """
    embedder = Recalled(LocalEmbedder())
    sets = {folder.name: (folder, read(folder)) for folder in folders}
    found: list[One] = []
    for name, (folder, benchmark) in sets.items():
        kin = {name}.union(*(group for group in related if name in group))
        others = {key: each.queries for key, (_, each) in sets.items() if key not in kin}
        path = folder / f"{NO_MATCH}.jsonl"
        never = {f"{name}-{NO_MATCH}": list(rows(path))} if path.is_file() else {}
        async with opened(benchmark, strategy="auto", embedder=embedder) as gateway:
            snapshot = await gateway.snapshot(vectors=True)
            asked = {name: _drawn(_served(benchmark), OWN), **never}
            asked |= {key: _drawn(each, OTHERS) for key, each in others.items()}
            found += await _asked(snapshot, name, asked, embedder)
            parts = list(_parts(benchmark, snapshot))
        for number, part in enumerate(parts):
            async with opened(part, strategy="auto", embedder=embedder) as gateway:
                asked = {name: _drawn(_served(part), OWN_OF_PART)}
                asked |= {key: _drawn(each, OTHERS_OF_PART) for key, each in others.items()}
                smaller = await gateway.snapshot(vectors=True)
                found += await _asked(smaller, f"{name}~{number}", asked, embedder)
    return _heard(found)


def _heard(found: Sequence[One]) -> Heard:
    return Heard(
        signals=np.array([each.request for each in found]),
        served=np.array([each.served for each in found]),
        even=np.array([each.even for each in found]),
        agreement=np.array([each.agreement for each in found]),
        narrowness=np.array([each.narrowness for each in found]),
        catalog=np.array([each.catalog for each in found]),
        asked=np.array([each.asked for each in found]),
    )


async def _asked(
    snapshot: Snapshot, catalog: str, asked: Mapping[str, Sequence[Row]], embedder: Recalled
) -> list[One]:
    async def embed(texts: Sequence[str], *, dimensions: int | None) -> QueryRows:
        del dimensions
        return QueryRows(vectors=(await embedder.embed(texts, role="query")).vectors)

    search = Listening(
        options=SearchOptions(),
        strategy="auto",
        embed=embed,
        model=embedder.info.model_id,
        mend=Mending(installed()),
    )
    found = []
    for name, queries in asked.items():
        for query in queries:
            text = str(query["query"])
            await search(snapshot, SearchRequest(queries=(text,)))
            (ranking,) = search.rankings
            told = ranking.told([])
            if told.request is None or ranking.named:
                continue
            best = told.spots[int(np.argmax(told.confidences))]
            found.append(
                One(
                    request=told.request,
                    served=name == catalog.partition("~")[0],
                    even=int(_hash(query), 16) % 2 == 0,
                    agreement=ranking.graph.coverage.get(best, 0.0),
                    narrowness=snapshot.narrowness,
                    catalog=catalog,
                    asked=name,
                )
            )
    return found


def _served(benchmark: Benchmark) -> list[Row]:
    """Give the requests of which everything that is relevant is in the catalog."""
    known = benchmark.entity_ids.keys()
    gold = [(query, frozenset[str]().union(*gold_of(query))) for query in benchmark.queries]
    return [query for query, tools in gold if tools and tools <= known]


def _drawn(queries: Sequence[Row], count: int) -> list[Row]:
    return sorted(queries, key=_hash)[:count]


def _hash(query: Row) -> str:
    return hashlib.sha256(str(query["id"]).encode()).hexdigest()


def _parts(benchmark: Benchmark, snapshot: Snapshot) -> Iterator[Benchmark]:
    vectors = snapshot.vectors
    if vectors is None:
        return
    spots = np.array([snapshot.position(key) for key in benchmark.entity_ids.values()])
    tools, rows_ = list(benchmark.entity_ids), vectors.rows(spots)
    drawn = random.Random(benchmark.name)  # noqa: S311  (no secret)
    for size in SIZES:
        near = rows_ @ rows_[drawn.randrange(len(tools))]
        if size > len(tools) * 2 / 3:
            continue
        part = benchmark.of([tools[at] for at in np.argsort(-near, kind="stable")[:size]])
        if len(_served(part)) >= _FEW:
            yield part

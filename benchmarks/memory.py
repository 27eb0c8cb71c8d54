"""What a large catalog takes in one process: memory by part, the build, and searches under filters.

    python -m benchmarks.memory --entities 20000 --json

* Tools are those of `benchmarks.synthetic`; each tenth and each hundredth has a tag.
* Vectors are drawn around centres, as tools crowd around subjects, and made anew at each request:
  neither a model nor a store of vectors is in the figures.
* A search's time is that of its second run: its vector is remembered, its result is not.
* Bytes are counted from object to object, each once, for the nearest owner on the way to it.
"""

from __future__ import annotations

import asyncio
import gc
import itertools
import resource
import sys
import time
from asyncio import AbstractEventLoop
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from threading import Thread
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Annotated
from zlib import crc32

import numpy as np
import typer

from benchmarks import synthetic
from benchmarks.tables import print_figures
from gateway import Gateway, Options
from gateway.embed.protocol import Embedded, Embedder, EmbedderInfo, EmbeddingLimits, Role
from gateway.index.candidates import VectorQuery
from gateway.index.engine_vectors import VectorEngine
from gateway.index.snapshot import Snapshot
from gateway.index.vectors import VectorIndex
from gateway.options import CacheOptions, IndexOptions
from gateway.plugins.quality.distractors import FixedSource
from gateway.runtime.garbage import release_memory
from gateway.runtime.vectors import Matrix, Vector, unit_rows
from gateway.types import Filters, Hints

PARTS: Mapping[str, str] = {
    "Entity": "entities",
    "ToolDefinition": "definitions",
    "Listing": "listings",
    "ListResult": "listings",
    "EntityRegistry": "names",
    "NameBindings": "names",
    "_PreparedEntity": "texts",
    "Document": "documents",
    "Fact": "facts",
    "EdgeDeriver": "rules",
    "GraphBuilder": "graph_builder",
    "DocumentTokens": "tokens",
    "BM25Index": "postings",
    "GraphIndex": "graph",
    "Eligibility": "filters",
    "VectorIndex": "rows",
    "SignSketch": "sketch",
    "ClusteredEmbedder": "",
}
"""What objects of a class, and all that only they lead to, are counted as."""
_SKIPPED = type, ModuleType, CodeType, BuiltinFunctionType, Thread, AbstractEventLoop
"""Classes whose objects are shared by the whole process."""
_DENSITIES: Mapping[int, frozenset[str]] = {
    100: frozenset(),
    10: frozenset({"tenth"}),
    1: frozenset({"hundredth"}),
}
_CENTRES = 5000
_QUERIES = 20
_TOP = 10
app = typer.Typer(add_completion=False)


@app.command()
def main(
    *,
    entities: Annotated[int, typer.Option(help="How many tools.")] = 20_000,
    dimensions: Annotated[int, typer.Option(help="Numbers of a vector.")] = 1280,
    parts: Annotated[bool, typer.Option(help="Count the bytes of each part.")] = True,
    database: Annotated[str, typer.Option(help="Keep rows in this PostgreSQL database.")] = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Measure, and print every figure; its unit is the name's end."""
    figures = asyncio.run(measure(entities, dimensions, parts=parts, database=database))
    print_figures(figures, as_json=as_json)


async def measure(
    count: int, dimensions: int, *, parts: bool, database: str = ""
) -> dict[str, float]:
    """Build an index of *count* tools, and measure it."""
    embedder = ClusteredEmbedder(dimensions)
    with TemporaryDirectory() as folder:
        gateway = gateway_of(embedder, Path(folder), database)
        gc.collect()
        before, began = _rss(), time.process_time()
        async for source in sources(count):
            gateway.add_source(source)
        listed, added = _rss(), time.process_time()
        await gateway.report()
        built = time.process_time()
        gc.collect()
        release_memory()
        found = {
            "entities": float(count),
            "sources_ms_per_entity": 1000 * (added - began) / count,
            "build_ms_per_entity": 1000 * (built - added - embedder.spent_s) / count,
            "rss_kb_per_entity": (_rss() - before) / count / 1000,
            "rss_of_sources_kb_per_entity": (listed - before) / count / 1000,
            "rss_gb": _rss() / 1e9,
            "peak_gb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9,
        }
        if parts:
            sizes = sizes_of(gateway)
            found |= {f"{part}_bytes": size / count for part, size in sorted(sizes.items())}
            found["all_bytes"] = sum(sizes.values()) / count
        snapshot = await gateway.snapshot()
        for percent, tags in _DENSITIES.items():
            found |= await _search(gateway, snapshot, percent, tags)
        found["rss_after_searches_gb"] = _rss() / 1e9
        await gateway.aclose()
    return found


def gateway_of(embedder: Embedder, folder: Path, database: str = "") -> Gateway:
    """Make a gateway that keeps nothing on disk but in *folder*, and remembers no result.

    Its rows are in *database*, if there is one.
    """
    options = Options(
        catalog_store_path=folder / "catalog.sqlite3",
        index=IndexOptions(saved=False, rows="pgvector" if database else "memory"),
        cache=CacheOptions(result_items=0),
    )
    store = RowStore(database) if database else NoVectorStore()
    return Gateway(strategy="auto", embedder=embedder, vector_store=store, options=options)


def sizes_of(root: object) -> Counter[str]:
    """Count the bytes of all that *root* leads to, by part."""
    sizes: Counter[str] = Counter()
    seen: set[int] = set()
    stack = [(root, "other")]
    while stack:
        each, part = stack.pop()
        if id(each) in seen or isinstance(each, _SKIPPED):
            continue
        seen.add(id(each))
        part = PARTS.get(type(each).__name__, part)
        sizes[part] += sys.getsizeof(each)
        stack += ((other, part) for other in _referents(each))
    del sizes[""]
    return sizes


def _referents(each: object) -> Iterator[object]:
    """Yield what *each* holds; of a function what it closes over, without its module."""
    if isinstance(each, np.ndarray):
        yield each.base
    elif isinstance(each, FunctionType):
        yield from each.__closure__ or ()
    else:
        yield from gc.get_referents(each)


class ClusteredEmbedder:
    """Draws a vector for each text, the same at every request, around one of some centres."""

    def __init__(self, dimensions: int) -> None:
        rng = np.random.default_rng(3)
        self._centres = rng.standard_normal((_CENTRES, dimensions), dtype=np.float32)
        self._away = rng.standard_normal((_CENTRES, dimensions), dtype=np.float32)
        self.spent_s = 0.0
        """Processor time that went into drawing."""
        limits = EmbeddingLimits(max_texts=512, max_chars=8000, max_request_chars=1 << 20)
        self.info = EmbedderInfo(
            model_id="clustered", provider="none", dimensions=dimensions, limits=limits
        )

    async def embed(self, texts: Sequence[str], *, role: Role) -> Embedded:
        """Return the vectors of *texts*; that of a query lies between others."""
        del role
        began = time.thread_time()
        drawn = np.array([crc32(text.encode()) for text in texts])
        rows = unit_rows(self._centres[drawn % _CENTRES] + self._away[drawn // _CENTRES % _CENTRES])
        self.spent_s += time.thread_time() - began
        return Embedded(vectors=rows)


class NoVectorStore:
    """A `VectorStore` that keeps nothing."""

    def get(self, model_id: str, keys: Sequence[str]) -> Mapping[str, Vector]:
        """Return nothing."""
        del model_id, keys
        return {}

    def put(self, model_id: str, vectors: Mapping[str, Vector]) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Do nothing."""


class RowStore(NoVectorStore):
    """Keeps rows of entities in a database, and no vectors of texts."""

    def __init__(self, url: str) -> None:
        from gateway.plugins.postgres import store  # noqa: PLC0415  (its memory is measured)
        from gateway.plugins.postgres.database import PostgresDatabase  # noqa: PLC0415  (likewise)

        database = PostgresDatabase(url, store.SCHEMA, store.TABLES)
        self._store = store.PostgresVectorStore(database)

    def vector_engine(self, model: str, *, timeout_s: float) -> VectorEngine:
        """Return the vectors of one model."""
        return self._store.vector_engine(model, timeout_s=timeout_s)

    def check_engine(self) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Close the connections."""
        self._store.close()


async def sources(count: int) -> AsyncIterator[FixedSource]:
    """Yield the servers, some of their tools with tags."""
    hints = [Hints(), Hints(tags=("tenth",)), Hints(tags=("tenth", "hundredth"))]
    numbers = itertools.count()
    for source in synthetic.servers(count):
        tools = (await source.list_tools()).tools
        tagged = [
            replace(tool, hints=hints[(number % 10 == 0) + (number % 100 == 0)])
            for tool, number in zip(tools, numbers, strict=False)
        ]
        yield FixedSource(source.server, tagged)


async def _search(
    gateway: Gateway, snapshot: Snapshot, percent: int, tags: frozenset[str]
) -> dict[str, float]:
    """Measure searches that *percent* of the entities may answer."""
    filters = Filters(tags=tags)
    mask, vectors = snapshot.mask(filters), snapshot.vectors
    if not isinstance(vectors, VectorIndex):
        return {}
    places = np.random.default_rng(5).integers(vectors.size, size=_QUERIES)
    nearby, recall, scan, spent, processor = np.random.default_rng(7), [], [], [], []
    for row in vectors.rows(places):
        noise = nearby.standard_normal(len(row), dtype=np.float32)
        query = unit_rows(row + 0.8 * noise / len(row) ** 0.5)
        began = time.perf_counter()
        found = vectors.search(VectorQuery(texts=query, clauses=query[:0]), mask=mask, count=200)
        scan.append(time.perf_counter() - began)
        recall.append(_recall(vectors.matrix, query, mask, found.pool[:_TOP]))
    for text in synthetic.queries(_QUERIES):
        await gateway.search(text, filters=filters)
        began, busy = time.perf_counter(), time.process_time()
        await gateway.search(text, filters=filters)
        spent.append(time.perf_counter() - began)
        processor.append(time.process_time() - busy)
    name = f"filter_{percent}_percent"
    return {
        f"{name}_recall_at_10": float(np.mean(recall)),
        f"{name}_vectors_ms": 1000 * median(scan),
        f"{name}_search_ms": 1000 * median(spent),
        f"{name}_search_processor_ms": 1000 * median(processor),
    }


def _recall(rows: Matrix, query: Matrix, mask: np.ndarray, found: np.ndarray) -> float:
    scores = np.where(mask, rows @ query[0], -np.inf)
    best = np.argpartition(scores, -_TOP)[-_TOP:]
    return len({*best.tolist()} & {*found.tolist()}) / _TOP


def _rss() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


if __name__ == "__main__":
    app()

"""What an adapter runs: reads one JSON file, measures its system, writes another. Standard library.

* In: ``{"catalog": […], "queries": […], "limit", "dimensions", "endpoint", "options"}``.
* Out: ``{"version", "note", "build_s", "results": [{"id", "ranked", "cpu_us", "embed_us"}, …]}``.
* CPU is that of the whole process, all threads; what vectors cost is counted apart.
"""

from __future__ import annotations

import asyncio
import json
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Protocol, runtime_checkable

WARM_UP = "warm up"
"""Searched once before the clock runs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """One tool of the catalog."""

    name: str
    """Unique in the catalog: a repeated name carries a number."""
    plain: str
    """The name in the data."""
    server: str
    title: str
    description: str
    input_schema: dict[str, object]
    output_schema: dict[str, object] | None


class System(Protocol):
    """A tool searcher that is measured."""

    async def build(self, tools: Sequence[Tool]) -> str:
        """Index *tools*; return a note for the report, or an empty text."""
        ...

    async def search(self, text: str, limit: int) -> Sequence[str]:
        """Return the names of at most *limit* tools, best first."""
        ...


@runtime_checkable
class Preparable(Protocol):
    """A system that caches the vectors of its queries."""

    async def prepare(self, texts: Sequence[str]) -> None:
        """Embed *texts* before the clock runs."""
        ...


class Vectors:
    """Unit vectors from the endpoint, each text requested once. May be called from any thread."""

    def __init__(self, endpoint: str, dimensions: int) -> None:
        self.dimensions = dimensions
        """Length of a row; 0 without vectors."""
        self.cpu_s = 0.0
        """Process CPU spent in here."""
        self._url = f"{endpoint}/embeddings"
        self._lock = threading.Lock()
        self._rows: dict[str, list[float]] = {}

    def __call__(self, texts: Sequence[str]) -> list[list[float]]:
        """Return one row per text."""
        started = time.process_time()
        with self._lock:
            missing = [text for text in dict.fromkeys(texts) if text not in self._rows]
            if missing:
                self._request(missing)
            rows = [self._rows[text] for text in texts]
        self.cpu_s += time.process_time() - started
        return rows

    def _request(self, texts: list[str]) -> None:
        body = json.dumps({"input": texts, "model": "given"}).encode()
        request = urllib.request.Request(self._url, data=body, method="POST")  # noqa: S310  (ours)
        with urllib.request.urlopen(request) as response:  # noqa: S310  (ours)
            data = json.load(response)["data"]
        self._rows |= {text: row["embedding"] for text, row in zip(texts, data, strict=True)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What an adapter is given."""

    vectors: Vectors
    endpoint: str
    """The same vectors behind the OpenAI API; empty without a model."""
    options: Mapping[str, object]


def serve(make: Callable[[Setting], System], *, package: str) -> None:
    """Measure one system: ``python -m ADAPTER IN.json OUT.json``.

    Args:
        make: Creates the system.
        package: The distribution whose version is reported; empty for none.
    """
    source, target = map(Path, sys.argv[1:])
    task = json.loads(source.read_text(encoding="utf-8"))
    measured = asyncio.run(_measure(task, make))
    measured["version"] = version(package) if package else ""
    target.write_text(json.dumps(measured), encoding="utf-8")


async def _measure(task: dict[str, object], make: Callable[[Setting], System]) -> dict[str, object]:
    endpoint, dimensions = str(task["endpoint"]), int(str(task["dimensions"]))
    vectors = Vectors(endpoint, dimensions)
    catalog, queries, options = task["catalog"], task["queries"], task["options"]
    if not (isinstance(catalog, list) and isinstance(queries, list) and isinstance(options, dict)):
        raise TypeError("catalog and queries are lists, options an object")
    limit = int(str(task["limit"]))
    system = make(Setting(vectors=vectors, endpoint=endpoint, options=options))
    clock = _Clock(vectors)
    note = await system.build([Tool(**row) for row in catalog])
    build_s = clock.own_s()
    texts = [str(query["query"]) for query in queries]
    if dimensions:
        vectors([WARM_UP, *texts])
    await system.search(WARM_UP, limit)
    if isinstance(system, Preparable):
        await system.prepare(texts)
    results = []
    for query, text in zip(queries, texts, strict=True):
        clock = _Clock(vectors)
        ranked = await system.search(text, limit)
        own_us, embed_us = clock.own_s() * 1e6, clock.embed_s() * 1e6
        row = {"id": query["id"], "ranked": list(ranked)[:limit]}
        results.append({**row, "cpu_us": own_us, "embed_us": embed_us})
    return {"note": note, "build_s": build_s, "results": results}


class _Clock:
    """Process CPU since its creation."""

    def __init__(self, vectors: Vectors) -> None:
        self._vectors = vectors
        self._embedded = vectors.cpu_s
        self._started = time.process_time()

    def own_s(self) -> float:
        """Return the seconds without the vectors."""
        return max(0.0, time.process_time() - self._started - self.embed_s())

    def embed_s(self) -> float:
        """Return the seconds of the vectors alone."""
        return self._vectors.cpu_s - self._embedded

"""What an adapter speaks: JSON Lines over its standard input and output. Standard library only.

* In: ``{"catalog": […], "dimensions", "endpoint", "options"}``; out: ``{"built": {…}}``.
* In: ``{"queries": […], "limit"}``; out: one ``{"id", "ranked", "cpu_us", "embed_us"}`` a query.
* An adapter without a model asks for vectors at any time: ``{"embed": path, "role"}`` names a
  file of texts; the answer ``{"vectors": path}`` names a file of float32 rows.
* CPU is that of the whole process, all threads; what vectors cost is not counted.
"""

from __future__ import annotations

import asyncio
import json
import os
import tempfile
import threading
import time
from array import array
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Protocol, TextIO, runtime_checkable

WARM = "warm up"
"""Asked once before the clock runs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """One tool of the catalog."""

    name: str
    """One of a kind in the catalog: a name that comes again carries a number."""
    plain: str
    """The name in the data."""
    server: str
    title: str
    description: str
    input_schema: dict[str, object]
    output_schema: dict[str, object] | None


class System(Protocol):
    """What is measured."""

    async def build(self, tools: Sequence[Tool]) -> str:
        """Index *tools*; give what is to be told of it, or ""."""
        ...

    async def search(self, text: str, limit: int) -> Sequence[str]:
        """Give the names of at most *limit* tools, best first."""
        ...


class Vectors:
    """The host's vectors. May be called from any thread."""

    def __init__(self, host: Host, dimensions: int) -> None:
        self.dimensions = dimensions
        self.role = "document"
        self.cpu_s = 0.0
        """Process CPU spent in here."""
        self._host = host
        self._lock = threading.Lock()
        self._known: dict[tuple[str, str], array[float]] = {}

    def __call__(self, texts: Sequence[str]) -> list[list[float]]:
        """Give one row a text; a text is asked for once."""
        began = time.process_time()
        with self._lock:
            missing = [
                text for text in dict.fromkeys(texts) if (self.role, text) not in self._known
            ]
            if missing:
                self._ask(missing)
            rows = [self._known[self.role, text].tolist() for text in texts]
        self.cpu_s += time.process_time() - began
        return rows

    def _ask(self, texts: list[str]) -> None:
        with tempfile.TemporaryDirectory() as folder:
            asked = Path(folder) / "texts.json"
            asked.write_text(json.dumps(texts), encoding="utf-8")
            self._host.tell({"embed": str(asked), "role": self.role})
            answer = self._host.hear()
            values: array[float] = array("f")
            values.frombytes(Path(str(answer["vectors"])).read_bytes())
        for place, text in enumerate(texts):
            start = place * self.dimensions
            self._known[self.role, text] = values[start : start + self.dimensions]


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What an adapter is given."""

    vectors: Vectors
    endpoint: str
    """The same vectors behind the OpenAI API; empty without a model."""
    options: Mapping[str, object]


@runtime_checkable
class Remembering(Protocol):
    """A system that remembers what it embedded: asking is then searching alone."""

    async def remember(self, texts: Sequence[str]) -> None:
        """Embed *texts*, before anybody looks at the clock."""
        ...


class Host:
    """The other end."""

    def __init__(self, source: TextIO, sink: TextIO) -> None:
        self._source = source
        self._sink = sink

    def hear(self) -> dict[str, object]:
        """Read a line.

        Raises:
            EOFError: If the host hung up.
        """
        line = self._source.readline()
        if not line:
            raise EOFError
        heard: dict[str, object] = json.loads(line)
        return heard

    def tell(self, what: Mapping[str, object]) -> None:
        """Write a line."""
        self._sink.write(json.dumps(what) + "\n")
        self._sink.flush()


def serve(make: Callable[[Setting], System], *, package: str) -> None:
    """Serve one catalog and its queries, then return.

    Args:
        make: Makes the system that is measured.
        package: The distribution whose version is told; "" has none.
    """
    sink = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what a library prints must not get between the lines
    host = Host(os.fdopen(0, encoding="utf-8"), sink)
    asyncio.run(_serve(host, make, version(package) if package else ""))


async def _serve(host: Host, make: Callable[[Setting], System], version: str) -> None:
    first = host.hear()
    catalog = first["catalog"]
    options = first["options"]
    vectors = Vectors(host, int(str(first["dimensions"])))
    tools = [Tool(**row) for row in catalog] if isinstance(catalog, list) else []
    system = make(
        Setting(
            vectors=vectors,
            endpoint=str(first["endpoint"]),
            options=options if isinstance(options, dict) else {},
        )
    )
    clock = _Clock(vectors)
    note = await system.build(tools)
    host.tell({"built": {"cpu_s": clock.own_s(), "note": note, "version": version}})
    await _answer(host, system, vectors)


async def _answer(host: Host, system: System, vectors: Vectors) -> None:
    asked = host.hear()
    queries, limit = asked["queries"], int(str(asked["limit"]))
    if not isinstance(queries, list):
        return
    vectors.role = "query"
    if vectors.dimensions:
        vectors([WARM, *(query["query"] for query in queries)])
    await system.search(WARM, limit)
    if isinstance(system, Remembering):
        await system.remember([query["query"] for query in queries])
    for query in queries:
        clock = _Clock(vectors)
        ranked = await system.search(query["query"], limit)
        own_us, embed_us = clock.own_s() * 1e6, clock.embed_s() * 1e6
        host.tell(
            {
                "id": query["id"],
                "ranked": list(ranked)[:limit],
                "cpu_us": own_us,
                "embed_us": embed_us,
            }
        )


class _Clock:
    """Process CPU since it was made."""

    def __init__(self, vectors: Vectors) -> None:
        self._vectors = vectors
        self._embedded = vectors.cpu_s
        self._began = time.process_time()

    def own_s(self) -> float:
        """Without the vectors."""
        return max(0.0, time.process_time() - self._began - self.embed_s())

    def embed_s(self) -> float:
        """The vectors alone."""
        return self._vectors.cpu_s - self._embedded

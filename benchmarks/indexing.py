"""What an index costs: to build, to change by one tool, to start from, and to scan at a million.

* Process CPU of all threads, medians of several; both sides of a ratio in the same process.
* Vectors are drawn around centres, as tools crowd around subjects; embedding is not counted.
"""

from __future__ import annotations

import asyncio
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from statistics import median
from typing import Annotated, TypeVar

import numpy as np
import typer

from benchmarks.synthetic import servers
from benchmarks.tables import print_figures
from gateway import Gateway
from gateway.embed.cache import MemoryVectorStore
from gateway.index.candidates import VectorQuery
from gateway.index.eligibility import Mask
from gateway.index.vectors import VectorIndex
from gateway.runtime.vectors import Matrix, unit_rows
from gateway.testing import HashingEmbedder
from gateway.types import Strategy

T = TypeVar("T")
STRATEGIES: tuple[Strategy, ...] = ("embeddings", "auto")
_CHUNK = 20_000
_NEIGHBOURS = 20
_TOP = 10
_QUERIES = 20
_STARTS = 5
_ADDED = 21
"""So many tools are added one by one: of one alone, a collection of garbage decides."""


app = typer.Typer(add_completion=False)


@app.command()
def main(
    *,
    few: Annotated[int, typer.Option(help="Tools of the smaller catalog.")] = 1_000,
    many: Annotated[int, typer.Option(help="Tools of the larger one.")] = 10_000,
    rows: Annotated[int, typer.Option(help="Vectors that are scanned.")] = 1_000_000,
    dimensions: Annotated[int, typer.Option(help="Numbers of a vector.")] = 384,
    neighbours: Annotated[int, typer.Option(help="Rows around each centre.")] = _NEIGHBOURS,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Measure, and print every figure; its unit is the name's end."""
    found = {}
    for count in (few, many):
        for strategy in STRATEGIES:
            build, add = asyncio.run(_builds(count, strategy))
            found[f"build_{strategy}_{count}_ms_per_tool"] = 1000 * build / count
            found[f"add_one_{strategy}_{count}_ms"] = 1000 * add
    found |= vectors(rows, dimensions, neighbours)
    numpy = _start("import numpy")
    found["import_numpy_ms"] = 1000 * numpy
    found["import_gateway_ratio"] = _start("import gateway.gateway") / numpy
    print_figures(found, as_json=as_json)


def vectors(count: int, dimensions: int, neighbours: int) -> dict[str, float]:
    """Measure the vector index alone, against the bare kernel over the same rows.

    Where a filter leaves fewer than ten of the *neighbours*, the best ten are rows by chance, which
    differ in nothing but noise: then recall says little.
    """
    rows = rows_of(count, dimensions, neighbours)
    index, build = _timed(lambda: VectorIndex.of(rows))
    name = f"vectors_{count}x{dimensions}"
    found = {f"{name}_build_s": build}
    for percent in (100, 10, 1):
        mask = np.random.default_rng(9).random(len(rows)) < percent / 100
        suffix = "" if percent == 100 else f"_of_{percent}_percent"
        found |= {f"{name}{suffix}_{what}": value for what, value in _scans(index, mask).items()}
    return found


def _scans(index: VectorIndex, mask: Mask) -> dict[str, float]:
    """Measure searches among the rows of *mask*."""
    rows, rng = index.matrix, np.random.default_rng(5)
    scores, excluded = np.empty(len(rows), dtype=np.float32), None if mask.all() else ~mask
    bare, scanned, recall, scored = [], [], [], []
    for row in rows[rng.integers(len(rows), size=_QUERIES)]:
        query = unit_rows(row + 0.8 * rng.standard_normal(len(row)) / len(row) ** 0.5)
        question = VectorQuery(texts=query, clauses=query[:0])

        def kernel(vector: Matrix = query) -> set[int]:
            np.dot(rows, vector[0], out=scores)
            if excluded is not None:
                scores[excluded] = -np.inf
            return set(np.argpartition(scores, -_TOP)[-_TOP:].tolist())

        best, spent = _timed(kernel)
        bare.append(spent)
        found, spent = _timed(partial(index.search, question, mask=mask, count=20))
        scanned.append(spent)
        scored.append(found.scored)
        recall.append(len(best & set(found.pool[:_TOP].tolist())) / _TOP)
    return {
        "query_ms": 1000 * median(scanned),
        "numpy_ms": 1000 * median(bare),
        "ratio_to_numpy": median(scanned) / median(bare),
        "recall_at_10": float(np.mean(recall)),
        "rows_scored": median(scored),
    }


def rows_of(count: int, dimensions: int, neighbours: int) -> Matrix:
    """Draw unit rows around centres of about so many *neighbours* each."""
    rng = np.random.default_rng(3)
    centres = rng.standard_normal((count // neighbours + 1, dimensions), dtype=np.float32)
    rows = np.empty((count, dimensions), dtype=np.float32)
    for start in range(0, count, _CHUNK):
        part = rows[start : start + _CHUNK]
        rng.standard_normal(dtype=np.float32, out=part)
        part += centres[rng.integers(len(centres), size=len(part))]
        part /= np.linalg.norm(part, axis=1, keepdims=True)
    return rows


async def _builds(count: int, strategy: Strategy) -> tuple[float, float]:
    """Return the CPU seconds of a whole build, and the median of those after a tool was added."""
    gateway = Gateway(
        strategy=strategy, embedder=HashingEmbedder(), vector_store=MemoryVectorStore()
    )
    for source in servers(count):
        gateway.add_source(source)
    began = time.process_time()
    await gateway.report()
    built = time.process_time()

    def water_plants() -> str:
        """Water the plants of the garden."""
        return ""

    spent = []
    for number in range(_ADDED):
        before = time.process_time()
        gateway.add_tool(water_plants, name=f"water_plants_{number}")
        await gateway.report()
        spent.append(time.process_time() - before)
    await gateway.aclose()
    return built - began, median(spent)


def _timed(work: Callable[[], T]) -> tuple[T, float]:
    began = time.process_time()
    answer = work()
    return answer, time.process_time() - began


def _start(statement: str) -> float:
    """Return the CPU seconds of a process that runs *statement*."""

    def once() -> float:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, "-c", statement], check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    return median(once() for _ in range(_STARTS))


if __name__ == "__main__":
    app()

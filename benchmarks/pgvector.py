"""Rows of entities in PostgreSQL with pgvector, beside the same rows in memory.

    python -m benchmarks.pgvector --rows 50000 --dimensions 256 --json

* Vectors are drawn around centres, as tools crowd around subjects. A query lies near one of them.
* ``far_half``: only the half of the rows that is farthest from the query may be found.
* A search's time is by the clock, the server on the same machine; ``exact_share`` says how many of
  the searches scored every row that may be found.
* Memory is that of `benchmarks.memory`, in a process with rows in the database and in one without.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from functools import partial
from statistics import median
from typing import Annotated, Any

import numpy as np
import psycopg
import typer

from benchmarks.indexing import rows_of
from benchmarks.tables import print_figures
from gateway.index.candidates import CatalogVectors, VectorQuery
from gateway.index.eligibility import Mask
from gateway.index.engine_vectors import FEW_ROWS, EngineVectors, Ids
from gateway.index.vectors import VectorIndex
from gateway.plugins.postgres.database import PostgresDatabase
from gateway.plugins.postgres.pgvector import PgvectorEngine
from gateway.runtime.vectors import Matrix, unit_rows
from tests.postgres_server import running_server

_TOP = 10
_POOL = 200
"""How many candidates a search of five matches wants."""
_BATCH = 4096
_HALF = 0.0005
"""What half precision moves a cosine by at most: of nearer ones either may be found."""
_SETTINGS = "-c shared_buffers=512MB -c maintenance_work_mem=2GB"
_MASKS: Mapping[str, float] = {"of_100": 1.0, "of_10": 0.1, "of_1": 0.01, "far_half": 0.5}
_SIZES: Mapping[str, str] = {"rows_mb": "entity_rows", "keys_mb": "entity_keys"}
app = typer.Typer(add_completion=False)


@app.command()
def main(
    *,
    rows: Annotated[int, typer.Option(help="How many rows.")] = 50_000,
    dimensions: Annotated[int, typer.Option(help="Numbers of a row.")] = 256,
    queries: Annotated[int, typer.Option(help="Searches of each kind.")] = 40,
    entities: Annotated[
        int, typer.Option(help="Tools whose memory is measured; 0: none.")
    ] = 20_000,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Measure, and print every figure; its unit is the name's end."""
    with running_server(_SETTINGS) as server:
        found = measure(server.url, rows_of(rows, dimensions, 200), queries)
        if entities:
            found |= _memory(server.url, entities, dimensions)
    print_figures(found, as_json=as_json)


def measure(url: str, rows: Matrix, queries: int) -> dict[str, float]:
    """Measure searches among *rows* in the database at *url*, and in memory."""
    database = PostgresDatabase(url, "benchmark")
    engine, (count, size) = PgvectorEngine(database, "ab12", 600), rows.shape
    ids, write_s = _timed(partial(_write, engine, rows))
    _, index_s = _timed(partial(engine.maintain, ids, 0))
    memory, memory_s = _timed(partial(VectorIndex.of, rows))
    everything = np.arange(count)
    remote = EngineVectors(engine, ids, size, listed=everything, few_rows=FEW_ROWS)
    found = {"write_s": write_s, "hnsw_s": index_s, "memory_build_s": memory_s} | _sizes(url)
    for name, share in _MASKS.items():
        for label, index in (("pgvector", remote), ("memory", memory)):
            figures = _searches(index, rows, share, queries, is_far=name.startswith("far"))
            found |= {f"{label}_{name}_{what}": value for what, value in figures.items()}
    exact = EngineVectors(engine, ids, size, listed=everything, few_rows=count)
    found |= {
        f"pgvector_exact_of_all_{what}": value
        for what, value in _searches(exact, rows, 1.0, max(queries // 4, 1)).items()
    }
    database.close()
    return found


def _write(engine: PgvectorEngine, rows: Matrix) -> Ids:
    keys = [at.to_bytes(8, "big") for at in range(len(rows))]
    ids: dict[bytes, int] = {}
    for start in range(0, len(rows), _BATCH):
        part = slice(start, start + _BATCH)
        ids |= engine.put(dict(zip(keys[part], rows[part], strict=True)))
    return np.array([ids[key] for key in keys])


def _sizes(url: str) -> dict[str, float]:
    with psycopg.connect(url, options="-c search_path=benchmark") as connection:
        sizes = {**_SIZES, "hnsw_mb": "entity_rows_hnsw_ab12"}
        query = "SELECT pg_relation_size(%s::regclass)"
        return {
            name: connection.execute(query, (relation,)).fetchall()[0][0] / 1e6
            for name, relation in sizes.items()
        }


def _searches(
    index: CatalogVectors, rows: Matrix, share: float, queries: int, *, is_far: bool = False
) -> dict[str, float]:
    """Measure searches that *share* of the rows may answer."""
    rng = np.random.default_rng(5)
    spent, busy, recall, near, exact = [], [], [], [], []
    for at in range(queries + 3):
        row = rows[rng.integers(len(rows))]
        query = unit_rows(row + 0.8 * rng.standard_normal(len(row)) / len(row) ** 0.5)
        scores = rows @ query[0]
        mask: Mask = scores < np.median(scores) if is_far else rng.random(len(rows)) < share
        search = partial(
            index.search, VectorQuery(texts=query, clauses=query[:0]), mask=mask, count=_POOL
        )
        began, processor = time.perf_counter(), time.process_time()
        found = search()
        if at < 3:  # the first ones open connections
            continue
        spent.append(time.perf_counter() - began)
        busy.append(time.process_time() - processor)
        best = np.argsort(-np.where(mask, scores, -np.inf))[:_TOP]
        recall.append(len({*best.tolist()} & {*found.pool[:_TOP].tolist()}) / _TOP)
        near.append(np.mean(scores[found.pool[:_TOP]] > scores[best[-1]] - _HALF))
        exact.append(found.scored >= found.eligible)
    return {
        "p50_ms": 1000 * median(spent),
        "p95_ms": 1000 * float(np.quantile(spent, 0.95)),
        "own_processor_ms": 1000 * median(busy),
        "recall_at_10": float(np.mean(recall)),
        "recall_within_half_precision": float(np.mean(near)),
        "exact_share": float(np.mean(exact)),
    }


def _memory(url: str, entities: int, dimensions: int) -> dict[str, float]:
    """Measure what a process takes with rows in memory and in the database."""
    found = {}
    size = ("--entities", str(entities), "--dimensions", str(dimensions), "--no-parts", "--json")
    for label, more in (
        ("memory", ()),
        ("pgvector", ("--database", url)),
        ("restart", ("--database", url)),
    ):
        command = [sys.executable, "-m", "benchmarks.memory", *size, *more]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        figures = json.loads(done.stdout)
        for name in ("rss_kb_per_entity", "peak_gb", "build_ms_per_entity"):
            found[f"{label}_{name}"] = figures[name]
    return found


def _timed(work: Callable[[], Any]) -> tuple[Any, float]:
    began = time.perf_counter()
    result = work()
    return result, time.perf_counter() - began


if __name__ == "__main__":
    app()

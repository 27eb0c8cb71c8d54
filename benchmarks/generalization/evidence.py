"""What the product knows of a set's queries and tools before anything ranks, as arrays.

* The product's own functions compute it, in the order of `gateway.search.pipeline`.
* It is computed once and kept in a cache folder, one file a set, so that ways to rank are compared
  in seconds. The file is made again when the set, the model or the code that ranks has changed.
* Rows of queries are in the order of the set; queries without a relevant tool are left out.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import track

import gateway
import graphs
from benchmarks.baselines import embed_texts
from benchmarks.data import Benchmark, origin_of, read
from benchmarks.metrics import gold_of
from benchmarks.ranking import RANKED, opened
from gateway import Embedder
from gateway.catalog.kinds import KINDS
from gateway.errors import ConfigError
from gateway.index.candidates import CatalogVectors
from gateway.index.snapshot import Snapshot
from gateway.index.texts import lexical_fields
from gateway.options import SearchOptions
from gateway.plugins.spelling.corrector import SpellingCorrector
from gateway.plugins.spelling.word_lists import find_word_lists
from gateway.runtime.vectors import Matrix, Vector
from gateway.search.query import Query
from gateway.search.rank.fusion import fuse
from gateway.search.retrieve import find_named, score_clauses, score_lexical
from gateway.search.signals.every import all_signals
from gateway.search.signals.signal import Pool
from gateway.types import Filters
from graphs.lexical.bm25_index import BM25Index

Numbers = NDArray[np.intp]
Arrays = dict[str, NDArray[Any]]
Groups = tuple[frozenset[str], ...]
OPTIONS = SearchOptions()
POOL = OPTIONS.pool(RANKED)
"""How many tools the product ranks, chosen by their vectors."""
_FIELDS = ("name", "description", "server", "parameters")
_FACTORS: Sequence[Mapping[str, float]] = (
    *({"name": 0.5}, {"name": 2.0}, {"description": 0.5}, {"description": 2.0}),
    *({"server": 0.0}, {"server": 2.0}),
    *({"parameters": 0.0}, {"parameters": 2.0}, {"parameters": 4.0}),
    *({"name": 0.5, "server": 2.0}, {"name": 0.5, "parameters": 2.0}),
    *({"server": 2.0, "parameters": 2.0}, {"name": 0.5, "server": 2.0, "parameters": 2.0}),
)
"""What the weights of fields are multiplied by, one way after another."""
_SAME_NAMES = (
    *("tools", "server_ids", "texts", "text_queries"),
    *("clauses", "clause_queries", "clause_counts", "product"),
)
"""The arrays of a file that an `Evidence` has under the same name."""
_RANKING_CODE = ("search", "index", "spelling", "catalog", "embed", "runtime")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Words:
    """BM25F scores by one set of field weights."""

    scores: Matrix
    """The best over the forms of each query, shape (q, n); 0 where no word matches."""
    clauses: Matrix
    """The best over the clauses of each long request, shape (q, n); 0 for a short one."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Evidence:
    """One set: q queries, n tools in the order of the product's index, vectors of d numbers."""

    name: str
    origin: str
    """Sets of one origin never stand on both sides of a comparison."""
    tool_ids: tuple[str, ...]
    """By position."""
    gold: tuple[Groups, ...]
    """The relevant tools of each query."""
    exact_names: tuple[tuple[int, ...], ...]
    """The positions that each query calls by their exact names: they come first."""
    tools: Matrix
    """The product's vectors, unit rows, shape (n, d)."""
    server_ids: Numbers
    """The number of each tool's server, shape (n,)."""
    texts: Matrix
    """The forms of all queries, unit rows, shape (t, d)."""
    text_queries: Numbers
    """The query of each form, ascending, shape (t,); each query has one at least."""
    clauses: Matrix
    """The clauses of long requests, unit rows, shape (c, d)."""
    clause_queries: Numbers
    """The query of each clause, ascending, shape (c,)."""
    clause_counts: Numbers
    """How many clauses each query has as the product counts them, 0 for a short one, shape (q,)."""
    words: Words
    """By the product's weights."""
    field_words: Mapping[str, Words]
    """By other weights of the fields; the key says which."""
    product: Matrix
    """The product's own scores, shape (q, n); minus infinity for what it does not rank."""


def load_evidence(folder: Path, *, embedder: Embedder, cache: Path, origin: str) -> Evidence:
    """Return the evidence of the set in *folder*, from *cache* if it holds it; else compute it.

    Args:
        folder: In the common format.
        embedder: The model of the vectors.
        cache: A folder, made if it is not there.
        origin: The group of origin; empty means what the folder names.

    Raises:
        ConfigError: If the folder has no catalog, no queries or no query with a relevant tool.
    """
    path = cache / f"{folder.name}.npz"
    fingerprint = _fingerprint(folder, embedder.info.model_id)
    arrays = _read(path, fingerprint)
    if arrays is None:
        arrays = asyncio.run(_compute(read(folder), embedder))
        cache.mkdir(parents=True, exist_ok=True)
        arrays["fingerprint"] = np.array(fingerprint)
        # A run that is ended leaves no half of a file.
        fresh = path.with_suffix(".new.npz")
        np.savez(fresh, **arrays)  # type: ignore[arg-type]  # no array is called allow_pickle
        fresh.replace(path)
    return _evidence(arrays, name=folder.name, origin=origin or origin_of(folder))


def _fingerprint(folder: Path, model_id: str) -> str:
    digest = hashlib.sha256(f"{model_id}\n{OPTIONS}".encode())
    rooms = [Path(gateway.__file__).parent / room for room in _RANKING_CODE]
    rooms += [Path(graphs.__file__).parent / "lexical"]
    code = [path for room in rooms for path in sorted(room.rglob("*.py"))]
    for path in (folder / "catalog.jsonl", folder / "queries.jsonl", Path(__file__), *code):
        if path.is_file():
            digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


def _read(path: Path, fingerprint: str) -> Arrays | None:
    if not path.is_file():
        return None
    with np.load(path, allow_pickle=False) as archive:
        if str(archive["fingerprint"]) != fingerprint:
            return None
        return {key: archive[key] for key in archive.files}


def _evidence(arrays: Arrays, *, name: str, origin: str) -> Evidence:
    labels = [key.removeprefix("scores ") for key in arrays if key.startswith("scores ")]
    words = {
        label: Words(scores=arrays[f"scores {label}"], clauses=arrays[f"clauses {label}"])
        for label in labels
    }
    about = json.loads(str(arrays["about"]))
    same = {key: arrays[key] for key in _SAME_NAMES}
    return Evidence(
        name=name,
        origin=origin,
        tool_ids=tuple(about["tool_ids"]),
        gold=tuple(tuple(map(frozenset, groups)) for groups in about["gold"]),
        exact_names=tuple(map(tuple, about["exact_names"])),
        words=words.pop(""),
        field_words=words,
        **same,
    )


# -- compute ---------------------------------------------------------------------------------------


async def _compute(benchmark: Benchmark, embedder: Embedder) -> Arrays:
    rows = [row for row in benchmark.queries if gold_of(row)]
    if not rows:
        raise ConfigError(f"{benchmark.name}: no query has a relevant tool")
    async with opened(benchmark, strategy="auto", edges="none", embedder=embedder) as product:
        snapshot = await product.snapshot(vectors=True)
    vectors = snapshot.vectors
    if vectors is None or not snapshot.mask(Filters()).all():
        raise ConfigError(f"{benchmark.name}: the catalog cannot be searched whole by vectors")
    queries = await _queries(snapshot, [str(row["query"]) for row in rows], embedder)
    about = {
        "tool_ids": [benchmark.tool_ids[entity.id] for entity in snapshot.entities],
        "gold": [[sorted(group) for group in gold_of(row)] for row in rows],
        "exact_names": [
            find_named(snapshot, query.text, snapshot.mask(Filters())) for query in queries
        ],
    }
    empty = np.zeros((0, vectors.dimensions), dtype=np.float32)
    arrays: Arrays = {
        "about": np.array(json.dumps(about)),
        "tools": vectors.rows(np.arange(vectors.size)),
        "server_ids": snapshot.server_ids,
        "texts": np.concatenate([query.vectors.texts for query in queries]),
        "text_queries": _owners([len(query.texts) for query in queries]),
        "clauses": np.concatenate([empty, *(query.vectors.clauses for query in queries)]),
        "clause_queries": _owners([len(query.clauses) for query in queries]),
        "clause_counts": np.array([query.clause_count for query in queries], dtype=np.intp),
        "product": np.stack([_product_scores(snapshot, vectors, query) for query in queries]),
    }
    for label, index in {"": snapshot.lexical, **_indexes(snapshot)}.items():
        scores = [score_lexical(index, query).scores for query in queries]
        arrays[f"scores {label}"] = np.stack(scores)
        nothing = [np.zeros(index.size, dtype=np.float32)]
        clauses = [(score_clauses(index, query) or nothing)[0] for query in queries]
        arrays[f"clauses {label}"] = np.stack(clauses)
    return arrays


def _owners(counts: Sequence[int]) -> Numbers:
    return np.repeat(np.arange(len(counts), dtype=np.intp), counts)


async def _queries(snapshot: Snapshot, texts: Sequence[str], embedder: Embedder) -> Sequence[Query]:
    """Return each text with its spelling corrected, split, and with its vectors."""
    correct = SpellingCorrector(find_word_lists())
    queries = []
    for text in texts:
        corrected = correct(snapshot.lexical, text, None).text if text else text
        queries.append(Query(text=text, corrected=corrected).split())
    wanted = list(dict.fromkeys(chain.from_iterable(query.texts_to_embed for query in queries)))
    rows: dict[str, Vector] = {}
    batches = [wanted[start : start + 256] for start in range(0, len(wanted), 256)]
    for batch in track(batches, "queries", console=Console(stderr=True), transient=True):
        rows.update(zip(batch, await embed_texts(embedder, batch, "query"), strict=True))
    return [query.with_vectors(rows) for query in queries]


def _product_scores(snapshot: Snapshot, vectors: CatalogVectors, query: Query) -> Vector:
    mask = snapshot.mask(Filters())
    pool = Pool(
        snapshot=snapshot,
        query=query,
        candidates=vectors.search(query.vectors, mask=mask, count=POOL),
        mask=mask,
        words=score_lexical(snapshot.lexical, query),
    )
    ranked, _ = fuse(pool, all_signals(OPTIONS))
    scores = np.full(len(snapshot.entities), -np.inf, dtype=np.float32)
    scores[ranked.positions] = ranked.scores
    return scores


def _indexes(snapshot: Snapshot) -> dict[str, BM25Index]:
    """Index the words by other weights of the fields: some changed, and each field alone."""
    documents = [
        {str(field): text for field, text in lexical_fields(entity).items()}
        for entity in snapshot.entities
    ]
    usual = {str(field): weight for field, weight in KINDS["tool"].indexed.items()}
    weights = {_label(factors): usual | _scaled(usual, factors) for factors in _FACTORS}
    weights |= {f"{field} alone": {field: 1.0} for field in _FIELDS}
    return {
        label: BM25Index.build(
            documents, weights={field: weight for field, weight in each.items() if weight}
        )
        for label, each in weights.items()
    }


def _label(factors: Mapping[str, float]) -> str:
    return ", ".join(f"{field} x {factor:g}" for field, factor in factors.items())


def _scaled(weights: Mapping[str, float], factors: Mapping[str, float]) -> dict[str, float]:
    return {field: weights[field] * factor for field, factor in factors.items()}

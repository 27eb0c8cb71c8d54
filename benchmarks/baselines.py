"""What everybody would try first, over one text a tool, in the same run as ours. No tuning.

* ``BM25``: Robertson and Zaragoza, *The probabilistic relevance framework* (2009), with the idf
  of Lucene, k1 1.5 and b 0.75; words as `graphs.lexical.analysis` gives them.
* ``char n-grams``: TF-IDF of 3 to 5 characters inside words, sublinear, cosine.
* ``dense``: cosine of the embedder's vectors.
* ``BM25 + dense``: reciprocal rank fusion, Cormack, Clarke and Büttcher (2009), k = 60.
* Each of them with ``+ edges`` where dependencies are given: the first tool, all that it needs,
  then the rest.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from benchmarks.data import Benchmark, Row
from gateway.embed.cache import fit_text, split_into_batches
from gateway.embed.protocol import Embedder, Role
from gateway.plugins.quality.metrics import DEPTH
from gateway.runtime.vectors import Matrix, unit_rows
from graphs.lexical.analysis import split_identifier, tokens

Runs: TypeAlias = Mapping[str, Sequence[Row]]
"""The run of each baseline."""
Scores: TypeAlias = NDArray[np.float64]
"""Shape (queries, tools)."""

EDGES = " + edges"
"""How the name of a baseline ends that follows given dependencies."""
_K1, _B = 1.5, 0.75
_GRAMS = (3, 4, 5)
_FUSED_K = 60
_FUSED_DEPTH = 100
_PARAMETERS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Postings:
    """What each term is worth in each document."""

    terms: Mapping[str, int]
    starts: NDArray[np.intp]
    """Where the postings of each term begin; one more than terms."""
    documents: NDArray[np.intp]
    weights: NDArray[np.float64]
    count: int
    """How many documents there are."""

    def scores(self, query: Mapping[str, float]) -> NDArray[np.float64]:
        """Add up what the terms of *query*, each with its weight, are worth in each document."""
        total = np.zeros(self.count)
        for term, weight in query.items():
            at = self.terms.get(term)
            if at is not None:
                part = slice(self.starts[at], self.starts[at + 1])
                total[self.documents[part]] += weight * self.weights[part]
        return total


def text_of(tool: Row) -> str:
    """Write a tool as one text: name, title, description, server, parameter names."""
    schema = tool.get("input_schema")
    properties = schema.get("properties") if isinstance(schema, dict) else None
    names = list(properties)[:_PARAMETERS] if isinstance(properties, dict) else []
    parts = (
        f"{_apart(tool['name'])}.",
        str(tool.get("title") or ""),
        str(tool.get("description") or ""),
        _apart(tool.get("server") or ""),
        ", ".join(map(_apart, names)),
    )
    return " ".join(part for part in parts if part)


def _apart(name: object) -> str:
    return " ".join(split_identifier(str(name))) or str(name)


async def run_baselines(
    benchmark: Benchmark, variants: Sequence[Mapping[str, str]], *, embedder: Embedder | None
) -> list[dict[str, list[dict[str, object]]]]:
    """Rank the tools of *benchmark* by every baseline.

    Args:
        benchmark: The catalog, and its edges.
        variants: Ways to ask the queries: texts by the queries' ids.
        embedder: Whose vectors are compared; without one, ``dense`` and the fusion are left out.

    Returns:
        For each way to ask, the run of each baseline.
    """
    documents = [text_of(tool) for tool in benchmark.tools]
    words, grams = bm25(documents), char_ngrams(documents)
    rows = await embed_texts(embedder, documents, "document") if embedder else None
    found: list[dict[str, list[dict[str, object]]]] = []
    for texts in variants:
        queries = list(texts.values())
        scores = {
            "BM25": np.stack([words.scores(_counted(query)) for query in queries]),
            "char n-grams": np.stack([grams.scores(_grams(query)) for query in queries]),
        }
        if embedder and rows is not None:
            near = await embed_texts(embedder, queries, "query") @ rows.T
            scores["dense"] = near.astype(np.float64) + 1.0  # none below zero, so all are ranked
            scores["BM25 + dense"] = fused(scores["BM25"], scores["dense"])
        found.append(dict(_runs(benchmark, list(texts), scores)))
    return found


def _runs(
    benchmark: Benchmark, queries: Sequence[str], scores: Mapping[str, Scores]
) -> Iterator[tuple[str, list[dict[str, object]]]]:
    ids = [str(tool["id"]) for tool in benchmark.tools]
    needs: defaultdict[str, list[str]] = defaultdict(list)
    for edge in benchmark.edges:
        needs[str(edge["source"])].append(str(edge["target"]))
    for name, table in scores.items():
        ranked = [[ids[at] for at in best(row)] for row in table]
        yield name, _lines(queries, ranked)
        if needs:
            yield name + EDGES, _lines(queries, [followed(each, needs) for each in ranked])


def _lines(queries: Sequence[str], ranked: Sequence[Sequence[str]]) -> list[dict[str, object]]:
    return [
        {"id": query, "ranked": list(found[:DEPTH])}
        for query, found in zip(queries, ranked, strict=True)
    ]


def best(scores: NDArray[np.float64]) -> list[int]:
    """Return the positions of what scores above zero, best first; ties by position."""
    order = np.argsort(-scores, kind="stable")[:_FUSED_DEPTH]
    return [int(at) for at in order if scores[at] > 0]


def fused(*tables: Scores) -> Scores:
    """Add up 1 / (60 + rank) over the first hundred of each table; what scores 0 has no rank."""
    total = np.zeros_like(tables[0])
    for table in tables:
        for query, row in enumerate(table):
            for rank, at in enumerate(best(row), 1):
                total[query, at] += 1 / (_FUSED_K + rank)
    return total


def followed(ranked: Sequence[str], needs: Mapping[str, Sequence[str]]) -> list[str]:
    """Put all that the first tool needs behind it, the direct needs first."""
    found = dict.fromkeys(ranked[:1])
    level = list(found)
    while level:
        level = [need for tool in level for need in needs.get(tool, ()) if need not in found]
        found.update(dict.fromkeys(level))
    found.update(dict.fromkeys(ranked))
    return list(found)


def bm25(documents: Sequence[str]) -> Postings:
    """Weigh the words of *documents*."""
    counted = [_counted(text) for text in documents]
    lengths = np.array([sum(each.values()) for each in counted], dtype=np.float64)
    norms = _K1 * (1 - _B + _B * lengths / max(lengths.mean(), 1e-9))

    def weigh(counts: Scores, document: NDArray[np.intp], spread: Scores) -> Scores:
        idf = np.log(1 + (len(documents) - spread + 0.5) / (spread + 0.5))
        weights: Scores = idf * counts / (counts + norms[document])
        return weights

    return _postings(counted, weigh)


def char_ngrams(documents: Sequence[str]) -> Postings:
    """Weigh the character n-grams of *documents*.

    The idf stands in here twice, once for the query: `Postings.scores` takes its plain weights.
    """
    counted = [_grams(text) for text in documents]

    def weigh(counts: Scores, document: NDArray[np.intp], spread: Scores) -> Scores:
        idf = np.log((1 + len(documents)) / (1 + spread)) + 1
        own = counts * idf
        lengths = np.sqrt(np.bincount(document, own**2, minlength=len(documents)))
        weights: Scores = own * idf / lengths[document]
        return weights

    return _postings(counted, weigh)


def _postings(
    counted: Sequence[Mapping[str, float]],
    weigh: Callable[[Scores, NDArray[np.intp], Scores], Scores],
) -> Postings:
    terms: dict[str, int] = {}
    term = [terms.setdefault(word, len(terms)) for each in counted for word in each]
    document = np.repeat(np.arange(len(counted)), [len(each) for each in counted])
    counts = np.array([count for each in counted for count in each.values()], dtype=np.float64)
    spread = np.bincount(term, minlength=len(terms)) if terms else np.zeros(0, np.intp)
    order = np.argsort(term, kind="stable")
    weights = weigh(counts, document, spread[term].astype(np.float64) if terms else counts)
    return Postings(
        terms=terms,
        starts=np.concatenate([[0], np.cumsum(spread)]).astype(np.intp),
        documents=document[order],
        weights=weights[order],
        count=len(counted),
    )


def _counted(text: str) -> Mapping[str, float]:
    return Counter(part for token in tokens(text) for part in token.parts)


def _grams(text: str) -> Mapping[str, float]:
    """Count n-grams, 1 + log of the count each."""
    words = [f" {word} " for word in text.casefold().split()]
    found = Counter(
        word[at : at + size]
        for word in words
        for size in _GRAMS
        for at in range(max(len(word) - size, 0) + 1)
        if size <= len(word) or size == _GRAMS[0]
    )
    return {gram: 1 + float(np.log(count)) for gram, count in found.items()}


async def embed_texts(embedder: Embedder, texts: Sequence[str], role: Role) -> Matrix:
    """Return a unit row for each of *texts*, at least one, as the embedder's limits allow."""
    limits = embedder.info.limits
    fitting = [fit_text(text, limits) for text in texts]
    parts = [
        (await embedder.embed(fitting[batch.start : batch.stop], role=role)).vectors
        for batch in split_into_batches(fitting, limits)
    ]
    return unit_rows(np.concatenate(parts))

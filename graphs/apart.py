"""A compiled index as words and arrays with names, and back: what any saved index holds. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from graphs.adjacency import Adjacency
from graphs.columns import FactRows, Texts
from graphs.graph import GraphIndex, Stated
from graphs.joined import kept, numbered
from graphs.stored import arrays_of, postings_of, words_of


def taken_apart(index: GraphIndex) -> tuple[dict[str, object], dict[str, np.ndarray]]:
    """Give what *index* is made of: words, fit for JSON, and arrays by name."""
    return _names(index), _arrays(index)


def _names(index: GraphIndex) -> dict[str, object]:
    """Give what is read whole at once, as JSON, which keeps half characters."""
    return {
        "nodes": index.nodes,
        "labels": index.labels,
        "document_count": index.document_count,
        "edge_count": index.edge_count,
        "words": words_of(index.postings),
    }


def _arrays(index: GraphIndex) -> dict[str, np.ndarray]:
    facts = tuple(index.facts)
    rows = FactRows.of(facts)
    places = {fact: at for at, fact in enumerate(facts)}
    evidence = np.zeros(len(index.evidence), dtype=np.int32)
    for row in set(index.adjacency.edges["row"].tolist()):
        evidence[row] = places[index.evidence[row]]
    adjacency = index.adjacency.renumbered(evidence)
    return arrays_of(index.postings) | {
        "facts": rows.rows,
        "texts": rows.texts.blob,
        "texts_at": rows.texts.offsets,
        "keys": adjacency.keys,
        "edges": adjacency.edges,
        "concepts": adjacency.concepts,
        "ranks": index.ranks,
    }


def index_of(names: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> GraphIndex:
    """Put together what `taken_apart` took apart; the arrays are kept as they are."""
    nodes = kept(names["nodes"])
    facts = FactRows(arrays["facts"], Texts(blob=arrays["texts"], offsets=arrays["texts_at"]))
    return GraphIndex(
        nodes=nodes,
        positions=numbered(nodes),
        labels=kept(names["labels"]),
        ranks=arrays["ranks"],
        document_count=names["document_count"],
        postings=postings_of(names["words"], arrays),
        edge_count=names["edge_count"],
        adjacency=Adjacency(
            keys=arrays["keys"], edges=arrays["edges"], concepts=arrays["concepts"]
        ),
        evidence=facts,
        stated=Stated(lambda: facts),
    )

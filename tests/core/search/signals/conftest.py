"""Candidates of a request to a small catalog, for tests of signals."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gateway.search import Pool, Query, score_lexical
from gateway.testing import HashingEmbedder
from tests.core.search.conftest import snapshot_of
from tests.fakes import entity, tool

EMBEDDER = HashingEmbedder()


def pool_of(names: Sequence[str], request: str) -> Pool:
    """Return tools with *names* as the candidates of a search for *request*."""
    snapshot, query = (
        snapshot_of([entity(tool(name)) for name in names], EMBEDDER),
        Query(text=request).split(),
    )
    texts = query.texts_to_embed
    query = query.with_vectors(dict(zip(texts, EMBEDDER.vectors(texts), strict=True)))
    assert snapshot.vectors is not None
    mask = np.ones(len(names), bool)
    candidates = snapshot.vectors.search(query.vectors, mask=mask, count=len(names))
    words = score_lexical(snapshot.lexical, query)
    scores = np.zeros(len(names), np.float32)
    return Pool(snapshot, query, candidates, mask=mask, words=words, scores=scores)


def names_of(pool: Pool, flags: np.ndarray) -> set[str]:
    """Return the names of the candidates whose flag is True."""
    return {pool.snapshot.entities[position].name for position in pool.positions[flags]}

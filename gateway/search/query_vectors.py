"""The vectors of the queries of one search."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import chain

from gateway.embed.cache import Embed, QueryEmbeddings
from gateway.errors import Failed
from gateway.runtime.vectors import Vector
from gateway.search.query import Query
from gateway.search.state import SearchState, with_timeout


async def request_vectors(
    state: SearchState, embed: Embed, queries: Sequence[Query]
) -> dict[str, Vector]:
    """Embed all queries in one request; if that fails or is late, each in one of its own."""
    groups = [list(dict.fromkeys(query.texts_to_embed)) for query in queries]
    everything, dimensions = list(dict.fromkeys(chain(*groups))), state.snapshot.dimensions
    results: list[QueryEmbeddings | None] = []
    if len(groups) > 1:
        work = embed(everything, dimensions)
        result = await with_timeout(work, state.options.query_timeout_s / 2)
        if not isinstance(result, Failed):
            groups, results = [everything], [result]
    if not results:
        works = [embed(texts, dimensions) for texts in groups]
        results = await state.attempt_stage("embed", "embedding_failed", works)
    state.record_time("embed")
    answers = [(texts, found) for texts, found in zip(groups, results, strict=True) if found]
    state.counts = replace(
        state.counts,
        embedded_texts=sum(found.embedded for _, found in answers),
        tokens=sum(found.tokens for _, found in answers),
    )
    return {
        text: row
        for texts, found in answers
        for text, row in zip(texts, found.vectors, strict=True)
    }

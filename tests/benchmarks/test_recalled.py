"""Queries that are embedded once."""

from __future__ import annotations

from benchmarks.recalled import Recalled
from gateway.testing import HashingEmbedder


async def test_a_query_is_embedded_once_and_a_document_each_time() -> None:
    """Rows come in the order of the texts, whoever was known already."""
    inner = HashingEmbedder()
    recalled = Recalled(inner)

    first = await recalled.embed(["send mail", "pay"], role="query")
    again = await recalled.embed(["pay", "list", "pay"], role="query")
    queries = inner.texts
    await recalled.embed(["pay"], role="document")

    assert (3, 4) == (queries, inner.texts)
    assert first.vectors[1].tolist() == again.vectors[0].tolist() == again.vectors[2].tolist()
    assert inner.info is recalled.info

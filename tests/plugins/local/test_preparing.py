"""State of the local embedder before its models are loaded."""

from __future__ import annotations

from gateway.plugins.local import USE, LocalEmbedder


async def test_local_embedder_is_preparing_until_loaded() -> None:
    embedder = LocalEmbedder([USE])
    before = embedder.preparing
    await embedder.prepare()

    assert (True, False) == (before, embedder.preparing)

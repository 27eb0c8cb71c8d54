"""The packaged model is made ready once."""

from __future__ import annotations

from gateway.plugins.local import USE, LocalEmbedder


async def test_the_local_model_is_preparing_until_it_is_loaded() -> None:
    embedder = LocalEmbedder([USE])
    before = embedder.preparing
    await embedder.prepare()

    assert (True, False) == (before, embedder.preparing)

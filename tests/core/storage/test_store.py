"""Which store a gateway has."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway import Gateway, Options, SyncGateway
from gateway.embed.cache import MemoryVectorStore
from gateway.errors import ConfigError
from gateway.options import UsageOptions
from gateway.plugins.usage.tables import call_log_of
from gateway.stores import resolve_store
from gateway.testing import HashingEmbedder, TemporaryStore


def look() -> str:
    """Look."""
    return "seen"


def test_a_gateway_with_a_store_of_its_host_keeps_everything_there(tmp_path: Path) -> None:
    """And no file is made."""
    store = TemporaryStore()
    options = Options(
        vector_store_path=tmp_path / "v.db",
        catalog_store_path=tmp_path / "c.db",
        usage=UsageOptions(record=True),
    )
    gateway = Gateway(strategy="auto", embedder=HashingEmbedder(64), store=store, options=options)
    gateway.add_tool(look)
    with SyncGateway(gateway) as blocking:
        blocking.search("look")
        blocking.invoke("local/look")

    assert ["local/look"] == [line["tool"] for line in call_log_of(store).lines()]
    assert [] == list(tmp_path.iterdir())


def test_vectors_alone_may_lie_elsewhere(tmp_path: Path) -> None:
    """The rest stays where the options say."""
    vectors = MemoryVectorStore()
    store = resolve_store(Options(catalog_store_path=tmp_path / "c.db"), vectors=vectors)

    assert store.vectors is vectors
    store.listings.changed("o")
    store.close()
    assert [tmp_path / "c.db"] == list(tmp_path.iterdir())


def test_two_places_for_vectors_are_one_too_many() -> None:
    """Whoever says both means one of them."""
    with pytest.raises(ConfigError, match="give one"):
        Gateway(store=TemporaryStore(), vector_store=MemoryVectorStore())

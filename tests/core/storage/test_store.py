"""Choice of a gateway's store."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway import Gateway, Options
from gateway.embed import MemoryVectorStore
from gateway.errors import ConfigError
from gateway.stores import resolve_store
from gateway.testing import TemporaryStore


def look() -> str:
    """Look."""
    return "seen"


def test_options_can_set_a_separate_store_for_vectors(tmp_path: Path) -> None:
    vectors = MemoryVectorStore()
    store = resolve_store(Options(catalog_store_path=tmp_path / "c.db"), vectors=vectors)

    assert store.vectors is vectors
    store.listings.changed("o")
    store.close()
    assert [tmp_path / "c.db"] == list(tmp_path.iterdir())


def test_options_with_two_stores_for_vectors_are_refused() -> None:
    """Only one of the two options can be intended."""
    with pytest.raises(ConfigError, match="give only one"):
        Gateway(store=TemporaryStore(), vector_store=MemoryVectorStore())

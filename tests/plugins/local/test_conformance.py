"""Conformance of the packaged model to `Embedder`."""

from __future__ import annotations

import pytest

from gateway.plugins.local import LocalEmbedder
from tests.core.embed.test_embedder_conformance import (
    test_embedder_has_an_id_and_limits,
    test_embedder_returns_the_token_count_or_none,
    test_equal_texts_have_equal_vectors,
    test_vectors_are_usable_and_in_the_order_of_the_texts,
)

__all__ = [
    "embedder",
    "test_embedder_has_an_id_and_limits",
    "test_embedder_returns_the_token_count_or_none",
    "test_equal_texts_have_equal_vectors",
    "test_vectors_are_usable_and_in_the_order_of_the_texts",
]


@pytest.fixture(scope="module")
def embedder() -> LocalEmbedder:
    return LocalEmbedder()

"""Conformance of the packaged model to `Embedder`."""

from __future__ import annotations

import pytest

from gateway.plugins.local import LocalEmbedder
from tests.core.embed.test_embedder_conformance import (
    test_each_text_gets_a_usable_row_in_order,
    test_it_is_an_embedder_with_a_name_and_limits,
    test_the_same_text_gives_the_same_row,
    test_tokens_are_counted_or_unknown,
)

__all__ = [
    "embedder",
    "test_each_text_gets_a_usable_row_in_order",
    "test_it_is_an_embedder_with_a_name_and_limits",
    "test_the_same_text_gives_the_same_row",
    "test_tokens_are_counted_or_unknown",
]


@pytest.fixture(scope="module")
def embedder() -> LocalEmbedder:
    return LocalEmbedder()

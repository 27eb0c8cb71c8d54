"""Examples in the docstrings of servers, sources and embedders."""

from __future__ import annotations

import doctest
from importlib import import_module

import pytest


@pytest.mark.parametrize(
    "module",
    [
        "gateway.embed.openai",
        "gateway.embed.protocol",
        "gateway.mcp.servers",
        "gateway.sources.transforms",
        "gateway.sources.virtual",
    ],
)
def test_examples_of_docstrings_return_their_results(module: str) -> None:
    results = doctest.testmod(import_module(module), verbose=False)

    assert results.attempted
    assert not results.failed

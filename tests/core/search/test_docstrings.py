"""Examples in docstrings of the search, run as doctests."""

from __future__ import annotations

import doctest
from importlib import import_module

import pytest


@pytest.mark.parametrize("module", ["gateway.search.openai", "gateway.search.signals.signal"])
def test_docstring_examples_print_their_results(module: str) -> None:
    results = doctest.testmod(import_module(module))

    assert results.attempted
    assert not results.failed

from __future__ import annotations

import doctest
from importlib import import_module

import pytest


@pytest.mark.parametrize(
    "module",
    [
        "graphs.expansion",
        "graphs.graph_builder",
        "graphs.markdown.dialect",
        "graphs.rdf.sparql",
        "graphs.text_search",
    ],
)
def test_docstring_examples_print_their_results(module: str) -> None:
    results = doctest.testmod(import_module(module))

    assert results.attempted
    assert not results.failed

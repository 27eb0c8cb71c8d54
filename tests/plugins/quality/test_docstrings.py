from __future__ import annotations

import doctest
from importlib import import_module

import pytest


@pytest.mark.parametrize("module", ["metrics", "requests"])
def test_docstring_examples_print_their_results(module: str) -> None:
    results = doctest.testmod(import_module(f"gateway.plugins.quality.{module}"))

    assert results.attempted
    assert not results.failed

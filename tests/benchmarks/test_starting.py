"""Figures of the start benchmark."""

from __future__ import annotations

import json

from typer.testing import CliRunner

from benchmarks.starting import app


def test_every_figure_of_starts_is_reported() -> None:
    """Real processes start, over a catalog that is large enough to be saved."""
    words = ["--tools", "240", "--runs", "1", "--strategy", "graph", "--json"]
    result = CliRunner().invoke(app, words)

    found = json.loads(result.stdout)
    parts = ("numpy_s", "import_s", "load_s", "first_search_s", "ratio", "total_s")
    assert set(parts) <= found.keys()
    assert 240 == found["tools"]

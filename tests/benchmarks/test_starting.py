"""What a start is measured by."""

from __future__ import annotations

import json

import pytest

from benchmarks.starting import main


def test_every_figure_is_there(capsys: pytest.CaptureFixture[str]) -> None:
    """Of real processes, over a catalog that is worth saving."""
    main(["--tools", "240", "--runs", "1", "--strategy", "graph", "--json"])

    found = json.loads(capsys.readouterr().out)
    parts = ("numpy_s", "import_s", "load_s", "first_search_s", "model_load_s", "ratio", "total_s")
    assert set(parts) <= found.keys()
    assert 240 == found["tools"]

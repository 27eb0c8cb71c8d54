"""A place for every test of the dashboards."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.apps.cli.running import Place


@pytest.fixture
def place(tmp_path: Path) -> Place:
    """A folder with a cache of its own."""
    return Place(folder=tmp_path)

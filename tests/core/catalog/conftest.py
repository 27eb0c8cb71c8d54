"""What the tests of the catalog share."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.options import Options


@pytest.fixture
def options(tmp_path: Path) -> Options:
    """A catalog of its own."""
    return Options(catalog_store_path=tmp_path / "catalog.sqlite3")

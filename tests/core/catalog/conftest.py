from __future__ import annotations

from pathlib import Path

import pytest

from gateway.options import Options


@pytest.fixture
def options(tmp_path: Path) -> Options:
    return Options(catalog_store_path=tmp_path / "catalog.sqlite3")

from __future__ import annotations

from pathlib import Path

import pytest

from tests.apps.cli.running import Place


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(folder=tmp_path)

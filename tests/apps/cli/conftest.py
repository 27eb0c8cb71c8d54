"""Fixtures for the tests of the command line."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.apps.cli.running import Place


@pytest.fixture
def place(tmp_path: Path) -> Place:
    """Empty folder in which the test runs commands; the cache is in it too."""
    return Place(folder=tmp_path)

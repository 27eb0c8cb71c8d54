"""The log of calls is for its owner alone, whatever the umask says."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from gateway.plugins.usage import USAGE, CallNote, SqlCallLog
from gateway.storage import SqliteDatabase
from tests.core.runtime.test_atomic_file import open_to_others


@pytest.fixture
def _open_umask() -> Iterator[None]:
    """Every permission is given that nobody takes back."""
    before = os.umask(0)
    yield
    os.umask(before)


@pytest.mark.usefixtures("_open_umask")
def test_the_log_of_calls_is_for_its_owner_alone(tmp_path: Path) -> None:
    """SQLite's own files beside it too."""
    log = SqlCallLog(SqliteDatabase(tmp_path / "deep" / "usage.sqlite3", USAGE))
    log.note(CallNote(tool="srv/approve_invoice", outcome="ok"))
    # While it is open: SQLite takes its own files away at the end.
    written, others = {path.name for path in tmp_path.rglob("*")}, open_to_others(tmp_path)
    log.close()

    assert {"usage.sqlite3", "usage.sqlite3-wal"} <= written
    assert not others
    assert not open_to_others(tmp_path)

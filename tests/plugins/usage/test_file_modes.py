"""File permissions of the call log."""

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
    """Umask that removes no permission."""
    before = os.umask(0)
    yield
    os.umask(before)


@pytest.mark.usefixtures("_open_umask")
def test_call_log_is_readable_only_by_its_owner(tmp_path: Path) -> None:
    """SQLite's additional files are checked too."""
    log = SqlCallLog(SqliteDatabase(tmp_path / "deep" / "usage.sqlite3", USAGE))
    log.note(CallNote(tool="srv/approve_invoice", outcome="ok"))
    # SQLite deletes its additional files on close.
    written, others = {path.name for path in tmp_path.rglob("*")}, open_to_others(tmp_path)
    log.close()

    assert {"usage.sqlite3", "usage.sqlite3-wal"} <= written
    assert not others
    assert not open_to_others(tmp_path)

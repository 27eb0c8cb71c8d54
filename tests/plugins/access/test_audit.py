"""Counting of repeated refusals in the audit log."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from gateway.errors import StoreError
from gateway.options import AuditOptions
from gateway.plugins.access import (
    AUDIT,
    AuditDecision,
    Auditor,
    AuditRow,
    SqlAuditLog,
    new_row,
    read_all,
)
from gateway.storage import SqliteDatabase
from gateway.types import Caller


class Wall:
    """Clock set by a test."""

    now = 600.0

    def __call__(self) -> float:
        return self.now


def test_auditor_counts_repeated_refusals_by_minute_caller_and_name(tmp_path: Path) -> None:
    """The number of repetitions is written before the next row, or on close. Allowed calls are not
    counted.
    """
    wall, log = Wall(), SqlAuditLog(SqliteDatabase(tmp_path / "audit.sqlite3", AUDIT))
    auditor = Auditor(log, AuditOptions(), wall=wall)

    def note(user: str, entity: str, decision: AuditDecision, times: int) -> None:
        for _ in range(times):
            row = new_row("call", Caller(user=user), entity=entity)
            auditor.note_now(replace(row, decision=decision))

    note("ada", "a", "denied", 20)
    note("ada", "b", "denied", 1)
    note("bob", "a", "denied", 2)
    wall.now += 59.0
    note("ada", "a", "denied", 3)
    note("ada", "a", "allowed", 2)
    wall.now += 1.0
    note("ada", "a", "denied", 5)
    auditor.close()
    auditor.close()

    assert [
        ("ada", "a", "denied", ""),
        ("ada", "b", "denied", ""),
        ("bob", "a", "denied", ""),
        ("ada", "a", "allowed", ""),
        ("ada", "a", "allowed", ""),
        ("ada", "a", "denied", "22 more within a minute"),
        ("bob", "a", "denied", "1 more within a minute"),
        ("ada", "a", "denied", ""),
        ("ada", "a", "denied", "4 more within a minute"),
    ] == [(row.user, row.entity, row.decision, row.detail) for _, row in read_all(log)]


class AwayLog(SqlAuditLog):
    """Audit log that fails while `is_away` is true."""

    is_away = False

    def append(self, row: AuditRow) -> None:
        if self.is_away:
            raise StoreError("away")
        super().append(row)


def test_auditor_keeps_refusal_counts_and_their_time_while_the_log_fails(tmp_path: Path) -> None:
    wall, log = Wall(), AwayLog(SqliteDatabase(tmp_path / "audit.sqlite3", AUDIT))
    auditor = Auditor(log, AuditOptions(), wall=wall)
    for _ in range(3):
        for user in ("ada", "bob"):
            row = new_row("call", Caller(user=user), entity="a")
            auditor.note_now(replace(row, decision="denied"))
    wall.now += 3 * 3600.0
    allowed = new_row("call", Caller(user="ada"), entity="a")
    log.is_away = True
    with pytest.raises(StoreError):
        auditor.note_now(allowed)
    log.is_away = False
    auditor.note_now(allowed)
    auditor.close()

    assert [
        (600.0, "ada", ""),
        (600.0, "bob", ""),
        (660.0, "ada", "2 more within a minute"),
        (660.0, "bob", "2 more within a minute"),
        (wall.now, "ada", ""),
    ] == [(row.at, row.user, row.detail) for _, row in read_all(log)]

"""What the audit log holds of refusals that are repeated."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from gateway.access.audit import AuditDecision, Auditor, begun, read_all
from gateway.options import AuditOptions
from gateway.storage.audit import SqliteAuditLog
from gateway.types import Caller


class Wall:
    """Tells the time that a test sets."""

    now = 600.0

    def __call__(self) -> float:
        return self.now


def test_each_minute_has_a_row_and_a_count_for_each_caller_and_name(tmp_path: Path) -> None:
    """The count comes with the next row, or at the end; what is no refusal has all its rows."""
    wall, log = Wall(), SqliteAuditLog(tmp_path / "audit.sqlite3")
    auditor = Auditor(log, AuditOptions(), wall=wall)

    def note(user: str, entity: str, decision: AuditDecision, times: int) -> None:
        for _ in range(times):
            row = begun("call", Caller(user=user), entity=entity)
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

"""Audit log of a gateway process that is killed during calls."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from gateway.options import AuditOptions
from gateway.plugins.access import AUDIT, Auditor, SqlAuditLog, read_all
from gateway.storage import SqliteDatabase, key_in

PROGRAM = """
import asyncio, sys
from pathlib import Path
from gateway import Gateway, Options
from gateway.options import AuditOptions

def send(number: int) -> str:
    "Send a letter."
    sys.stdout.write(f"{number}\\n")
    sys.stdout.flush()
    return "sent"

async def main():
    options = Options(
        audit=AuditOptions(record="on"), catalog_store_path=Path(sys.argv[1]) / "catalog.sqlite3"
    )
    async with Gateway(options=options) as gateway:
        gateway.add_tool(send)
        for start in range(0, 100_000, 8):
            works = (gateway.invoke("send", {"number": start + at}) for at in range(8))
            await asyncio.gather(*works)

asyncio.run(main())
"""


def test_audit_log_of_a_killed_process_has_a_row_for_every_call_sent(tmp_path: Path) -> None:
    """The process runs eight calls at a time and is killed after forty."""
    command = [sys.executable, "-c", PROGRAM, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        sent = [int(process.stdout.readline()) for _ in range(40)]
        process.kill()
        sent += [int(line) for line in process.stdout.read().split("\n")[:-1]]

    auditor = Auditor(
        SqlAuditLog(SqliteDatabase(tmp_path / "audit.sqlite3", AUDIT)),
        AuditOptions(),
        key=lambda: key_in(tmp_path / "audit.key"),
    )
    assert auditor.log is not None
    rows = [row for _, row in read_all(auditor.log)]
    allowed = {row.arguments for row in rows if row.decision == "allowed"}
    assert {auditor.digest({"number": number}) for number in sent} <= allowed
    assert {"allowed", "ok"} == {row.decision for row in rows}

"""Usage statistics of searches and calls."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from gateway.plugins.usage import (
    USAGE,
    CallNote,
    SearchNote,
    SqlCallLog,
    TenantSearches,
    label,
    usage_report,
)
from gateway.storage import SqliteDatabase
from gateway.types import Hints, ToolDefinition
from tests import fakes


def test_report_names_tools_never_found_and_never_called_by_server(tmp_path: Path) -> None:
    """Disabled tools cost no tokens."""
    described = {key: ToolDefinition(name=key[-1], description=80 * key) for key in "abcd"}
    off = replace(described["d"], hints=Hints(enabled=False))
    tools = [
        fakes.entity(described["a"], server="one"),
        fakes.entity(described["b"], server="one"),
        fakes.entity(described["c"], server="two"),
        fakes.entity(off, server="two"),
    ]
    ledger = SqlCallLog(SqliteDatabase(tmp_path / "usage.db", USAGE))
    ledger.note_searches([SearchNote(found=("one/a", "two/c", "gone/x"))])
    ledger.note(CallNote(tool="one/a", outcome="failed"))
    report = usage_report(fakes.compile_snapshot(tools), ledger)
    ledger.close()

    one, two = report.servers
    assert ("one", 2, ("one/b",), ("one/b",)) == (
        one.server,
        one.tools,
        one.never_found,
        one.never_called,
    )
    assert ("two", 1, (), ("two/c",)) == (two.server, two.tools, two.never_found, two.never_called)
    assert one.schema_tokens == 2 * one.unused_tokens > 0
    assert two.schema_tokens == two.unused_tokens


def test_report_has_shares_by_tenant_and_in_total(tmp_path: Path) -> None:
    """The shares count searches without a match and searches with low confidence."""
    ledger, empty = (
        SqlCallLog(SqliteDatabase(tmp_path / "usage.db", USAGE)),
        fakes.compile_snapshot([]),
    )
    nothing = usage_report(empty, ledger)
    for match_ids, is_low, tenant in ((("a",), True, ""), ((), False, ""), (("a",), True, "acme")):
        ledger.note_searches([SearchNote(found=match_ids, low_confidence=is_low, tenant=tenant)])
    every, other = usage_report(empty, ledger), usage_report(empty, ledger, "other")
    ledger.close()

    plain = TenantSearches(searches=2, no_match_share=0.5, low_confidence_share=0.5)
    acme = TenantSearches(tenant=label("acme"), searches=1, low_confidence_share=1.0)
    assert (TenantSearches(), ()) == (nothing.total, nothing.tenants)
    assert (plain, acme) == every.tenants
    assert (3, 0.3333, 0.6667) == (
        every.total.searches,
        every.total.no_match_share,
        every.total.low_confidence_share,
    )
    assert plain == other.total

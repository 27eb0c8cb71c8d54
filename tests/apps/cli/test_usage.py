"""`gateway usage`."""

from __future__ import annotations

import pytest

from gateway.plugins.usage import USAGE, CallNote, SearchNote, SqlCallLog, label
from gateway.storage import SqliteDatabase
from tests.apps.cli.running import Place


@pytest.fixture
def used(place: Place) -> Place:
    """Folder with 25 recorded tasks of five kinds; one call failed, and two calls belong to a
    tenant.
    """
    ledger = SqlCallLog(SqliteDatabase(place.cache / "usage.sqlite3", USAGE))
    for number in range(25):
        for step in range(3):
            failed = (number, step) == (0, 2)
            ledger.note(
                CallNote(
                    tool=f"srv/{'abcde'[number % 5]}{step}",
                    outcome="tool_error" if failed else "ok",
                    task=str(number),
                    tenant="acme" if number < 1 else "",
                )
            )
    ledger.close()
    return place


def test_usage_show_without_recorded_calls_creates_no_file(place: Place) -> None:
    output = place.run("usage", "show")

    assert 1 == output.code
    assert output.out.startswith("no calls are recorded: ")
    assert (1, []) == (
        (exported := place.run("usage", "export", "--json")).code,
        exported.json["documents"],
    )
    plain = place.run("usage", "export", "--out", str(place.folder / "graph"))
    assert (1, "", True) == (plain.code, plain.out, "no tool was called after" in plain.err)


def test_usage_show_reports_outcomes_and_order_of_calls(used: Place) -> None:
    output = used.run("usage", "show", "srv/a1")
    data = used.run("usage", "show", "--json").json

    assert "srv/a1  5      5          1.038" in output.out
    assert "srv/a1  srv/a2  4      4" in output.out
    assert (15, 25, True) == (len(data["tools"]), data["tasks"], data["believed"])
    assert {"tool": "srv/a2", "calls": 5, "succeeded": 4, "multiplier": 1.022} in data["tools"]


def test_usage_export_writes_next_steps_as_a_graph_document(used: Place) -> None:
    """Existing files are overwritten only with --force."""
    folder = used.folder / "graph"
    first = used.run("usage", "export", "--out", str(folder))
    again = used.run("usage", "export", "--out", str(folder))
    forced = used.run("usage", "export", "--out", str(folder), "--force", "--json")

    text = (folder / "shown-by-use.md").read_text(encoding="utf-8")
    assert (0, 0) == (first.code, forced.code)
    assert again.code
    assert "--force" in again.err
    assert "srv/a0" in text
    assert text == forced.json["documents"][0]["content"]
    assert 10 == len(forced.json["followed"])


def test_usage_export_includes_calls_of_a_tenant_only_if_it_is_named(place: Place) -> None:
    """All tenants may read the exported document."""
    ledger = SqlCallLog(SqliteDatabase(place.cache / "usage.sqlite3", USAGE))
    for task in "12":
        for tool in ("srv/a", "srv/b"):
            ledger.note(CallNote(tool=tool, outcome="ok", task=task, tenant="acme"))
    ledger.close()

    exported = [
        place.run("usage", "export", "--json", *more).json["documents"]
        for more in ((), ("--tenant", "other"), ("--tenant", "acme"))
    ]
    reported = [
        place.run("usage", "report", "-c", place.config({}), "--json", *more).json["tasks"]
        for more in ((), ("--tenant", "acme"))
    ]

    assert [0, 0, 1] == list(map(len, exported))
    assert [0, 2] == reported
    assert 2 == place.run("usage", "show", "--json").json["tasks"]


def test_show_and_export_warn_that_the_order_of_calls_may_be_accidental(place: Place) -> None:
    ledger = SqlCallLog(SqliteDatabase(place.cache / "usage.sqlite3", USAGE))
    for task in "12":
        for tool in ("srv/a", "srv/b"):
            ledger.note(CallNote(tool=tool, outcome="ok", task=task))
    ledger.close()

    output, exported = place.run("usage", "show"), place.run("usage", "export")

    assert "may be accidental" in output.err
    assert "may be accidental" in exported.err
    assert "srv/b" in exported.out


def test_usage_report_evaluates_nothing_if_the_recorded_tools_are_gone(used: Place) -> None:
    config = used.config({})

    output = used.run("usage", "report", "-c", config)
    data = used.run("usage", "report", "-c", config, "--json").json

    assert 1 == output.code
    assert "learn" in output.out
    assert (24, True, 0) == (data["tasks"], data["believed"], data["rerank"]["calls"])
    assert (False, False) == (data["learn"]["on"], data["rerank"]["on"])


def test_usage_forget_deletes_calls_and_requires_a_selection(used: Place) -> None:
    assert 2 == used.run("usage", "forget").code
    assert {"forgotten": 5} == used.run("usage", "forget", "--tool", "srv/a1", "--json").json
    assert "forgotten  2" in used.run("usage", "forget", "--tenant", "acme").out
    assert {"forgotten": 68} == used.run("usage", "forget", "--all", "--json").json


def test_usage_report_counts_searches_by_tenant_and_server(place: Place) -> None:
    config = place.config({"srv": place.hostile()})
    ledger = SqlCallLog(SqliteDatabase(place.cache / "usage.sqlite3", USAGE))
    ledger.note_searches([SearchNote(found=("srv/good",))])
    ledger.note_searches([SearchNote(tenant="acme")])
    ledger.close()
    every = place.run("usage", "report", "-c", config, "--json")
    other = place.run("usage", "report", "-c", config, "--json", "--tenant", "other").json
    place.run("usage", "forget", "--all")
    gone = place.run("usage", "report", "-c", config, "--json").json

    assert 0 == every.code
    assert (2, 0.5) == (
        every.json["searches"]["searches"],
        every.json["searches"]["no_match_share"],
    )
    assert ["", label("acme")] == [tenant["tenant"] for tenant in every.json["tenants"]]
    (server,) = every.json["servers"]
    assert ("srv", True, False) == (
        server["server"],
        "srv/good" in server["never_called"],
        "srv/good" in server["never_found"],
    )
    assert (1, 0) == (other["searches"]["searches"], gone["searches"]["searches"])

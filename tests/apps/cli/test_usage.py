"""`gateway usage`."""

from __future__ import annotations

import pytest

from gateway.plugins.usage import USAGE, CallNote, SearchNote, SqlCallLog, label
from gateway.storage import SqliteDatabase
from tests.apps.cli.running import Place


@pytest.fixture
def used(place: Place) -> Place:
    """Twenty-five tasks of five ways to work, one call of them failed, two of a tenant."""
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


def test_nothing_is_noted_yet(place: Place) -> None:
    """A ledger that is not there is empty, and nothing is made of it."""
    shown = place.run("usage", "show")

    assert 1 == shown.code
    assert shown.out.startswith("no calls are noted: ")
    assert (1, []) == (
        (exported := place.run("usage", "export", "--json")).code,
        exported.json["documents"],
    )
    plain = place.run("usage", "export", "--out", str(place.folder / "graph"))
    assert (1, "", True) == (plain.code, plain.out, "nothing was called after" in plain.err)


def test_calls_and_what_follows_them_are_reported(used: Place) -> None:
    """Counts, what they do to scores, and pairs."""
    shown = used.run("usage", "show", "srv/a1")
    data = used.run("usage", "show", "--json").json

    assert "srv/a1  5      5          1.038" in shown.out
    assert "srv/a1  srv/a2  4      4" in shown.out
    assert (15, 25, True) == (len(data["tools"]), data["tasks"], data["believed"])
    assert {"tool": "srv/a2", "calls": 5, "succeeded": 4, "multiplier": 1.022} in data["tools"]


def test_next_steps_become_a_document_that_the_gateway_reads(used: Place) -> None:
    """Written once; overwritten only on demand."""
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


def test_what_a_tenant_taught_is_written_down_only_where_it_is_named(place: Place) -> None:
    """A document is read for everybody."""
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


def test_chance_is_reported_as_such(place: Place) -> None:
    """Two tasks say nothing of each other."""
    ledger = SqlCallLog(SqliteDatabase(place.cache / "usage.sqlite3", USAGE))
    for task in "12":
        for tool in ("srv/a", "srv/b"):
            ledger.note(CallNote(tool=tool, outcome="ok", task=task))
    ledger.close()

    shown, exported = place.run("usage", "show"), place.run("usage", "export")

    assert "may be chance" in shown.err
    assert "may be chance" in exported.err
    assert "srv/b" in exported.out


def test_without_tools_there_is_nothing_to_judge(used: Place) -> None:
    """The tasks are there; their tools are not in the catalog."""
    config = used.config({})

    shown = used.run("usage", "report", "-c", config)
    data = used.run("usage", "report", "-c", config, "--json").json

    assert 1 == shown.code
    assert "learn" in shown.out
    assert (24, True, 0) == (data["tasks"], data["believed"], data["rerank"]["calls"])
    assert (False, False) == (data["learn"]["on"], data["rerank"]["on"])


def test_calls_are_forgotten(used: Place) -> None:
    """Of a tool, of a tenant, all of them; nothing without saying what."""
    assert 2 == used.run("usage", "forget").code
    assert {"forgotten": 5} == used.run("usage", "forget", "--tool", "srv/a1", "--json").json
    assert "forgotten  2" in used.run("usage", "forget", "--tenant", "acme").out
    assert {"forgotten": 68} == used.run("usage", "forget", "--all", "--json").json


def test_searches_are_reported_by_tenant_and_server(place: Place) -> None:
    """What was never found and never called, of the servers that are there."""
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
    assert ["", label("acme")] == [each["tenant"] for each in every.json["tenants"]]
    (server,) = every.json["servers"]
    assert ("srv", True, False) == (
        server["server"],
        "srv/good" in server["never_called"],
        "srv/good" in server["never_found"],
    )
    assert (1, 0) == (other["searches"]["searches"], gone["searches"]["searches"])

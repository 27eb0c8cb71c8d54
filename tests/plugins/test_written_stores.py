"""Stores written by older versions, read and extended by every part of the gateway."""

from __future__ import annotations

import contextlib
import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import TypeAlias

import numpy as np
import psycopg
import pytest

from gateway.catalog import Entry, entry_from_json
from gateway.plugins.access import AuditRow, Charge, audit_log_of, counters_of, read_all
from gateway.plugins.postgres import PostgresStore
from gateway.plugins.programs import program_store
from gateway.plugins.usage import DAY_S, CallNote, SearchNote, ServedQuery, Tally, call_log_of
from gateway.storage import SqliteStore
from gateway.types import Listing
from tests.postgres_server import PostgresServer

FILES = Path(__file__).parents[1] / "files"
FILE_OF = {
    "vectors-1": "vectors",
    "catalog-8": "catalog",
    "approvals-1": "catalog.approvals",
    "usage-3": "usage",
    "programs-1": "programs",
    "audit-1": "audit",
    "limits-1": "limits",
}
SCHEMA = "written"
HOST_KEY = b"k" * 32
NOW = 20_000 * DAY_S + 100
KeptStore: TypeAlias = SqliteStore | PostgresStore


def in_files(folder: Path) -> SqliteStore:
    for name, file in FILE_OF.items():
        with contextlib.closing(sqlite3.connect(folder / f"{file}.sqlite3")) as connection:
            connection.executescript((FILES / f"{name}.sql").read_text("utf-8"))
    return SqliteStore(
        vectors=folder / "vectors.sqlite3",
        catalog=folder / "catalog.sqlite3",
        usage=folder / "usage.sqlite3",
        wall=lambda: NOW,
    )


def in_database(server: PostgresServer) -> PostgresStore:
    with psycopg.connect(server.url, autocommit=True) as connection:
        connection.execute(f"DROP SCHEMA IF EXISTS {SCHEMA} CASCADE")
        connection.execute((FILES / "postgres-5.sql").read_bytes())
    return PostgresStore(server.url, schema=SCHEMA, wall=lambda: NOW)


@pytest.fixture(params=["postgres", "sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[KeptStore]:
    store: KeptStore
    if request.param == "sqlite":
        store = in_files(tmp_path)
    else:
        store = in_database(request.getfixturevalue("postgres"))
    yield store
    store.close()


def test_stored_vectors_are_read_and_extended(store: KeptStore) -> None:
    before = store.vectors.get("m", ["a", "absent"])
    store.vectors.put("m", {"c": before["a"]})

    assert {"a": "cdcccc3d000000c000004040"} == {
        key: row.tobytes().hex() for key, row in before.items()
    }
    assert np.array_equal(before["a"], store.vectors.get("m", ["c"])["c"])


def test_stored_entries_and_rules_are_read_and_extended(store: KeptStore) -> None:
    store.entries.put([Entry(kind="agent", name="new")])
    store.entries.put_rules({"mail/read": "{}"})

    rows = {key: entry_from_json(json.loads(text)) for key, text in store.entries.rows().items()}
    assert ["agent:catalog/new", "agent:catalog/planner"] == sorted(rows)
    assert "Plans é." == rows["agent:catalog/planner"].description
    assert {"mail/read": "{}", "mail/send": '{"enabled": false}'} == store.entries.rules()


def test_stored_listings_and_approvals_are_read_and_extended(store: KeptStore) -> None:
    """A definition that is no longer listed remains stored while it is approved."""
    listings = store.listings
    stored = listings.read({"f": "o", "g": ""})
    entry, former = stored["f"].listing, listings.definition("d1")
    assert entry is not None
    assert former is not None

    assert ["Pay twice."] == [definition.description for definition in entry.listing.definitions]
    assert "Pay é." == former.description
    assert {"look": ("d2", "d2"), "pay": ("d1", "d3")} == stored["f"].pins
    assert (NOW, "refused") == stored["g"].failure
    assert dict.fromkeys(("d1", "d2", "d3"), NOW) == listings.first_seen("o")
    listings.approve("o", ["pay"], seen="d3")
    listings.keep("new", "srv", Listing())
    assert frozenset() == listings.record_seen("o", {"pay": "d3", "new": "d4"})
    assert None is listings.definition("d1")


def test_stored_calls_and_searches_are_read_and_extended(store: KeptStore) -> None:
    log = call_log_of(store)
    log.note(CallNote(tool="new", outcome="ok"))
    log.note_searches([SearchNote(found=("srv/pay",), tenant="acme")])

    assert ["srv/pay", "srv/look", "new"] == [line["tool"] for line in log.lines()]
    assert [("srv/pay",)] == [task.tools for task in log.tasks("acme")]
    assert Tally(tool="srv/look", age_s=0, succeeded=0, failed=1) in log.tallies()
    assert [2] == [search.searches for search in log.searches("acme")]
    assert {"srv/pay": 2, "srv/look": 1} == log.found("acme")
    assert [ServedQuery(query="pay é", tools=("srv/pay",))] == log.served_queries()


def test_stored_programs_are_read_and_extended(store: KeptStore) -> None:
    program_store(store).put("ada.2", "new", keep_s=60, most=9)

    assert {"ada.1": "é", "ada.2": "new"} == program_store(store).rows()
    assert program_store(store).replace("ada.1", "é", "other")
    assert "other" == program_store(store).take("ada.1")


def test_stored_audit_rows_are_read_and_extended(store: KeptStore) -> None:
    new = AuditRow(at=NOW + 1, action="call", decision="denied")
    audit_log_of(store).append(new)

    (_, old), (place, last) = read_all(audit_log_of(store))
    assert ("ada", "acme", "srv/pay", NOW) == (old.user, old.tenant, old.entity, old.at)
    assert (2, new) == (place, last)


def test_stored_limit_counters_are_continued(store: KeptStore) -> None:
    charge = Charge(key="k", amount=2.0, limit=7.0, period_s=3600.0, rule="slow")
    counters = counters_of(store)
    assert counters is not None

    assert ["", "", "slow"] == [counters.charge([charge], NOW)[1] for _ in range(3)]


def test_stored_sign_in_is_read_and_replaced(postgres: PostgresServer) -> None:
    store = in_database(postgres)
    tokens = store.sign_in("ada", [HOST_KEY])
    before = tokens.read()
    tokens.write("another")
    after = tokens.read()
    store.close()

    assert ("a sign-in", "another") == (before, after)

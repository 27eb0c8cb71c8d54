"""Store in PostgreSQL: server failures, concurrent writers and table versions."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import Queue

import numpy as np
import psycopg
import pytest

from gateway.catalog import Entry
from gateway.errors import ConfigError, StoreError
from gateway.options import Options
from gateway.plugins.access import AuditRow, audit_log_of
from gateway.plugins.postgres import PostgresStore
from gateway.plugins.usage import CallNote, SearchNote, call_log_of
from gateway.storage import WatchedStore
from gateway.stores import own_vectors, resolve_store
from gateway.types import Listing
from tests.postgres_server import PostgresServer

WAIT_S = 30
Open = Callable[[], PostgresStore]


@pytest.fixture
def open_store(postgres: PostgresServer, tmp_path: Path) -> Iterator[Open]:
    """Return a function that opens stores of one schema."""
    stores: list[PostgresStore] = []

    def another() -> PostgresStore:
        stores.append(PostgresStore(postgres.url, schema=tmp_path.name))
        return stores[-1]

    yield another
    for store in stores:
        store.close()


@pytest.fixture
def store(open_store: Open) -> PostgresStore:
    return open_store()


def tables(postgres: PostgresServer, folder: Path) -> psycopg.Connection:
    """Return a connection to the schema of a test."""
    return psycopg.connect(postgres.url, options=f'-c search_path="{folder.name}"')


def entry(name: str) -> Entry:
    return Entry(kind="agent", name=name)


def test_store_works_again_immediately_after_the_database_restarts(
    store: PostgresStore, postgres: PostgresServer
) -> None:
    """While the database is down, calls raise an error and the usage log waits in memory."""
    store.entries.put([entry("a")])
    log = call_log_of(store)
    postgres.stop()
    try:
        with pytest.raises(
            StoreError, match="check the address and that the server is running"
        ) as down:
            store.entries.rows()
        log.note(CallNote(tool="t", outcome="ok"))
        for _ in range(2):
            log.note_searches([SearchNote(found=("t",), query="a\0b")])
    finally:
        postgres.start()
    after = store.entries.rows()
    postgres.stop()
    postgres.start()
    again = store.entries.rows()

    assert ["agent:catalog/a"] == [*after] == [*again]
    assert [("t", 1)] == [(tally.tool, tally.succeeded) for tally in log.tallies()]
    assert {"t": 2} == log.found()
    assert "sesame" not in str(down.value) + repr(store)


def test_concurrent_writers_of_the_same_keys_do_not_deadlock(open_store: Open) -> None:
    names = [str(number) for number in range(40)]

    def write(at: int) -> None:
        store, order = open_store(), names if at % 2 else names[::-1]
        for _ in range(10):
            store.vectors.put("m", {name: np.full(4, at, np.float32) for name in order})
            store.entries.put([entry(name) for name in order])
            store.entries.put_rules(dict.fromkeys(order, "{}"))
            store.listings.record_seen("o", {name: f"{at}-{name}" for name in order})
            store.listings.approve("o", order)
            call_log_of(store).note_searches([SearchNote(found=tuple(order))])

    with ThreadPoolExecutor(2) as pool:
        assert [None, None] == [*pool.map(write, range(2))]

    store = open_store()
    assert set(names) == store.vectors.get("m", names).keys() == store.listings.pins("o").keys()
    assert dict.fromkeys(names, 20) == call_log_of(store).found()


_RACER = """
import sys
from gateway.plugins.postgres.store import PostgresStore
from gateway.plugins.usage.call_log import CallNote
from gateway.plugins.usage.tables import call_log_of
store = PostgresStore(sys.argv[1], schema=sys.argv[2])
input()
call_log_of(store).note(CallNote(tool="t", outcome="ok"))
store.close()
"""


def test_only_one_of_several_starting_processes_creates_the_tables(
    store: PostgresStore, postgres: PostgresServer, tmp_path: Path
) -> None:
    racers = [
        subprocess.Popen(
            [sys.executable, "-c", _RACER, postgres.url, tmp_path.name], stdin=subprocess.PIPE
        )
        for _ in range(3)
    ]
    for racer in racers:
        racer.communicate(b"\n", timeout=WAIT_S)

    assert [0, 0, 0] == [racer.returncode for racer in racers]
    assert 3 == len([*call_log_of(store).lines()])


def test_tables_of_a_newer_version_are_refused_and_not_changed(
    open_store: Open, postgres: PostgresServer, tmp_path: Path
) -> None:
    open_store().entries.put([entry("a")])
    with tables(postgres, tmp_path) as connection:
        connection.execute("UPDATE version SET steps = 99")

    with pytest.raises(StoreError, match=r"99.*update this package"):
        open_store().entries.rows()


def test_schema_of_an_older_version_is_upgraded_without_loss(
    open_store: Open, postgres: PostgresServer, tmp_path: Path
) -> None:
    """Version 1 had no change notifications, sign-ins or audit log."""
    first = open_store()
    first.entries.put([entry("a")])
    call_log_of(first).note(CallNote(tool="t", outcome="ok"))
    with tables(postgres, tmp_path) as connection:
        connection.execute("DROP FUNCTION tell_change, tell_listing CASCADE")
        connection.execute("DROP TABLE sign_ins, versions")
        connection.execute("UPDATE version SET steps = 1")

    second = open_store()
    second.entries.put([entry("b")])
    audit_log_of(second).append(AuditRow(at=1.0, action="call", decision="allowed"))

    assert ["agent:catalog/a", "agent:catalog/b"] == [*first.entries.rows()]
    assert ["t"] == [line["tool"] for line in call_log_of(second).lines()]
    with tables(postgres, tmp_path) as connection:
        rows = connection.execute("SELECT name, steps FROM versions").fetchall()
        shared = connection.execute("SELECT steps FROM version").fetchall()
    versions: dict[str, int] = dict(rows)
    assert {"": 1, "audit": 1, "sign_ins": 1} == {
        name: steps for name, steps in versions.items() if name in {"", "audit", "sign_ins"}
    }
    # Version 0.2 knows five steps, so it refuses the schema and does not change it.
    assert [(6,)] == shared


def test_store_refuses_tables_of_one_feature_from_a_newer_version(
    open_store: Open, postgres: PostgresServer, tmp_path: Path
) -> None:
    call_log_of(open_store()).note(CallNote(tool="t", outcome="ok"))
    with tables(postgres, tmp_path) as connection:
        connection.execute("UPDATE versions SET steps = 9 WHERE name = 'usage'")

    later = open_store()

    assert {} == later.entries.rows()
    with pytest.raises(StoreError, match=r"usage: 9, this version knows 1\).*update this package"):
        list(call_log_of(later).lines())


@pytest.mark.parametrize("text", ["a\0b", "a\ud800b"], ids=["U+0000", "half of a pair"])
def test_batch_with_a_text_that_postgresql_cannot_store_is_refused(
    store: PostgresStore, text: str
) -> None:
    """The whole batch is refused. The error does not contain the text."""
    vector = np.ones(2, np.float32)
    writes: list[Callable[[], object]] = [
        lambda: store.vectors.put("m", {"good": vector, text: vector}),
        lambda: store.listings.record_seen("o", {"good": "1", text: "1"}),
        lambda: store.listings.note_failure("f", text),
        lambda: call_log_of(store).note(CallNote(tool=text, outcome="ok")),
        lambda: store.vectors.get("m", [text]),
    ]

    for write in writes:
        with pytest.raises(StoreError, match=r"U\+0000 or half of a surrogate pair: remove it"):
            write()

    assert {} == store.vectors.get("m", ["good"]) == store.listings.pins("o")


@pytest.mark.parametrize(
    "url",
    [
        "mysql://u:sesame@host/db",
        "u:sesame@host/db",
        "postgresql://u:ses@me@host/sesame",
        "postgresql://u:ses/ame@host/db",
        "postgresql://u:sesame%zz@host/db",
        "postgresql://u:sesame@host/db?nonsense=1",
    ],
)
def test_invalid_database_address_is_refused_without_displaying_it(url: str) -> None:
    with pytest.raises(ConfigError, match="postgresql://USER:PASSWORD@HOST") as error:
        PostgresStore(url)

    assert error.value.__cause__ is None
    assert "ame" not in str(error.value).replace("name", "")


def test_connection_error_names_the_database_without_the_password() -> None:
    store = PostgresStore("postgresql://u:sesame@127.0.0.1:1/db")

    with pytest.raises(StoreError, match=r"PostgreSQL store 127\.0\.0\.1:1/db") as error:
        store.listings.listing("f")

    assert "sesame" not in str(error.value)


def test_store_is_opened_by_a_reference_in_the_options(
    postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The representation of options never contains the address."""
    monkeypatch.setenv("TEAM_STORE", postgres.url)
    options = Options(store="env:TEAM_STORE")

    store, vectors = resolve_store(options), own_vectors(options)
    store.vectors.put("m", {"a": np.ones(2, np.float32)})
    before = vectors.count()
    vectors.clear()
    sizes = vectors.size() > 0, vectors.count()
    store.close()
    vectors.close()

    assert isinstance(store, PostgresStore)
    assert (1, (True, 0)) == (before, sizes)
    assert "postgresql" not in repr(Options(store=postgres.url))
    with pytest.raises(ConfigError, match=r"address of the store: it needs .* NOT_SET"):
        resolve_store(Options(store="${NOT_SET}"))


def test_watch_reports_changes_of_other_processes_only(open_store: Open) -> None:
    store, other = open_store(), open_store()
    store.listings.record_seen("o", {"a": "1"})
    changes: Queue[str] = Queue()
    end = store.watch(changes.put)
    assert (
        changes.get(timeout=WAIT_S) == ""
    )  # The watch has started, so later changes are reported.

    store.entries.put([entry("own")])
    other.listings.record_seen("o", {"a": "2"})
    writes: list[tuple[str, Callable[[], object]]] = [
        ("entries", lambda: other.entries.put([entry("a")])),
        ("entries", lambda: other.entries.remove(entry("a").id)),
        ("rules", lambda: other.entries.put_rules({"a/*": "{}"})),
        ("listings/srv", lambda: other.listings.keep("f", "srv", Listing())),
        ("pins", lambda: other.listings.approve("o", ["a"])),
    ]
    tables = []
    for _, write in writes:
        write()
        tables.append(changes.get(timeout=WAIT_S))
    end()

    assert isinstance(store, WatchedStore)
    assert [table for table, _ in writes] == tables


def test_watch_reports_that_anything_may_have_changed_after_a_lost_connection(
    open_store: Open, postgres: PostgresServer
) -> None:
    """Notifications are lost while there is no connection."""
    store, other = open_store(), open_store()
    changes: Queue[str] = Queue()
    end = store.watch(changes.put)
    first = changes.get(timeout=WAIT_S)
    postgres.stop()
    postgres.start()
    again = changes.get(timeout=WAIT_S)
    other.entries.put([entry("a")])
    then = changes.get(timeout=WAIT_S)
    end()

    assert ["", "", "entries"] == [first, again, then]


_FORK = """
import os, sys
from gateway.plugins.postgres.store import PostgresStore
from gateway.plugins.usage.call_log import CallNote
from gateway.plugins.usage.tables import call_log_of
store = PostgresStore(sys.argv[1], schema=sys.argv[2])
call_log_of(store).note(CallNote(tool="before", outcome="ok"))
child = os.fork()
for _ in range(20):
    call_log_of(store).note(CallNote(tool="child" if child == 0 else "parent", outcome="ok"))
if child == 0:
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
store.close()
"""


def test_forked_child_does_not_use_the_connections_of_its_parent(
    store: PostgresStore, postgres: PostgresServer, tmp_path: Path
) -> None:
    """Otherwise both processes would read each other's answers."""
    command = [sys.executable, "-c", _FORK, postgres.url, tmp_path.name]
    subprocess.run(command, check=True, timeout=WAIT_S)

    tools = Counter(line["tool"] for line in call_log_of(store).lines())
    assert {"before": 1, "child": 20, "parent": 20} == tools

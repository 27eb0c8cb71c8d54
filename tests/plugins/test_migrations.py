"""Upgrade of SQLite files of every version. tests/files has one file of each, as SQL."""

from __future__ import annotations

import contextlib
import json
import re
import sqlite3
from pathlib import Path

import pytest

from gateway.catalog import Entry, entry_from_json
from gateway.plugins.access import AUDIT, LIMITS
from gateway.plugins.programs import PROGRAMS
from gateway.plugins.usage import USAGE, CallNote, SqlCallLog
from gateway.storage import CATALOG, VECTORS, Schema, SqlCatalog, SqliteDatabase, SqliteVectorStore
from gateway.storage.catalog import APPROVALS

FILES = Path(__file__).parents[1] / "files"


def file_of_version(name: str, folder: Path) -> Path:
    """Create the file of an older version."""
    path = folder / f"{name}.sqlite3"
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.executescript((FILES / f"{name}.sql").read_text("utf-8"))
    return path


def tables(connection: sqlite3.Connection) -> set[str]:
    rows = connection.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL")
    return {re.sub(r"\s+", "", text) for (text,) in rows}


SCHEMAS = {
    "vectors": VECTORS,
    "catalog": CATALOG,
    "approvals": APPROVALS,
    "usage": USAGE,
    "programs": PROGRAMS,
    "audit": AUDIT,
    "limits": LIMITS,
}
NAMES = sorted(path.stem for path in FILES.glob("*.sql") if path.stem.split("-")[0] in SCHEMAS)


@pytest.mark.parametrize("name", NAMES)
def test_file_of_any_version_is_upgraded_to_the_current_tables(name: str, tmp_path: Path) -> None:
    """Tables of older versions are removed."""
    kind, version = name.split("-")
    schema = SCHEMAS[kind]
    with contextlib.closing(sqlite3.connect(":memory:")) as new:
        for statement in (statement for step in schema.steps for statement in step):
            new.execute(statement)
        expected = tables(new)
    with contextlib.closing(sqlite3.connect(file_of_version(name, tmp_path))) as old:
        for statement in (item for step in schema.steps[int(version) :] for item in step):
            old.execute(statement)

        assert expected == tables(old)


@pytest.mark.parametrize("schema", SCHEMAS.values(), ids=lambda item: item.what)
def test_upgrade_steps_accept_existing_tables(schema: Schema) -> None:
    """Files from before the introduction of steps have tables without a version."""
    with contextlib.closing(sqlite3.connect(":memory:")) as connection:
        for statement in (item for step in (*schema.steps, *schema.steps) for item in step):
            connection.execute(statement)

        assert tables(connection)


def test_vectors_of_an_older_file_are_preserved(tmp_path: Path) -> None:
    """Embedding a catalog again would cost money or minutes."""
    store = SqliteVectorStore(file_of_version("vectors-1", tmp_path))

    vectors = store.get("m", ["a", "b"])
    store.put("m", {"c": vectors["a"]})

    assert ["cdcccc3d000000c000004040", "95bfd633"] == [
        vectors[key].tobytes().hex() for key in "ab"
    ]
    assert (4, [4.0]) == (store.count(), store.get("n", ["a"])["a"].tolist())
    store.close()


@pytest.mark.parametrize("version", [1, 2, 3, 4])
def test_approvals_and_entries_of_an_older_file_are_preserved(version: int, tmp_path: Path) -> None:
    """Listings in an older format are requested again. Version 1 had no entries."""
    store = SqlCatalog.in_files(file_of_version(f"catalog-{version}", tmp_path), wall=lambda: 100.0)

    entries = [entry_from_json(json.loads(text)).name for text in store.rows().values()]
    store.put([Entry(kind="agent", name="new")])

    assert store.listing("f") is None
    assert {"a"} == store.changed("o")
    store.approve("o", ["a"])
    assert set() == store.changed("o")
    assert (["planner"] if version > 1 else []) == entries
    assert {f"agent:catalog/{name}" for name in [*entries, "new"]} == store.rows().keys()
    store.close()


@pytest.mark.parametrize("version", [1, 2])
def test_calls_of_an_older_file_are_preserved(version: int, tmp_path: Path) -> None:
    ledger = SqlCallLog(
        SqliteDatabase(file_of_version(f"usage-{version}", tmp_path), USAGE), wall=lambda: 100.0
    )
    ledger.note(CallNote(tool="new", outcome="ok"))

    assert ["srv/pay", "srv/look", "new"] == [line["tool"] for line in ledger.lines()]
    assert [("srv/pay",)] == [task.tools for task in ledger.tasks("acme")]
    ledger.close()

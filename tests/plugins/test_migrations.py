"""SQLite files of every version: tests/files has one of each, as SQL."""

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


def made(name: str, folder: Path) -> Path:
    """Make the file that an older version left behind."""
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
def test_a_file_of_any_version_comes_to_the_tables_of_a_new_one(name: str, tmp_path: Path) -> None:
    """And nothing is left in it that only an older version needed."""
    kind, version = name.split("-")
    schema = SCHEMAS[kind]
    with contextlib.closing(sqlite3.connect(":memory:")) as new:
        for statement in (statement for step in schema.steps for statement in step):
            new.execute(statement)
        expected = tables(new)
    with contextlib.closing(sqlite3.connect(made(name, tmp_path))) as old:
        for statement in (each for step in schema.steps[int(version) :] for each in step):
            old.execute(statement)

        assert expected == tables(old)


@pytest.mark.parametrize("schema", SCHEMAS.values(), ids=lambda each: each.what)
def test_steps_may_meet_their_tables_already(schema: Schema) -> None:
    """Files of the time before there were steps have tables without a version."""
    with contextlib.closing(sqlite3.connect(":memory:")) as connection:
        for statement in (each for step in (*schema.steps, *schema.steps) for each in step):
            connection.execute(statement)

        assert tables(connection)


def test_vectors_of_an_older_file_are_still_there(tmp_path: Path) -> None:
    """Bit by bit: to embed a catalog anew costs money or minutes."""
    store = SqliteVectorStore(made("vectors-1", tmp_path))

    found = store.get("m", ["a", "b"])
    store.put("m", {"c": found["a"]})

    assert ["cdcccc3d000000c000004040", "95bfd633"] == [found[key].tobytes().hex() for key in "ab"]
    assert (4, [4.0]) == (store.count(), store.get("n", ["a"])["a"].tolist())
    store.close()


@pytest.mark.parametrize("version", [1, 2, 3, 4])
def test_approvals_and_entries_of_an_older_file_are_still_there(
    version: int, tmp_path: Path
) -> None:
    """A listing in an older form is read anew; the first version had no place for entries."""
    store = SqlCatalog.in_files(made(f"catalog-{version}", tmp_path), wall=lambda: 100.0)

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
def test_calls_of_an_older_file_are_still_there(version: int, tmp_path: Path) -> None:
    """What searches returned is not."""
    ledger = SqlCallLog(
        SqliteDatabase(made(f"usage-{version}", tmp_path), USAGE), wall=lambda: 100.0
    )
    ledger.note(CallNote(tool="new", outcome="ok"))

    assert ["srv/pay", "srv/look", "new"] == [line["tool"] for line in ledger.lines()]
    assert [("srv/pay",)] == [each.tools for each in ledger.tasks("acme")]
    ledger.close()

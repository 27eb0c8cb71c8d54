"""Creation and upgrade of the tables in a PostgreSQL schema."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, LiteralString

from gateway.errors import MissingExtraError, StoreError
from gateway.storage.database import Schema

try:
    from psycopg import Connection
    from psycopg.sql import SQL, Identifier
except ImportError as error:
    raise MissingExtraError("a store in PostgreSQL", "postgres") from error

_SHARED_STEPS = 5
"""Last step of version 0.2, in which all tables shared one step number."""


def upgrade_tables(
    connection: Connection[Any], schema: str, place: str, tables: Sequence[Schema]
) -> None:
    """Execute the missing creation and upgrade steps of *tables*.

    Args:
        connection: Connection in a transaction, whose search path is *schema*.
        schema: Name of the schema, created if missing.
        place: Name of the store in messages.
        tables: All tables that will be used.

    Raises:
        StoreError: If a newer version of this package created the tables. Nothing is changed.
    """
    if tables and not _missing(_versions(connection, schema, place), place, tables):
        return
    # Only one of several starting processes creates the tables.
    connection.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", (schema,))
    exists = "SELECT 1 FROM pg_namespace WHERE nspname = %s"
    if connection.execute(exists, (schema,)).fetchone() is None:
        connection.execute(SQL("CREATE SCHEMA {}").format(Identifier(schema)))
    versions = _versions(connection, schema, place)
    missing, steps = _missing(versions, place, tables), {"": versions[""]}
    connection.execute(
        "CREATE TABLE IF NOT EXISTS versions (name text PRIMARY KEY, steps integer NOT NULL)"
    )
    for table in tables:
        for statement in missing.get(table.name, ()):
            connection.execute(statement)
        steps[table.name] = len(table.postgres)
    for row in steps.items():
        connection.execute(
            "INSERT INTO versions VALUES (%s, %s)"
            " ON CONFLICT (name) DO UPDATE SET steps = excluded.steps",
            row,
        )
    # Version 0.2 refuses the schema, because it does not know this number.
    connection.execute("CREATE TABLE IF NOT EXISTS version (steps integer NOT NULL)")
    connection.execute("DELETE FROM version")
    connection.execute("INSERT INTO version VALUES (%s)", (_SHARED_STEPS + 1,))


def _missing(
    versions: Mapping[str, int], place: str, tables: Sequence[Schema]
) -> Mapping[str, Sequence[LiteralString]]:
    """Return the missing statements of *tables*, keyed by table name.

    Args:
        versions: Result of `_versions`.
        place: Name of the store in messages.
        tables: All tables that will be used.
    """
    missing = {}
    for table in tables:
        shared = sum(number <= versions[""] for number in table.postgres)
        done = versions.get(table.name, shared)
        _check_known(place, table.name, done, len(table.postgres))
        if remaining := sorted(table.postgres)[done:]:
            missing[table.name] = [text for number in remaining for text in table.postgres[number]]
    return missing


def _versions(connection: Connection[Any], schema: str, place: str) -> Mapping[str, int]:
    """Return the number of executed steps of each table, keyed by table name.

    The key "" contains the number that all tables shared up to version 0.2.
    """
    versions = {"": 0}
    name = "SELECT to_regclass(quote_ident(%s) || '.' || %s)"
    if connection.execute(name, (schema, "version")).fetchone() != (None,):
        row = connection.execute("SELECT steps FROM version").fetchone()
        versions[""] = int(row[0]) if row else 0
        _check_known(place, "all", versions[""], _SHARED_STEPS + 1)
    if connection.execute(name, (schema, "versions")).fetchone() != (None,):
        versions |= connection.execute("SELECT name, steps FROM versions").fetchall()
    return versions


def _check_known(place: str, name: str, made: int, known: int) -> None:
    if made > known:
        raise StoreError(
            f"{place}: its tables were created by a newer version of this package ({name}: {made}, "
            f"this version knows {known}): update this package, or use another schema"
        )

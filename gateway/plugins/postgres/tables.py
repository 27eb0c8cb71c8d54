"""The tables of a schema in PostgreSQL: made when missing, and brought up when older."""

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
"""Last of the steps that all tables shared, up to version 0.2."""


def bring_up(
    connection: Connection[Any], schema: str, place: str, tables: Sequence[Schema]
) -> None:
    """Make the steps of *tables* that are missing, in the transaction of *connection*.

    Args:
        connection: A connection whose search path is *schema*.
        schema: The name of the schema, which is made too.
        place: The name of the store in messages.
        tables: All tables that will be used.

    Raises:
        StoreError: A newer version of this package made the tables; nothing is changed.
    """
    if tables and not _missing(_versions(connection, schema, place), place, tables):
        return
    # Of many that start at once, one makes the tables.
    connection.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", (schema,))
    exists = "SELECT 1 FROM pg_namespace WHERE nspname = %s"
    if connection.execute(exists, (schema,)).fetchone() is None:
        connection.execute(SQL("CREATE SCHEMA {}").format(Identifier(schema)))
    versions = _versions(connection, schema, place)
    missing, made = _missing(versions, place, tables), {"": versions[""]}
    connection.execute(
        "CREATE TABLE IF NOT EXISTS versions (name text PRIMARY KEY, steps integer NOT NULL)"
    )
    for each in tables:
        for statement in missing.get(each.name, ()):
            connection.execute(statement)
        made[each.name] = len(each.postgres)
    for row in made.items():
        connection.execute(
            "INSERT INTO versions VALUES (%s, %s)"
            " ON CONFLICT (name) DO UPDATE SET steps = excluded.steps",
            row,
        )
    # Above all that version 0.2 knows: it refuses the schema, and leaves it as it is.
    connection.execute("CREATE TABLE IF NOT EXISTS version (steps integer NOT NULL)")
    connection.execute("DELETE FROM version")
    connection.execute("INSERT INTO version VALUES (%s)", (_SHARED_STEPS + 1,))


def _missing(
    versions: Mapping[str, int], place: str, tables: Sequence[Schema]
) -> Mapping[str, Sequence[LiteralString]]:
    """Return the statements that are still to be executed, by the name of their tables."""
    missing = {}
    for each in tables:
        shared = sum(number <= versions[""] for number in each.postgres)
        done = versions.get(each.name, shared)
        _check_known(place, each.name, done, len(each.postgres))
        if left := sorted(each.postgres)[done:]:
            missing[each.name] = [text for number in left for text in each.postgres[number]]
    return missing


def _versions(connection: Connection[Any], schema: str, place: str) -> Mapping[str, int]:
    """Return the number of steps made, by the name of tables; ``""`` has those of version 0.2.

    Up to version 0.2 all tables shared one number, in the table ``version``.
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
            f"{place}: a newer version of this package made its tables ({name}: {made}, where "
            f"this one knows {known}): update this one, or give it another schema"
        )

"""The tables of a `PostgresStore`, as the steps that make them, oldest first.

A schema of version n has had the first n steps. A step is never changed once it was released, and
keeps what users put in. Texts that are sorted compare by their characters, as Python's do.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import LiteralString

from gateway.storage.database import Schema

_TABLES: Sequence[LiteralString] = (
    # Numbers of vectors hardly compress: they are not tried.
    """CREATE TABLE vectors (model_id text COLLATE "C", key text COLLATE "C",
    dimensions integer NOT NULL, row bytea STORAGE EXTERNAL NOT NULL,
    PRIMARY KEY (model_id, key))""",
)
ENTITY_ROWS: Sequence[LiteralString] = (
    # Days of use change apart from the rows, which are large and in an index.
    """CREATE TABLE IF NOT EXISTS entity_keys (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    model text COLLATE "C" NOT NULL, key bytea NOT NULL UNIQUE, used date NOT NULL)
    WITH (fillfactor = 80)""",
    """CREATE TABLE IF NOT EXISTS entity_rows (id bigint PRIMARY KEY,
    model text COLLATE "C" NOT NULL, numbers halfvec STORAGE PLAIN NOT NULL)""",
)
"""Made only where rows are kept there: they need the extension ``vector``."""
REST = Schema(what="", postgres={1: _TABLES})

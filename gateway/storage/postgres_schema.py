"""Tables of the vectors of entities; they need the extension ``vector``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import LiteralString

ENTITY_ROWS: Sequence[LiteralString] = (
    # Days of use change apart from the rows, which are large and in an index.
    """CREATE TABLE IF NOT EXISTS entity_keys (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    model text COLLATE "C" NOT NULL, key bytea NOT NULL UNIQUE, used date NOT NULL)
    WITH (fillfactor = 80)""",
    """CREATE TABLE IF NOT EXISTS entity_rows (id bigint PRIMARY KEY,
    model text COLLATE "C" NOT NULL, numbers halfvec STORAGE PLAIN NOT NULL)""",
)

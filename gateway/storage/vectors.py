from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from gateway.runtime.vectors import Vector
from gateway.storage.database import Database, Schema

VECTORS = Schema(
    name="vectors",
    what="vector store",
    steps=(
        (
            """CREATE TABLE IF NOT EXISTS vectors (model_id TEXT NOT NULL, key TEXT NOT NULL,
            dimensions INTEGER NOT NULL, row BLOB NOT NULL,
            PRIMARY KEY (model_id, key)) WITHOUT ROWID""",
        ),
    ),
    postgres={
        1: (
            # Uncompressed, because vector data hardly compresses.
            """CREATE TABLE vectors (model_id text COLLATE "C", key text COLLATE "C",
            dimensions integer NOT NULL, row bytea STORAGE EXTERNAL NOT NULL,
            PRIMARY KEY (model_id, key))""",
        )
    },
)


class SqlVectorStore:
    """A `VectorStore` in a *database* with the tables of `VECTORS`."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.place = database.place

    def get(self, model_id: str, keys: Sequence[str]) -> Mapping[str, Vector]:
        """See `VectorStore.get`."""
        query = "SELECT key, dimensions, row FROM vectors WHERE model_id = ? AND key = ANY(?)"
        with self._database.reading() as session:
            return {
                key: np.frombuffer(blob, dtype="<f4").astype(np.float32)
                for key, size, blob in session.each(query, (model_id, [*keys]))
                if len(blob) == 4 * size
            }

    def put(self, model_id: str, vectors: Mapping[str, Vector]) -> None:
        """Store *vectors* in one transaction."""
        query = """INSERT INTO vectors VALUES (?, ?, ?, ?) ON CONFLICT (model_id, key)
            DO UPDATE SET dimensions = excluded.dimensions, row = excluded.row"""
        self._database.write(
            query,
            *(
                (model_id, key, row.shape[0], np.asarray(row, dtype="<f4").tobytes())
                for key, row in sorted(vectors.items())
            ),
        )

    def size(self) -> int:
        """Return the size of the vectors in bytes."""
        return self._database.size("vectors")

    def count(self) -> int:
        """Return the number of vectors of all models."""
        ((count,),) = self._database.rows("SELECT count(*) FROM vectors")
        return int(count)

    def clear(self) -> None:
        """Delete all vectors of all models."""
        self._database.write("TRUNCATE vectors", ())

    def close(self) -> None:
        """Close the database; the next call opens it again."""
        self._database.close()

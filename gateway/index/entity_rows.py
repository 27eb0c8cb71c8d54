"""Storage of the entities' vectors during a build: the protocol, and storage in a database."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from hashlib import blake2b
from itertools import islice
from typing import ParamSpec, Protocol

import numpy as np

from gateway.embed.cache import text_key
from gateway.embed.protocol import Embedder, EmbedderInfo
from gateway.errors import ConfigError, StoreError
from gateway.index.candidates import CatalogVectors
from gateway.index.eligibility import Eligibility
from gateway.index.engine_vectors import (
    FEW_ROWS,
    EngineStore,
    EngineVectors,
    VectorEngine,
    maintain,
)
from gateway.index.entity_vectors import (
    EXAMPLE_SHARE,
    NAME_WEIGHT,
    PendingTexts,
    changed_texts,
    listed_rows,
    texts_of,
)
from gateway.options import Options
from gateway.runtime.background_loop import in_thread
from gateway.runtime.vectors import Vector, VectorStore
from gateway.types import Diagnostic, Entity

P = ParamSpec("P")
_BATCH_ROWS = 4096
"""Maximum number of rows or keys in one request to the database."""


class EntityRows(Protocol):
    """The vectors ("rows") of the entities of one catalog."""

    @property
    def blocking(self) -> bool:
        """True if `load` and `add` wait for a database.

        They must then run in a worker thread and may raise `StoreError`. Other methods may be
        called while they run.
        """

    @property
    def has_gaps(self) -> bool:
        """True if requested rows are missing in the database. Then add all entities again."""

    @property
    def missing_texts(self) -> Sequence[str]:
        """Texts that still need a vector, without duplicates, entity by entity."""

    @property
    def missing(self) -> int:
        """Number of texts that need a vector, plus entities that a failure left unprocessed."""

    def update(self, removed: Iterable[Entity], added: Iterable[Entity]) -> None:
        """Remove and add entities. A changed entity is in both arguments."""

    def load(self) -> None:
        """Look up the stored rows. The texts of an entity with a stored row need no vector."""

    def add(self, rows: Mapping[str, Vector]) -> None:
        """Add the vectors of missing texts, keyed by text key; ignore vectors of other texts."""

    def index(self, eligibility: Eligibility) -> CatalogVectors | None:
        """Return the vectors for searches, in the order of the entities in *eligibility*.

        None if all entities lack a vector.
        """

    def maintain(self) -> None:
        """Start work on the stored rows that can wait until searches use the index."""


class EngineRows:
    """`EntityRows` in a `VectorEngine`. Thread-safe.

    The embedder's model is a part of each row's key. *timeout_s* limits a search. For at most
    *few_rows* rows, the database builds no index.
    """

    blocking = True

    def __init__(
        self, store: EngineStore, info: EmbedderInfo, *, timeout_s: float, few_rows: int = FEW_ROWS
    ) -> None:
        content = info.model_id, info.dimensions, NAME_WEIGHT, EXAMPLE_SHARE
        self._model = blake2b(repr(content).encode(), digest_size=8).hexdigest()
        self._engine: VectorEngine = store.vector_engine(self._model, timeout_s=timeout_s)
        self._few_rows = few_rows
        self._using = threading.Lock()
        self._unread: dict[str, Entity] = {}
        """Entities whose rows are not looked up in the database yet, keyed by id."""
        self._pending = PendingTexts()
        """Entities without a stored row."""
        self._unwritten: dict[str, tuple[bytes, Vector]] = {}
        """Keys and vectors of rows that are not in the database yet, keyed by entity id."""
        self._ids: dict[str, int] = {}
        """Id of each entity's row in the database, keyed by entity id."""
        self._dimensions = 0

    @property
    def has_gaps(self) -> bool:
        """True if a row was missing in the database."""
        return self._engine.has_gaps

    @property
    def missing_texts(self) -> Sequence[str]:
        """Texts that still need a vector, without duplicates."""
        with self._using:
            return self._pending.missing

    @property
    def missing(self) -> int:
        """Number of texts that need a vector, plus entities with rows to look up or store."""
        with self._using:
            return len(self._unread) + len(self._unwritten) + len(self._pending.missing)

    def update(self, removed: Iterable[Entity], added: Iterable[Entity]) -> None:
        """Remove and add entities."""
        gone, new = changed_texts(removed, added)
        with self._using:
            for entity_id in gone:
                self._pending.forget(entity_id)
                for values in (self._unread, self._unwritten, self._ids):
                    values.pop(entity_id, None)
            self._unread |= {entity.id: entity for entity in new}

    def load(self) -> None:
        """Store the rows left by a failed `add`, then look up the rows of new entities."""
        self._write()
        while True:
            with self._using:
                part = dict(islice(self._unread.items(), _BATCH_ROWS))
            if not part:
                return
            texts = {entity_id: texts_of(entity) for entity_id, entity in part.items()}
            keys = {
                entity_id: self._key(map(text_key, (whole, name, *examples)))
                for entity_id, (whole, name, examples) in texts.items()
            }
            stored_ids = self._engine.known(sorted({*keys.values()}))
            if stored_ids and not self._dimensions:
                first = np.array([next(iter(stored_ids.values()))])
                self._dimensions = self._engine.rows(first).shape[1]
            with self._using:
                for entity_id, entity in part.items():
                    # The entity may have changed during the look-up.
                    if self._unread.get(entity_id) is not entity:
                        continue
                    del self._unread[entity_id]
                    if row := stored_ids.get(keys[entity_id]):
                        self._ids[entity_id] = row
                    else:
                        self._pending.add(entity_id, *texts[entity_id])

    def _key(self, texts: Iterable[str]) -> bytes:
        return blake2b(" ".join([self._model, *texts]).encode(), digest_size=16).digest()

    def add(self, rows: Mapping[str, Vector]) -> None:
        """Add vectors of missing texts. A row is stored once all texts of its entity have one."""
        with self._using:
            for entity_id, row, is_whole in self._pending.take(rows):
                if is_whole:
                    texts = self._pending.entities[entity_id]
                    key = self._key((texts.whole, texts.name, *texts.examples))
                    self._unwritten[entity_id] = key, row
        self._write()

    def _write(self) -> None:
        while True:
            with self._using:
                part = dict(islice(self._unwritten.items(), _BATCH_ROWS))
            if not part:
                return
            rows = dict(part.values())
            ids = self._engine.put(rows)
            with self._using:
                self._dimensions = len(next(iter(rows.values())))
                for entity_id, unwritten in part.items():
                    # The entity may have changed while its row was stored.
                    if self._unwritten.get(entity_id) is unwritten:
                        del self._unwritten[entity_id]
                        self._ids[entity_id] = ids[unwritten[0]]

    def index(self, eligibility: Eligibility) -> EngineVectors | None:
        """Return the vectors for searches; None if all entities lack a vector."""
        places = eligibility.by_id
        with self._using:
            row_ids = (self._ids.get(entity_id, 0) for entity_id in places)
            ids = np.fromiter(row_ids, dtype=np.int64, count=len(places))
            self._engine.has_gaps = False
        present = ids > 0
        if not present.any():
            return None
        listed = np.flatnonzero(listed_rows(eligibility, present))
        return EngineVectors(
            self._engine, ids, self._dimensions, listed=listed, few_rows=self._few_rows
        )

    def maintain(self) -> None:
        """Mark the rows as used and build a missing index, in a daemon thread."""
        with self._using:
            ids = np.array([*self._ids.values()], dtype=np.int64)
        maintain(self._engine, ids, self._few_rows)


def load_rows(options: Options, store: VectorStore, embedder: Embedder | None) -> EntityRows | None:
    """Return storage in the database if *options* require it; None for storage in memory.

    Raises:
        ConfigError: If *store* cannot store the vectors of entities.
    """
    if options.index.rows == "memory" or embedder is None:
        return None
    timeout_s = options.search.query_timeout_s
    return EngineRows(_engine_store(store), embedder.info, timeout_s=timeout_s)


def check_rows(store: VectorStore) -> None:
    """Raise `ConfigError` or `StoreError` if *store* cannot store the vectors of entities."""
    _engine_store(store).check_engine()


def _engine_store(store: VectorStore) -> EngineStore:
    if not isinstance(store, EngineStore):
        raise ConfigError(
            "index.rows is pgvector, which needs a store in PostgreSQL: give its address as "
            "Options.store or GATEWAY_STORE"
        )
    return store


async def with_rows(
    rows: EntityRows, work: Callable[P, None], *arguments: P.args, **named: P.kwargs
) -> tuple[Diagnostic, ...]:
    """Call *work*, a method of *rows*; in a thread if *rows* is blocking.

    Return a diagnostic if the call failed; else empty.
    """
    if not rows.blocking:
        work(*arguments, **named)
        return ()
    try:
        await in_thread(work, *arguments, **named)
    except StoreError as error:
        return (Diagnostic(stage="store", code="vectors_unavailable", detail=str(error)),)
    return ()

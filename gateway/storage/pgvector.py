"""The vectors of a catalog in PostgreSQL with pgvector: no process holds them.

* Who may be found is counted first. Few are scored exactly, by their ids. Of many the nearest to
  each vector of the query are taken from an HNSW index, without any filter, and those that may not
  be found are left out here; if too few are left, all are scored exactly after all. So no filter
  costs recall, and the planner of the database chooses nothing.
* Rows are kept by what they are made of: replicas share them, and a start embeds nothing.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import date
from functools import cached_property
from hashlib import blake2b
from itertools import islice

import numpy as np

from gateway.embed.cache import text_key
from gateway.embed.protocol import EmbedderInfo
from gateway.errors import StoreError
from gateway.index.eligibility import Eligibility, Mask, Positions
from gateway.index.entity_vectors import (
    EXAMPLE_SHARE,
    NAME_WEIGHT,
    PendingTexts,
    changed_texts,
    listed_rows,
    texts_of,
)
from gateway.index.vectors import SAMPLE_ROWS, ScanResult, VectorQuery
from gateway.runtime.vectors import Matrix, Vector
from gateway.storage.pgvector_arrays import Ids
from gateway.storage.pgvector_table import PgvectorTable
from gateway.storage.postgres_database import PostgresDatabase
from gateway.types import Entity

FEW_ROWS = 20_000
"""So few are scored exactly: it takes some 80 ms for rows of 1,280 numbers."""
_FEWEST_NEAREST, _MOST_NEAREST = 100, 1000
"""How many rows an HNSW index is asked for: it misses some of fewer, and gives no more."""
_MARGIN = 1.5
"""So many more than needed are asked for: those that may be found stand by chance among all."""
_BATCH_ROWS = 4096
"""Rows, or their keys, at hand at a time."""


class PgvectorRows:
    """`EntityRows` in PostgreSQL. Safe from any thread.

    Args:
        database: Where they are.
        info: The embedder, whose model is a part of each key.
        timeout_s: How long the server may work on a search.
        few_rows: How many are scored exactly; more rows get an HNSW index.
    """

    blocking = True

    def __init__(
        self,
        database: PostgresDatabase,
        info: EmbedderInfo,
        *,
        timeout_s: float,
        few_rows: int = FEW_ROWS,
    ) -> None:
        made_of = info.model_id, info.dimensions, NAME_WEIGHT, EXAMPLE_SHARE
        self._model = blake2b(repr(made_of).encode(), digest_size=8).hexdigest()
        self._table = PgvectorTable(database, self._model, timeout_s)
        self._few_rows = few_rows
        self._using = threading.Lock()
        self._unread: dict[str, Entity] = {}
        """Entities whose keys were not looked up yet, by id."""
        self._pending = PendingTexts()
        """Those that are not kept."""
        self._keys: dict[str, bytes] = {}
        """Their keys, and those of what is not written."""
        self._unwritten: dict[str, Vector] = {}
        self._found: dict[str, int] = {}
        """The rows of entities that were found or written since the newest index."""
        self._outdated: set[str] = set()
        """Entities whose rows in the newest index are no more theirs."""
        self._ids: Ids = np.zeros(0, dtype=np.int64)
        """The rows of the newest index, 0 for an entity that has none."""
        self._places: Mapping[str, int] = {}
        """The place of each entity there."""
        self._dimensions = 0

    @property
    def has_gaps(self) -> bool:
        """See `EntityRows.has_gaps`."""
        return self._table.has_gaps

    @property
    def missing_texts(self) -> Sequence[str]:
        """See `EntityRows.missing_texts`."""
        with self._using:
            return self._pending.missing

    @property
    def missing(self) -> int:
        """See `EntityRows.missing`."""
        with self._using:
            return len(self._unread) + len(self._unwritten) + len(self._pending.missing)

    def update(self, removed: Iterable[Entity], added: Iterable[Entity]) -> None:
        """See `EntityRows.update`."""
        gone, new = changed_texts(removed, added)
        with self._using:
            for entity_id in gone:
                self._outdated.add(entity_id)
                self._pending.forget(entity_id)
                for each in (self._unread, self._keys, self._unwritten, self._found):
                    each.pop(entity_id, None)
            self._unread |= {entity.id: entity for entity in new}

    def load(self) -> None:
        """See `EntityRows.load`."""
        self._write()
        while True:
            with self._using:
                part = dict(islice(self._unread.items(), _BATCH_ROWS))
            if not part:
                return
            texts = {entity_id: texts_of(entity) for entity_id, entity in part.items()}
            keys = {entity_id: self._key(*each) for entity_id, each in texts.items()}
            found = self._table.read(sorted({*keys.values()}))
            if found and not self._dimensions:
                self._dimensions = self._table.dimensions(next(iter(found.values())))
            with self._using:
                for entity_id, entity in part.items():
                    # It may have changed meanwhile.
                    if self._unread.get(entity_id) is not entity:
                        continue
                    del self._unread[entity_id]
                    if (row := found.get(keys[entity_id])) is not None:
                        self._found[entity_id] = row
                    else:
                        self._keys[entity_id] = keys[entity_id]
                        self._pending.add(entity_id, *texts[entity_id])

    def _key(self, whole: str, name: str, examples: Sequence[str]) -> bytes:
        made_of = self._model, *map(text_key, (whole, name, *examples))
        return blake2b(" ".join(made_of).encode(), digest_size=16).digest()

    def add(self, rows: Mapping[str, Vector]) -> None:
        """See `EntityRows.add`. An entity is written once all its texts have a vector."""
        with self._using:
            for entity_id, row, is_whole in self._pending.take(rows):
                if is_whole:
                    self._unwritten[entity_id] = row
        self._write()

    def _write(self) -> None:
        while True:
            with self._using:
                part = dict(islice(self._unwritten.items(), _BATCH_ROWS))
                keys = {entity_id: self._keys[entity_id] for entity_id in part}
            if not part:
                return
            rows = {keys[entity_id]: row for entity_id, row in part.items()}
            self._table.write(sorted(rows.items(), key=lambda each: each[0]))
            found = self._table.read(sorted(rows))
            with self._using:
                self._dimensions = len(next(iter(rows.values())))
                for entity_id, row in part.items():
                    if self._unwritten.get(entity_id) is row:
                        self._found[entity_id] = found[self._keys.pop(entity_id)]
                        del self._unwritten[entity_id]

    def index(self, eligibility: Eligibility) -> PgvectorIndex | None:
        """See `EntityRows.index`."""
        places = eligibility.by_id
        with self._using:
            outdated, before = self._outdated, self._places
            wanted = (-1 if key in outdated else before.get(key, -1) for key in places)
            old = np.fromiter(wanted, dtype=np.intp, count=len(places))
            ids = np.zeros(len(places), dtype=np.int64)
            ids[old >= 0] = self._ids[old[old >= 0]]
            # While the next catalog is compiled, the last one may be indexed once more.
            for entity_id in self._found.keys() & places.keys():
                ids[places[entity_id]] = self._found.pop(entity_id)
            self._ids, self._places, self._outdated = ids, places, set()
            self._table.has_gaps = False
        present = ids > 0
        if not present.any():
            return None
        listed = np.flatnonzero(listed_rows(eligibility, present))
        return PgvectorIndex(
            self._table, ids, self._dimensions, listed=listed, few_rows=self._few_rows
        )

    def maintain(self) -> None:
        """Keep the rows in use, delete others, and let an HNSW index be made if it matters."""
        with self._using:
            ids = self._ids[self._ids > 0]
        if len(ids):
            self._table.touch(ids)
        self._table.clean()
        if self._table.count() > self._few_rows and not self._table.indexed():
            # It takes minutes, and no process waits for that, not even to end.
            threading.Thread(target=self._make_index, daemon=True).start()

    def _make_index(self) -> None:
        # Whatever hinders it, the next build tries again.
        with suppress(StoreError):
            self._table.make_index(self._dimensions)


class PgvectorIndex:
    """`CatalogVectors` in PostgreSQL. Each call but `has` may raise `StoreError`.

    Args:
        table: Where the rows are.
        ids: The id of the row at each position, 0 for an entity without one.
        dimensions: How long the rows are.
        listed: The positions that the mean is of.
        few_rows: How many are scored exactly.
    """

    blocking = True

    def __init__(
        self, table: PgvectorTable, ids: Ids, dimensions: int, *, listed: Positions, few_rows: int
    ) -> None:
        self._table = table
        self._ids = ids
        self._listed = listed
        self._few_rows = few_rows
        self._day = date.today()  # noqa: DTZ011  (only whether it is another one)
        self.dimensions = dimensions
        present = ids > 0
        self.present: Mask | None = None if present.all() else present
        self.count = int(np.count_nonzero(present))

    @property
    def size(self) -> int:
        """How many positions there are."""
        return len(self._ids)

    @cached_property
    def mean(self) -> Vector:
        """See `CatalogVectors.mean`; of a large catalog that of some rows."""
        step = max(1, len(self._listed) // self._few_rows)
        return self._table.mean(self._ids[self._listed[::step]])

    def has(self, positions: Positions) -> Mask:
        """See `CatalogVectors.has`."""
        return np.asarray(self._ids[positions] > 0)

    def rows(self, positions: Positions) -> Matrix:
        """See `CatalogVectors.rows`."""
        rows, has_row = np.zeros((len(positions), self.dimensions), np.float32), self.has(positions)
        if has_row.any():
            ids = self._ids[positions[has_row]]
            found = self._table.rows(ids)
            rows[has_row] = [found[each] for each in ids.tolist()]
        return rows

    def score(
        self, query: VectorQuery, positions: Positions | None = None
    ) -> tuple[Vector, Vector]:
        """See `CatalogVectors.score`."""
        ids = self._ids if positions is None else self._ids[positions]
        best = self._table.best(query, ids, len(ids))
        order = np.argsort(best.pool)
        return best.cosines[order], best.strengths[order]

    def search(self, query: VectorQuery, *, mask: Mask, count: int) -> ScanResult:
        """See `CatalogVectors.search`."""
        self._touch()
        positions = np.flatnonzero(mask)
        if len(positions) > self._few_rows:
            found = self._search_index(query, mask, positions, count)
            if found is not None:
                return found
        best = self._table.best(query, self._ids[positions], count)
        return replace(best, pool=positions[best.pool])

    def _search_index(
        self, query: VectorQuery, mask: Mask, positions: Positions, count: int
    ) -> ScanResult | None:
        """Search the HNSW index; return None if that cannot find *count* that may be found."""
        indexed = self._table.indexed()
        share = len(positions) / max(indexed, self.size)
        if not indexed or count > share * _MOST_NEAREST:
            return None
        wanted = max(math.ceil(_MARGIN * count / share), _FEWEST_NEAREST)
        sample = self._ids[positions[:: max(1, len(positions) // SAMPLE_ROWS)]]
        ids, lists, cosines, strengths, moments = self._table.nearest(
            query, min(wanted, _MOST_NEAREST), sample
        )
        found, at = self._positions_of(ids)
        found, at = found[mask[found]], at[mask[found]]
        # Each vector's own list must be long enough: what is best for it may be in no other.
        vectors = range(len(query.texts) + len(query.clauses))
        if min(np.count_nonzero(lists[at] >> bit & 1) for bit in vectors) < count:
            return None
        best = np.lexsort((found, -strengths[at]))[:count]
        return ScanResult(
            pool=found[best],
            cosines=cosines[at[best]],
            strengths=strengths[at[best]],
            moments=moments,
            eligible=len(positions),
            scored=len(ids),
        )

    @cached_property
    def _order(self) -> Positions:
        """Positions by the ids of their rows."""
        return np.argsort(self._ids, kind="stable")

    @cached_property
    def _sorted(self) -> Ids:
        return self._ids[self._order]

    def _positions_of(self, ids: Ids) -> tuple[Positions, Positions]:
        """Return the positions of *ids*, of which other catalogs have some, and each one's id.

        Returns:
            Positions, and for each of them its place in *ids*: equal entities share a row.
        """
        first, last = (np.searchsorted(self._sorted, ids, side=each) for each in ("left", "right"))
        lengths = last - first
        at = np.repeat(np.arange(len(ids)), lengths)
        starts = np.cumsum(lengths) - lengths
        return self._order[first[at] + np.arange(len(at)) - starts[at]], at

    def _touch(self) -> None:
        """Once a day, keep the rows from being deleted."""
        today = date.today()  # noqa: DTZ011  (as above)
        if today != self._day:
            self._day = today
            threading.Thread(target=self._keep, daemon=True).start()

    def _keep(self) -> None:
        with suppress(StoreError):
            self._table.touch(self._ids[self._ids > 0])

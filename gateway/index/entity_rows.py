"""Where the rows of entities are kept: what a build asks of it, and how it waits for that."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import ParamSpec, Protocol, runtime_checkable

from gateway.embed.protocol import Embedder, EmbedderInfo
from gateway.errors import ConfigError, StoreError
from gateway.index.eligibility import Eligibility
from gateway.index.vectors import CatalogVectors
from gateway.options import Options
from gateway.runtime.background_loop import in_thread
from gateway.runtime.vectors import Vector, VectorStore
from gateway.types import Diagnostic, Entity

P = ParamSpec("P")


class EntityRows(Protocol):
    """The rows of the entities of one catalog, wherever they are kept."""

    @property
    def blocking(self) -> bool:
        """Whether `load`, `add` and `maintain` wait for a database.

        Then they belong in a worker thread, may raise `StoreError`, and the others may be called
        beside them.
        """

    @property
    def has_gaps(self) -> bool:
        """Whether a search missed rows that the index names; then all entities are put in again."""

    @property
    def missing_texts(self) -> Sequence[str]:
        """The texts that have no vector, each once, entity by entity."""

    @property
    def missing(self) -> int:
        """How much is still to be done: of such texts, and of what a failure left."""

    def update(self, removed: Iterable[Entity], added: Iterable[Entity]) -> None:
        """Take entities out and put others in; one that changed is among both."""

    def load(self) -> None:
        """Take the rows that are kept: the texts of their entities are not missing."""

    def add(self, rows: Mapping[str, Vector]) -> None:
        """Take *rows* for the vectors of missing texts, by text key; others are ignored."""

    def index(self, eligibility: Eligibility) -> CatalogVectors | None:
        """Return what searches read: the rows there are, in the order of *eligibility*.

        Returns:
            None if no entity has one.
        """

    def maintain(self) -> None:
        """Do what can wait until the index is published."""


@runtime_checkable
class EntityRowStore(Protocol):
    """A `VectorStore` that keeps the rows of entities too, and searches them."""

    def entity_rows(self, info: EmbedderInfo, *, timeout_s: float) -> EntityRows:
        """Return the rows of one catalog; nothing is asked of the store yet.

        Args:
            info: Of the embedder.
            timeout_s: How long a search may take.
        """

    def check_rows(self) -> None:
        """Raise `StoreError` if it cannot keep them."""


def kept_rows(options: Options, store: VectorStore, embedder: Embedder | None) -> EntityRows | None:
    """Return where *options* want rows; None for memory.

    Raises:
        ConfigError: *store* cannot keep them.
    """
    if options.index.rows == "memory" or embedder is None:
        return None
    keeper, timeout_s = _row_store(store), options.search.query_timeout_s
    return keeper.entity_rows(embedder.info, timeout_s=timeout_s)


def check_rows(store: VectorStore) -> None:
    """Look whether *store* can keep rows.

    Raises:
        ConfigError: It is of no such kind.
        StoreError: It cannot now.
    """
    _row_store(store).check_rows()


def _row_store(store: VectorStore) -> EntityRowStore:
    if not isinstance(store, EntityRowStore):
        raise ConfigError(
            "index.rows is pgvector, which needs a store in PostgreSQL: give its address as "
            "Options.store or GATEWAY_STORE"
        )
    return store


async def with_rows(
    rows: EntityRows, work: Callable[P, None], *arguments: P.args, **named: P.kwargs
) -> tuple[Diagnostic, ...]:
    """Call *work* of *rows*: in a thread, if they wait for a database; return why it failed."""
    if not rows.blocking:
        work(*arguments, **named)
        return ()
    try:
        await in_thread(work, *arguments, **named)
    except StoreError as error:
        return (Diagnostic(stage="store", code="vectors_unavailable", detail=str(error)),)
    return ()

"""The store of a gateway: the host's own, a database that a plugin opens, or files."""

from __future__ import annotations

from gateway.errors import ConfigError
from gateway.options import Options
from gateway.options.environment import catalog_store_path, ledger_path, resolved, vector_store_path
from gateway.options.validation import check_members
from gateway.plugin_manager import load_plugins
from gateway.runtime.vectors import VectorStore
from gateway.storage.protocol import OwnVectors, SqliteStore, Store
from gateway.storage.sqlite import SqliteVectorStore


def resolve_store(
    options: Options, store: Store | None = None, *, vectors: VectorStore | None = None
) -> Store:
    """Return the store of a gateway: the host's own, else the database or files of *options*.

    Args:
        options: Where it is.
        store: The host's store.
        vectors: Where the host keeps vectors, and only them.

    Raises:
        ConfigError: Both are given, or one is no store, or the database has no usable address.
        MissingExtraError: The package of the database is not installed.
    """
    if vectors is not None:
        check_members("vector_store", vectors, "a VectorStore", "get", "put", "close")
    # Not `or`: an empty store of the host may be falsy.
    if store is not None:
        if vectors is not None:
            raise ConfigError("store and vector_store say both where vectors persist: give one")
        check_members("store", store, "a Store", "vectors", "entries", "listings", "close")
        return store
    if options.store:
        return _open_database(options, vectors)
    return SqliteStore(
        vectors=vector_store_path(options) if vectors is None else vectors,
        catalog=catalog_store_path(options),
        usage=ledger_path(options),
    )


def own_vectors(options: Options) -> OwnVectors:
    """Return where vectors are kept by *options*.

    Raises:
        ConfigError: The database has no usable address.
        MissingExtraError: The package of the database is not installed.
    """
    if not options.store:
        return SqliteVectorStore(vector_store_path(options))
    vectors: OwnVectors = _open_database(options, None).vectors  # type: ignore[assignment]  # ours
    return vectors


def _open_database(options: Options, vectors: VectorStore | None) -> Store:
    from gateway.runtime.secrets import expand  # noqa: PLC0415  (it reads files of variables)

    try:
        address = expand(options.store)
    except ConfigError as error:
        raise ConfigError(f"the address of the store: {error}") from None
    databases = load_plugins(resolved(options).plugins).tables("register_databases")
    scheme = address.partition("://")[0]
    if scheme not in databases:
        # The scheme is not shown: what stands before the colon may be a password.
        schemes = ", ".join(f"{each}://" for each in sorted(databases)) or "none"
        raise ConfigError(
            "no loaded plugin opens the address of the store: write one that begins with a scheme "
            f"of theirs ({schemes}), or load the plugin 'postgres'"
        )
    store: Store = databases[scheme](address, vectors)
    return store

"""Selection of a gateway's store."""

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
    """Return *store*, else the store that *options* configure: a database or SQLite files.

    Args:
        options: Options with the address of the database or the paths of the files.
        store: Store of the host, or None.
        vectors: Store of the host for vectors, which replaces the configured one; None is not set.

    Raises:
        ConfigError: If both stores are given, one has the wrong type, or the address is unusable.
        MissingExtraError: If the database's package is not installed.
    """
    if vectors is not None:
        check_members("vector_store", vectors, "a VectorStore", "get", "put", "close")
    # An empty store of the host may be falsy.
    if store is not None:
        if vectors is not None:
            raise ConfigError("store and vector_store both store vectors: give only one")
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
    """Return the vector store that *options* configure.

    Raises:
        ConfigError: If the address of the database is unusable.
        MissingExtraError: If the database's package is not installed.
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
        # The scheme in a wrong address may be the start of a password.
        schemes = ", ".join(f"{name}://" for name in sorted(databases)) or "none"
        raise ConfigError(
            "no loaded plugin can open the address of the store: use an address with one of these "
            f"schemes ({schemes}), or load the plugin 'postgres'"
        )
    store: Store = databases[scheme](address, vectors)
    return store

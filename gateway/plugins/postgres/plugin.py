"""Plugin ``postgres``: a store in PostgreSQL, shared by several processes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from gateway.hookspecs import hookimpl


@hookimpl
def register_databases() -> Mapping[str, Callable[..., object]]:
    """Register the opener of PostgreSQL stores."""
    return {"postgresql": _open, "postgres": _open}


def _open(address: str, vectors: Any) -> object:
    from gateway.plugins.postgres.store import PostgresStore  # noqa: PLC0415  (an optional extra)

    return PostgresStore(address, vectors=vectors)

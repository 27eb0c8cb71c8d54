"""The vector store that every gateway of this user shares by default."""

from __future__ import annotations

from gateway.cli.screen import warn
from gateway.errors import StoreError
from gateway.options.environment import environment
from gateway.storage.sqlite import SqliteVectorStore
from gateway.types import Diagnostic


def store() -> SqliteVectorStore:
    """Give the store; its file is made when something is kept."""
    return SqliteVectorStore(environment().cache_dir / "vectors.sqlite3")


def forget() -> None:
    """Empty the store; a corrupt file is set aside, which empties it too.

    Raises:
        StoreError: If it cannot be written.
    """
    kept = store()
    try:
        kept.clear()
    except StoreError as error:
        _rebuilt(error)
    finally:
        kept.close()


def held() -> tuple[int, int]:
    """Count the vectors of all models and the bytes of the file; makes no file.

    Raises:
        StoreError: If it cannot be read.
    """
    kept = store()
    if not kept.path.is_file():
        return 0, 0
    try:
        return kept.count(), kept.path.stat().st_size
    except StoreError as error:
        _rebuilt(error)
        return 0, 0
    finally:
        kept.close()


def _rebuilt(error: StoreError) -> None:
    if not error.rebuilt:
        raise error
    warn([Diagnostic(stage="store", code="store_rebuilt", detail=str(error))])

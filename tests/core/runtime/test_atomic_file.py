"""Permissions of new files and folders, independent of the umask."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from gateway.gateway import Gateway
from gateway.options import IndexOptions, Options
from gateway.options.environment import catalog_store_path
from gateway.runtime.atomic_file import make_private_file, make_private_folder, write_atomically
from gateway.storage import FileTokens, SqlCatalog
from gateway.testing import HashingEmbedder
from tests.fakes import ListSource, definitions

TOOLS = definitions(30)


@pytest.fixture
def _open_umask() -> Iterator[None]:
    """Set a umask that removes no permissions."""
    before = os.umask(0)
    yield
    os.umask(before)


def open_to_others(folder: Path) -> dict[str, str]:
    """Return the permissions of the files in *folder* that other users may read, write or search,
    keyed by name.
    """
    modes = {path: path.stat().st_mode & 0o777 for path in folder.rglob("*")}
    return {str(path.relative_to(folder)): oct(mode) for path, mode in modes.items() if mode & 0o77}


@pytest.mark.usefixtures("_open_umask")
async def test_all_files_of_a_gateway_are_private(tmp_path: Path) -> None:
    """The files are vectors, the catalog, tokens, the saved index, and SQLite's own files."""
    home = tmp_path / "deep" / "down"
    options = Options(
        vector_store_path=home / "vectors" / "vectors.sqlite3",
        catalog_store_path=home / "catalog" / "catalog.sqlite3",
        index_path=home / "index",
        index=IndexOptions(min_tools=10),
    )
    gateway = Gateway(strategy="auto", embedder=HashingEmbedder(), options=options)
    gateway.add_source(ListSource("srv", TOOLS))
    await gateway.search("approve the urgent invoice")
    catalog = SqlCatalog.in_files(catalog_store_path(options))
    catalog.record_seen("owner", {"srv/approve_invoice": "digest"})
    FileTokens(home / "tokens" / "key").write("secret")
    # Checked while the stores are open, because SQLite deletes its own files at the end.
    names, open_files = {path.name for path in home.rglob("*")}, open_to_others(tmp_path)
    catalog.close()
    await gateway.aclose()
    # At the latest, the index is saved when the gateway closes.
    names |= {path.name for path in home.rglob("*")}

    assert {"vectors.sqlite3", "vectors.sqlite3-wal", "vectors.sqlite3-shm"} <= names
    assert {"catalog.sqlite3", "index"} <= names
    assert not open_files
    assert not open_to_others(tmp_path)


@pytest.mark.usefixtures("_open_umask")
def test_existing_files_keep_their_permissions(tmp_path: Path) -> None:
    shared, file = tmp_path / "shared", tmp_path / "shared" / "file"
    shared.mkdir(mode=0o755)
    file.touch(mode=0o640)
    make_private_folder(shared)
    make_private_file(file)
    write_atomically(file, "new")

    assert (0o755, 0o640) == (shared.stat().st_mode & 0o777, file.stat().st_mode & 0o777)


def test_file_in_place_of_a_folder_raises_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    with pytest.raises(OSError, match="file"):
        make_private_folder(tmp_path / "file")
    with pytest.raises(OSError, match="file"):
        make_private_file(tmp_path / "file" / "inner")

"""Approval key, with which command lines are digested."""

from __future__ import annotations

import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from gateway.options import Options
from gateway.storage import approval_key


def options_of(path: Path, host_key: str = "") -> Options:
    """Return options with the approval key in the file *path*."""
    return Options(catalog_store_path=path.with_name("catalog.sqlite3"), host_key=host_key)


def test_approval_key_file_is_created_once_and_only_readable_by_its_owner(tmp_path: Path) -> None:
    """Several processes may create it at once; the folder contains no other files afterwards."""
    path = tmp_path / "new" / "approvals.key"
    with ThreadPoolExecutor(16) as threads:
        keys = set(threads.map(approval_key, [options_of(path)] * 64))

    assert 1 == len(keys)
    assert 32 == len(keys.pop())
    assert 0o600 == stat.S_IMODE(path.stat().st_mode)
    assert [path] == [*path.parent.iterdir()]


def test_approval_key_is_random_if_its_file_cannot_be_created(tmp_path: Path) -> None:
    """Then no earlier approval is valid."""
    (tmp_path / "file").write_text("in the way")
    path = tmp_path / "file" / "approvals.key"

    assert approval_key(options_of(path)) != approval_key(options_of(path))


def test_approval_key_comes_from_the_host_key_if_there_is_one(tmp_path: Path) -> None:
    """The key is derived from the first of several host keys."""
    paths = [tmp_path / "one" / "approvals.key", tmp_path / "two" / "approvals.key"]
    keys = {approval_key(options_of(path, "a" * 32)) for path in paths}
    newer = approval_key(options_of(paths[0], f"{'b' * 32},{'a' * 32}"))

    assert 1 == len(keys)
    assert 32 == len(newer)
    assert newer not in keys
    assert [] == [*tmp_path.iterdir()]
